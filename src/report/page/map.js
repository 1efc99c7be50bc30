/* The memory map over time: addresses upwards, time to the right, each block a rectangle. Addresses
 * that were never held are left out. SPDX-License-Identifier: MIT */
"use strict";

(function () {
  const el = Report.el;
  const GUTTER = 74, RIGHT = 12, AXIS = 22;
  /* While the picture moves, only so many blocks are drawn, the largest; the rest follow when it
   * rests. */
  const MOVING_BLOCKS = 60000, REST_MS = 160;

  class TimeMap {
    constructor(recording, data, view, paint, holder, onSelect) {
      Object.assign(this, { recording, data, view, paint, holder, onSelect });
      this.order = Report.drawingOrder(data.spans);
      this.selected = -1;
      this.resetHeight();
      this.canvas = el("canvas", {});
      this.box = el("div", { class: "box", hidden: true });
      holder.append(this.canvas, this.box);
      this.isShown = true;
      this.listen();
      new ResizeObserver(() => this.schedule()).observe(holder);
      view.listen(what => this.schedule(what));
      Report.onTheme(() => this.schedule());
    }

    resetHeight() { this.low = 0; this.high = Math.max(1, this.data.height); }

    schedule(what) {
      if (what === "range" && this.order.length > MOVING_BLOCKS) {
        this.isMoving = true;
        clearTimeout(this.resting);
        this.resting = setTimeout(() => { this.isMoving = false; this.schedule(); }, REST_MS);
      }
      if (this.isScheduled || !this.isShown) return;
      this.isScheduled = true;
      requestAnimationFrame(() => { this.isScheduled = false; this.draw(); });
    }

    size() {
      const ratio = Math.min(2, devicePixelRatio || 1), width = Math.max(200, this.holder.clientWidth);
      return { ratio: ratio, width: width, height: innerWidth < 700 ? 360 : 520 };
    }

    draw() {
      const size = this.size(), canvas = this.canvas, ratio = size.ratio;
      if (this.holder.clientWidth < 50) return;
      if (canvas.width !== Math.round(size.width * ratio) || canvas.height !== Math.round(size.height * ratio)) {
        canvas.width = Math.round(size.width * ratio);
        canvas.height = Math.round(size.height * ratio);
        canvas.style.height = size.height + "px";
      }
      const wide = Math.round((size.width - GUTTER - RIGHT) * ratio), tall = Math.round((size.height - AXIS) * ratio);
      if (!this.raster || this.raster.width !== wide || this.raster.height !== tall) this.raster = new Report.Raster(wide, tall);
      this.fill(wide, tall);
      const context = canvas.getContext("2d");
      context.setTransform(1, 0, 0, 1, 0, 0);
      context.fillStyle = Report.colour("card");
      context.fillRect(0, 0, canvas.width, canvas.height);
      context.putImageData(this.raster.image, Math.round(GUTTER * ratio), 0);
      context.setTransform(ratio, 0, 0, ratio, 0, 0);
      this.drawAxes(context, size);
      this.drawOver(context, size);
    }

    /* Pixels of the raster from events. */
    across(wide) {
      const view = this.view, first = view.place(view.from), scale = wide / Math.max(1e-9, view.place(view.to) - first);
      return view.isTime ? event => (Report.timeOf(this.data, event) - first) * scale : event => (event - first) * scale;
    }

    fill(wide, tall) {
      const raster = this.raster, data = this.data, view = this.view, spans = data.spans, extents = data.extents;
      const x = this.across(wide), low = this.low, high = this.high, scale = tall / (high - low);
      const from = view.from, to = view.to;
      raster.clear(Report.pixel("outside"));
      const cached = Report.pixel("cached"), edge = Report.mix(cached, Report.pixel("reserved"), .55);
      for (let i = 0; i < extents.count; i++) {
        const y = extents.y[i], top = y + extents.size[i];
        if (extents.to[i] <= from || extents.from[i] >= to || top <= low || y >= high) continue;
        const left = x(extents.from[i]), right = x(extents.to[i]);
        raster.rectangle(left, tall - (top - low) * scale, right, tall - (y - low) * scale, cached);
        if (extents.size[i] * scale > 6) raster.rectangle(left, tall - (y - low) * scale - 1, right, tall - (y - low) * scale, edge);
      }
      const palette = this.paint.palette(), classes = this.paint.classes, hits = this.paint.hits, order = this.order;
      const faint = palette.map(colour => Report.mix(cached, colour, .22)), hit = Report.pixel("hit");
      for (let pass = 0; pass < (hits ? 2 : 1); pass++) {
        for (let k = this.isMoving && !hits ? order.length - MOVING_BLOCKS : 0; k < order.length; k++) {
          const i = order[k];
          if (spans.to[i] <= from || spans.from[i] >= to) continue;
          const y = spans.y[i], top = y + spans.size[i];
          if (top <= low || y >= high || (hits && hits[i] !== pass)) continue;
          const colour = !hits ? palette[classes[i]] : pass ? hit : faint[classes[i]];
          const bottom = tall - (y - low) * scale, upper = tall - (top - low) * scale;
          const thick = hits && pass && bottom - upper < 1.5 ? 1.5 - (bottom - upper) : 0; /* a hit is seen */
          raster.rectangle(x(spans.from[i]), upper - thick, x(spans.to[i]) + thick, bottom, colour);
        }
      }
    }

    drawAxes(context, size) {
      const view = this.view, wide = size.width - GUTTER - RIGHT, tall = size.height - AXIS, unit = this.data.unit;
      context.font = "12px system-ui, sans-serif";
      context.fillStyle = Report.colour("muted");
      context.strokeStyle = Report.colour("line");
      context.textBaseline = "middle";
      context.textAlign = "right";
      const bytes = (this.high - this.low) * unit;
      const step = Report.byteSteps.find(s => bytes / s <= 7) || bytes;
      for (let at = Math.ceil(this.low * unit / step) * step; at <= this.high * unit; at += step) {
        const y = tall - (at / unit - this.low) / (this.high - this.low) * tall;
        context.fillText(Report.shortBytes(at), GUTTER - 8, Math.min(tall - 6, Math.max(7, y)));
        context.fillRect(GUTTER - 5, Math.round(y), 5, 1);
      }
      context.textAlign = "center";
      const first = view.place(view.from), span = view.place(view.to) - first, ticks = Math.max(2, Math.floor(wide / 110));
      const raw = span / ticks, power = Math.pow(10, Math.floor(Math.log10(Math.max(raw, 1e-9))));
      const nice = [1, 2, 5, 10].map(m => m * power).find(s => s >= raw) || raw;
      for (let at = Math.ceil(first / nice) * nice; at <= first + span; at += nice) {
        const x = GUTTER + (at - first) / span * wide;
        context.fillRect(Math.round(x), tall, 1, 4);
        if (x > GUTTER + 14 && x < GUTTER + wide - 14) context.fillText(view.label(at), x, tall + 13);
      }
    }

    drawOver(context, size) {
      const wide = size.width - GUTTER - RIGHT, tall = size.height - AXIS, x = this.across(wide), spans = this.data.spans;
      const y = height => tall - (height - this.low) / (this.high - this.low) * tall;
      context.save();
      context.beginPath();
      context.rect(GUTTER, 0, wide, tall);
      context.clip();
      context.fillStyle = Report.colour("select");
      context.fillRect(Math.round(GUTTER + x(this.view.moment)), 0, 1, tall);
      if (this.selected >= 0) {
        const i = this.selected, left = GUTTER + x(spans.from[i]), top = y(spans.y[i] + spans.size[i]);
        context.strokeStyle = Report.colour("select");
        context.lineWidth = 2;
        context.strokeRect(left - 1, top - 1, Math.max(3, x(spans.to[i]) - x(spans.from[i])) + 2, Math.max(3, y(spans.y[i]) - top) + 2);
      }
      context.restore();
    }

    /* The event and the height under a place of the canvas; null outside. */
    at(offsetX, offsetY) {
      const size = this.size(), wide = size.width - GUTTER - RIGHT, tall = size.height - AXIS;
      if (offsetX < GUTTER || offsetX > GUTTER + wide || offsetY < 0 || offsetY > tall) return null;
      const view = this.view, first = view.place(view.from);
      const place = first + (offsetX - GUTTER) / wide * (view.place(view.to) - first);
      return { event: view.event(place), height: this.low + (tall - offsetY) / tall * (this.high - this.low) };
    }

    /* The block there; a pixel may hold many: the largest counts. */
    blockAt(place) {
      const spans = this.data.spans, size = this.size();
      const near = (this.view.to - this.view.from) / size.width / 2, close = (this.high - this.low) / size.height / 2;
      let best = -1, exact = -1;
      for (let i = 0; i < spans.count; i++) {
        if (spans.from[i] - near > place.event || spans.to[i] + near < place.event) continue;
        const y = spans.y[i];
        if (y - close > place.height || y + spans.size[i] + close < place.height) continue;
        const isExact = spans.from[i] <= place.event && place.event < spans.to[i] && y <= place.height && place.height < y + spans.size[i];
        if (isExact) exact = i;
        if (best < 0 || spans.size[i] > spans.size[best]) best = i;
      }
      return exact >= 0 ? exact : best;
    }

    extentAt(place) {
      const extents = this.data.extents;
      for (let i = 0; i < extents.count; i++)
        if (extents.from[i] <= place.event && place.event < extents.to[i] && extents.y[i] <= place.height &&
            place.height < extents.y[i] + extents.size[i]) return i;
      return -1;
    }

    tipAt(place) {
      const block = this.blockAt(place), unit = this.data.unit;
      if (block >= 0) return this.paint.tipOf(block, this.view);
      const extent = this.extentAt(place), address = Report.addressOf(this.data, place.height);
      if (extent < 0) return [el("b", {}, "not held"), el("div", {}, address)];
      return [el("b", {}, "cached"), el("div", {}, address + ", in " +
        (this.data.extents.kind[extent] & 1 ? "a mapped part" : "a segment") + " of " + Report.bytes(this.data.extents.size[extent] * unit))];
    }

    zoomHeight(factor, at) {
      const centre = at === undefined ? (this.low + this.high) / 2 : at;
      const height = Math.min(this.data.height, Math.max(8, (this.high - this.low) * factor));
      const part = (centre - this.low) / (this.high - this.low);
      this.low = Math.max(0, Math.min(this.data.height - height, centre - part * height));
      this.high = Math.max(this.low + 1, this.low + height);
      this.schedule("range");
    }

    panHeight(part) {
      const height = this.high - this.low;
      this.low = Math.max(0, Math.min(this.data.height - height, this.low + height * part));
      this.high = this.low + height;
      this.schedule("range");
    }

    reset() { this.resetHeight(); this.view.reset(); this.schedule(); }

    select(i) {
      this.selected = i;
      this.schedule();
    }

    /* Brings a block into view, with room around it. */
    reveal(i) {
      const spans = this.data.spans, height = Math.max(64, spans.size[i] * 6), centre = spans.y[i] + spans.size[i] / 2;
      this.low = Math.max(0, centre - height / 2);
      this.high = Math.min(this.data.height, this.low + height);
      this.view.show(spans.from[i] - (spans.to[i] - spans.from[i]) * .5 - 2, spans.to[i] + (spans.to[i] - spans.from[i]) * .5 + 2);
      this.select(i);
    }

    listen() {
      const canvas = this.canvas, self = this;
      let start = null;
      canvas.addEventListener("pointerdown", function (event) {
        if (event.button !== 0) return;
        start = { x: event.offsetX, y: event.offsetY, place: self.at(event.offsetX, event.offsetY) };
        canvas.setPointerCapture(event.pointerId);
      });
      canvas.addEventListener("pointermove", function (event) {
        if (start && start.place) self.showBox(start, event.offsetX, event.offsetY);
        const place = self.at(event.offsetX, event.offsetY);
        Report.tip(event.clientX, event.clientY, place && !start ? self.tipAt(place) : null);
      });
      canvas.addEventListener("pointerup", function (event) {
        const from = start;
        start = null;
        self.box.hidden = true;
        if (!from || !from.place) return;
        if (Math.abs(event.offsetX - from.x) < 4 && Math.abs(event.offsetY - from.y) < 4) self.click(from.place);
        else self.zoomTo(from, event.offsetX, event.offsetY);
      });
      canvas.addEventListener("pointercancel", () => { start = null; self.box.hidden = true; });
      canvas.addEventListener("pointerleave", () => Report.tip(0, 0, null));
      canvas.addEventListener("dblclick", () => self.reset());
      canvas.addEventListener("wheel", event => self.wheel(event), { passive: false });
    }

    wheel(event) {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      const place = this.at(event.offsetX, event.offsetY);
      if (!place) return;
      const factor = (event.deltaY || event.deltaX) > 0 ? 1.25 : .8;
      if (!event.shiftKey) this.zoomHeight(factor, place.height);
      this.view.zoom(factor, place.event);
    }

    click(place) {
      const block = this.blockAt(place);
      this.view.look(place.event);
      this.select(block);
      this.onSelect(block);
    }

    clampTo(x, y) {
      const size = this.size();
      return { x: Math.max(GUTTER, Math.min(size.width - RIGHT, x)), y: Math.max(0, Math.min(size.height - AXIS, y)) };
    }

    showBox(start, x, y) {
      const to = this.clampTo(x, y), style = this.box.style;
      this.box.hidden = false;
      style.left = Math.min(start.x, to.x) + "px";
      style.top = Math.min(start.y, to.y) + "px";
      style.width = Math.abs(to.x - start.x) + "px";
      style.height = Math.abs(to.y - start.y) + "px";
    }

    zoomTo(start, x, y) {
      const to = this.clampTo(x, y), other = this.at(to.x, to.y);
      if (!other) return;
      /* A flat or narrow box zooms in one direction only. */
      if (Math.abs(to.y - start.y) >= 8) {
        this.low = Math.max(0, Math.min(start.place.height, other.height));
        this.high = Math.max(this.low + 8, Math.max(start.place.height, other.height));
      }
      if (Math.abs(to.x - start.x) >= 8)
        this.view.show(Math.min(start.place.event, other.event), Math.max(start.place.event, other.event));
      this.schedule();
    }

    key(key) {
      switch (key) {
        case "ArrowUp": this.panHeight(.2); return true;
        case "ArrowDown": this.panHeight(-.2); return true;
        case "+": case "=": this.zoomHeight(.5); break;
        case "-": case "_": this.zoomHeight(2); break;
        case "0": case "Escape": this.reset(); return true;
        default: break;
      }
      return Report.timeKeys(this.view, key);
    }
  }

  Report.TimeMap = TimeMap;
})();
