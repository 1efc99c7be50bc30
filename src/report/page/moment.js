/* The memory map at one moment: every segment as a bar, its blocks in it, written in rows like
 * text. SPDX-License-Identifier: MIT */
"use strict";

(function () {
  const el = Report.el;
  const ROW = 20, BAR = 15, GAP = 3;

  /* What is there after an event. Mapped parts that touch are one segment. */
  Report.stateAt = function (data, event) {
    const extents = data.extents, spans = data.spans, list = [], blocks = [];
    for (let i = 0; i < extents.count; i++)
      if (extents.from[i] <= event && event < extents.to[i]) list.push(i);
    list.sort((a, b) => extents.y[a] - extents.y[b]);
    const segments = [];
    for (const i of list) {
      const last = segments[segments.length - 1];
      if (last && last.isExpandable && (extents.kind[i] & 1) && last.y + last.size === extents.y[i]) last.size += extents.size[i];
      else segments.push({ y: extents.y[i], size: extents.size[i], isExpandable: (extents.kind[i] & 1) === 1,
        stream: extents.stream[i], pool: extents.pool[i], blocks: [], active: 0 });
    }
    for (let i = 0; i < spans.count; i++)
      if (spans.from[i] <= event && event < spans.to[i]) blocks.push(i);
    blocks.sort((a, b) => spans.y[a] - spans.y[b]);
    let at = 0;
    for (const i of blocks) {
      while (at < segments.length && segments[at].y + segments[at].size <= spans.y[i]) at++;
      if (at === segments.length) break;
      if (spans.y[i] >= segments[at].y) { segments[at].blocks.push(i); segments[at].active += spans.size[i]; }
    }
    return segments;
  };

  class MomentMap {
    constructor(recording, data, view, paint, holder, onSelect) {
      Object.assign(this, { recording, data, view, paint, holder, onSelect });
      this.isShown = false;
      this.order = "address";
      this.detail = 1;
      this.selected = -1;
      this.canvas = el("canvas", {});
      holder.append(this.canvas);
      this.listen();
      new ResizeObserver(() => this.schedule()).observe(holder);
      view.listen(what => { if (what === "moment") this.segments = null; this.schedule(); });
      Report.onTheme(() => this.schedule());
    }

    schedule() {
      if (this.isScheduled || !this.isShown) return;
      this.isScheduled = true;
      requestAnimationFrame(() => { this.isScheduled = false; this.draw(); });
    }

    sort(order) { this.order = order; this.segments = null; this.schedule(); }

    prepare() {
      if (this.segments) return;
      const segments = Report.stateAt(this.data, this.view.moment);
      if (this.order === "cached") segments.sort((a, b) => (b.size - b.active) - (a.size - a.active) || a.y - b.y);
      if (this.order === "size") segments.sort((a, b) => b.size - a.size || a.y - b.y);
      this.segments = segments;
      this.total = segments.reduce((sum, s) => sum + s.size, 0);
    }

    /* Where each segment begins, in units, with gaps between them. */
    lay(width) {
      const rows = 24 * this.detail;
      this.rowUnits = Math.max(1, this.total / rows);
      const gap = GAP * this.rowUnits / width;
      let at = 0;
      for (const segment of this.segments) { segment.at = at; at += segment.size + gap; }
      this.rows = Math.max(1, Math.ceil(at / this.rowUnits));
    }

    draw() {
      const width = Math.max(200, this.holder.clientWidth - 2), ratio = Math.min(2, devicePixelRatio || 1);
      if (this.holder.clientWidth < 50) return;
      this.prepare();
      this.lay(width);
      const height = Math.min(16000, this.rows * ROW + 2), canvas = this.canvas;
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = width + "px";
      canvas.style.height = height + "px";
      const context = canvas.getContext("2d"), spans = this.data.spans, paint = this.paint;
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      const colours = paint.names.map((name, k) => Report.colour(paint.prefix + k)), hit = Report.colour("hit");
      for (const segment of this.segments) {
        this.bar(context, width, segment.at, segment.size, Report.colour("cached"), false);
        for (const i of segment.blocks) {
          context.globalAlpha = paint.hits && !paint.hits[i] ? .25 : 1;
          this.bar(context, width, segment.at + spans.y[i] - segment.y, spans.size[i],
            paint.hits && paint.hits[i] ? hit : colours[paint.classes[i]], true);
          context.globalAlpha = 1;
        }
        if (segment.blocks.includes(this.selected))
          this.bar(context, width, segment.at + spans.y[this.selected] - segment.y, spans.size[this.selected], null, false);
      }
    }

    /* A bar over one row or several; colour null outlines it. */
    bar(context, width, at, size, colour, isBlock) {
      const unit = this.rowUnits;
      let row = Math.floor(at / unit), from = at - row * unit, left = size;
      while (left > unit * 1e-9 && row <= this.rows) {
        const part = Math.min(left, unit - from), x = from / unit * width, wide = part / unit * width;
        if (colour === null) {
          context.strokeStyle = Report.colour("select");
          context.lineWidth = 2;
          context.strokeRect(x, row * ROW + 1, Math.max(2, wide), BAR);
        } else {
          context.fillStyle = colour;
          /* A hairline between blocks, where there is room for one. */
          context.fillRect(x, row * ROW + 1, isBlock && wide > 3 ? wide - .6 : Math.max(wide, .4), BAR);
        }
        left -= part;
        from = 0;
        row++;
      }
    }

    at(offsetX, offsetY) {
      if (!this.segments || offsetY % ROW > BAR + 1) return null;
      const width = Math.max(200, this.holder.clientWidth - 2);
      const place = (Math.floor(offsetY / ROW) + Math.min(.999999, offsetX / width)) * this.rowUnits;
      for (const segment of this.segments) {
        if (place < segment.at || place >= segment.at + segment.size) continue;
        const height = segment.y + place - segment.at, spans = this.data.spans;
        const block = segment.blocks.find(i => spans.y[i] <= height && height < spans.y[i] + spans.size[i]);
        return { segment: segment, block: block === undefined ? -1 : block, height: height };
      }
      return null;
    }

    tipAt(place) {
      if (!place) return null;
      const unit = this.data.unit, segment = place.segment;
      const whole = el("div", {}, (segment.isExpandable ? "in an expandable segment of " : "in a segment of ") + Report.bytes(segment.size * unit) +
        ", " + Report.bytes((segment.size - segment.active) * unit) + " of it cached");
      if (place.block >= 0) return this.paint.tipOf(place.block, this.view).concat(whole);
      return [el("b", {}, "cached"), el("div", {}, Report.addressOf(this.data, place.height)), whole];
    }

    listen() {
      const canvas = this.canvas, self = this;
      canvas.addEventListener("pointermove", event =>
        Report.tip(event.clientX, event.clientY, self.tipAt(self.at(event.offsetX, event.offsetY))));
      canvas.addEventListener("pointerleave", () => Report.tip(0, 0, null));
      canvas.addEventListener("click", function (event) {
        const place = self.at(event.offsetX, event.offsetY);
        self.select(place ? place.block : -1);
        self.onSelect(place ? place.block : -1);
      });
    }

    select(i) { this.selected = i; this.schedule(); }

    zoom(factor) {
      this.detail = Math.max(.5, Math.min(32, this.detail * factor));
      this.schedule();
    }

    key(key) {
      const area = this.holder;
      switch (key) {
        case "+": case "=": this.zoom(2); return true;
        case "-": case "_": this.zoom(.5); return true;
        case "0": case "Escape": this.detail = 1; this.schedule(); return true;
        case "ArrowLeft": this.view.look(this.view.moment - Math.max(1, (this.view.to - this.view.from) / 200)); return true;
        case "ArrowRight": this.view.look(this.view.moment + Math.max(1, (this.view.to - this.view.from) / 200)); return true;
        case "ArrowUp": area.scrollTop -= 60; return true;
        case "ArrowDown": area.scrollTop += 60; return true;
        default: return false;
      }
    }
  }

  Report.MomentMap = MomentMap;
})();
