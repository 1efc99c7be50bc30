/* The levels of memory over time, drawn with uPlot. Coarser levels of detail are made here, each
 * from pairs of the one below: the most of two is the most of both, so no peak is lost.
 * SPDX-License-Identifier: MIT */
"use strict";

(function () {
  const el = Report.el;

  /* least and most: level 0 as recorded, each next one half as long. */
  function pyramid(least, most) {
    const levels = [{ least: least, most: most }];
    while (levels[levels.length - 1].most.length > 512) {
      const below = levels[levels.length - 1], n = (below.most.length + 1) >> 1;
      const low = new Float64Array(n), high = new Float64Array(n);
      for (let i = 0; i < n; i++) {
        const other = Math.min(2 * i + 1, below.most.length - 1);
        low[i] = Math.min(below.least[2 * i], below.least[other]);
        high[i] = Math.max(below.most[2 * i], below.most[other]);
      }
      levels.push({ least: low, most: high });
    }
    return levels;
  }
  Report.pyramid = pyramid;

  /* The level at which the range has at most `points` buckets, and the buckets of the range. */
  function cut(data, from, to, points) {
    let level = 0, width = data.bucketEvents;
    while ((to - from) / width > points && data.pyramids.reserved.length > level + 1) { level++; width *= 2; }
    const count = data.pyramids.reserved[level].most.length;
    const first = Math.max(0, Math.floor(from / width) - 1);
    return { level: level, width: width, first: first, end: Math.min(count, Math.ceil(to / width) + 2) };
  }

  const SERIES = [
    { key: "reserved", name: "reserved", text: "held from the driver" },
    { key: "active", name: "active", text: "blocks, with those that wait for another stream" },
    { key: "allocated", name: "allocated", text: "blocks in use" },
    { key: "live", name: "live", text: "what the program asked for: the floor" }];

  /* uPlot's data: places, then for each series its most and its least. */
  function series(data, view, points) {
    const part = cut(data, view.from, view.to, points);
    const n = part.end - part.first, xs = new Array(n), columns = SERIES.map(() => [new Array(n), new Array(n)]);
    for (let i = 0; i < n; i++) {
      const bucket = part.first + i;
      xs[i] = view.place(Math.min(view.end, (bucket + .5) * part.width));
      SERIES.forEach(function (s, k) {
        columns[k][0][i] = data.pyramids[s.key][part.level].most[bucket];
        columns[k][1][i] = data.pyramids[s.key][part.level].least[bucket];
      });
    }
    for (let i = 1; i < n; i++) if (xs[i] <= xs[i - 1]) xs[i] = xs[i - 1] + 1e-6; /* uPlot wants a rise */
    return [xs].concat(columns.flat());
  }

  const BYTE_STEPS = Array.from({ length: 50 }, (_, i) => Math.pow(2, i + 9));
  Report.byteSteps = BYTE_STEPS;

  Report.axisStyle = function () {
    return { stroke: Report.colour("muted"), grid: { stroke: Report.colour("line"), width: 1 },
      ticks: { stroke: Report.colour("line"), width: 1 }, font: "12px system-ui, sans-serif" };
  };

  const KINDS = [
    { name: "out of memory", colour: "oom", sign: "\u25bc" },
    { name: "cache given back, then tried again", colour: "retry", sign: "\u25c6" },
    { name: "cache emptied", colour: "empty", sign: "\u25cb" }];

  function drawMark(context, kind, x, y, size) {
    context.beginPath();
    if (kind === 0) { context.moveTo(x - size, y - size); context.lineTo(x + size, y - size); context.lineTo(x, y + size); }
    else if (kind === 1) { context.moveTo(x, y - size); context.lineTo(x + size, y); context.lineTo(x, y + size); context.lineTo(x - size, y); }
    else context.arc(x, y, size * .8, 0, 7);
    context.closePath();
    if (kind === 2) context.stroke(); else context.fill();
  }

  class Timeline {
    constructor(recording, data, view, holder) {
      Object.assign(this, { recording, data, view, holder });
      data.pyramids = {};
      for (const s of SERIES) data.pyramids[s.key] = pyramid(data.least[s.key], data.most[s.key]);
      this.marks = parseMarks(recording.marks.list);
      this.shown = { reserved: true, active: recording.streams.length > 1, allocated: false, live: true };
      this.isMarked = [true, true, true];
      this.build();
      new ResizeObserver(() => this.resize()).observe(holder);
      view.listen(what => {
        if (what === "moment") this.plot.redraw(false); else this.refresh();
        /* Who works with keys hears what changed. */
        if (document.activeElement === holder) { if (what === "moment") this.readAt(view.moment); else this.readRange(); }
      });
      Report.onTheme(() => this.build());
    }

    build() {
      if (this.plot) this.plot.destroy();
      const colour = Report.colour, view = this.view, self = this;
      const lines = SERIES.flatMap(s => [
        { label: s.name, show: this.shown[s.key], stroke: colour(s.key), width: s.key === "live" || s.key === "reserved" ? 1.5 : 1,
          fill: s.key === "reserved" ? colour("reserved-fill") : s.key === "live" ? colour("live-fill") : null, points: { show: false } },
        { label: s.name + ", least", show: this.shown[s.key], stroke: "transparent", width: 0, points: { show: false } }]);
      this.plot = new uPlot({
        width: Math.max(280, this.holder.clientWidth), height: this.height(), padding: [16, 12, 0, 0],
        legend: { show: false },
        cursor: { y: false, drag: { x: true, y: false, setScale: false }, points: { size: 6 } },
        select: { show: true },
        scales: { x: { time: false, range: () => [view.place(view.from), view.place(view.to)] },
          y: { range: (u, least, most) => [0, this.top(most)] } },
        axes: [Object.assign(Report.axisStyle(), { values: (u, splits) => splits.map(v => view.label(v)), space: 90 }),
          Object.assign(Report.axisStyle(), { values: (u, splits) => splits.map(Report.shortBytes), size: 74, incrs: BYTE_STEPS })],
        series: [{}].concat(lines),
        hooks: { draw: [u => self.drawOver(u)], setCursor: [u => self.read(u)],
          setSelect: [u => self.select(u)],
          ready: [u => self.listen(u)] }
      }, series(this.data, view, this.points()), this.holder);
    }

    height() { return innerWidth < 700 ? 240 : 320; }
    points() { return Math.max(200, Math.floor(this.holder.clientWidth * 1.2)); }

    top(most) {
      const limit = this.recording.limit_bytes || 0;
      const top = Math.max(most || 1, limit <= (most || 1) * 2 ? limit : 0);
      return top * 1.06;
    }

    refresh() { this.plot.setData(series(this.data, this.view, this.points()), true); }

    resize() {
      const width = this.holder.clientWidth;
      if (width < 50 || width === this.plot.width) return;
      this.plot.setSize({ width: width, height: this.height() });
      this.refresh();
    }

    toggle(key, isShown) {
      this.shown[key] = isShown;
      const k = SERIES.findIndex(s => s.key === key);
      this.plot.setSeries(2 * k + 1, { show: isShown });
      this.plot.setSeries(2 * k + 2, { show: isShown });
    }

    toggleMarks(kind, isShown) { this.isMarked[kind] = isShown; this.plot.redraw(false); }

    listen(u) {
      const view = this.view;
      u.over.addEventListener("click", event => {
        if (this.hasDragged) { this.hasDragged = false; return; }
        view.look(view.event(u.posToVal(event.offsetX, "x")));
      });
      u.over.addEventListener("dblclick", () => view.reset());
      u.over.addEventListener("wheel", function (event) {
        if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
        event.preventDefault();
        view.zoom((event.deltaY || event.deltaX) > 0 ? 1.25 : .8, view.event(u.posToVal(event.offsetX, "x")));
      }, { passive: false });
    }

    select(u) {
      if (u.select.width < 5) return;
      const from = this.view.event(u.posToVal(u.select.left, "x"));
      const to = this.view.event(u.posToVal(u.select.left + u.select.width, "x"));
      this.hasDragged = true;
      u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
      this.view.show(from, to);
    }

    drawOver(u) {
      const context = u.ctx, box = u.bbox, ratio = devicePixelRatio || 1, colour = Report.colour;
      context.save();
      context.beginPath();
      context.rect(box.left, box.top - 14 * ratio, box.width, box.height + 14 * ratio);
      context.clip();
      this.drawLimit(u, context, box, ratio);
      const drawn = [-100, -100, -100]; /* where the last sign of each kind stands: none on another */
      for (const mark of this.marks) {
        if (!this.isMarked[mark.kind]) continue;
        const x = u.valToPos(this.view.place(mark.event), "x", true);
        if (x < box.left - 5 || x > box.left + box.width + 5) continue;
        context.fillStyle = context.strokeStyle = colour(KINDS[mark.kind].colour);
        context.globalAlpha = mark.kind === 0 ? .45 : .22;
        context.fillRect(x - ratio / 2, box.top, ratio, box.height);
        context.globalAlpha = 1;
        if (x - drawn[mark.kind] < 9 * ratio) continue;
        drawn[mark.kind] = x;
        drawMark(context, mark.kind, x, box.top - 6 * ratio, 4 * ratio);
      }
      const x = u.valToPos(this.view.place(this.view.moment), "x", true);
      context.fillStyle = colour("select");
      context.fillRect(x - ratio / 2, box.top, ratio, box.height);
      context.restore();
    }

    drawLimit(u, context, box, ratio) {
      const limit = this.recording.limit_bytes;
      if (!limit || limit > u.scales.y.max) return;
      const y = u.valToPos(limit, "y", true);
      context.strokeStyle = context.fillStyle = Report.colour("limit");
      context.lineWidth = 1.5 * ratio;
      context.setLineDash([6 * ratio, 4 * ratio]);
      context.beginPath(); context.moveTo(box.left, y); context.lineTo(box.left + box.width, y); context.stroke();
      context.setLineDash([]);
      context.font = 12 * ratio + "px system-ui, sans-serif";
      context.textAlign = "right";
      context.textBaseline = "bottom";
      context.fillText("limit " + Report.bytes(limit), box.left + box.width - 6 * ratio, y - 3 * ratio);
    }

    read(u) {
      if (u.cursor.left < 0 || u.cursor.left === undefined || u.cursor.idx === null) return;
      this.readAt(this.view.event(u.posToVal(u.cursor.left, "x")));
    }

    /* The levels around an event, in words. */
    readAt(event) {
      const view = this.view, data = this.data;
      if (event < 0 || event > view.end || !this.readout) return;
      const part = cut(data, view.from, view.to, this.points());
      const bucket = Math.min(data.pyramids.live[part.level].most.length - 1, Math.floor(event / part.width));
      const near = this.nearestMark(event);
      this.readout.replaceChildren(el("span", {}, view.name(event), ": "),
        ...SERIES.flatMap(s => [" ", s.name + " ", el("b", {}, Report.bytes(data.pyramids[s.key][part.level].most[bucket])), " "]),
        part.width > 1 ? "(the most of " + Report.count(part.width) + " events)" : "", near ? "; " + near : "");
    }

    readRange() {
      const view = this.view, data = this.data, part = cut(data, view.from, view.to, this.points());
      const most = key => data.pyramids[key][part.level].most.subarray(part.first, part.end).reduce((a, b) => Math.max(a, b), 0);
      this.readout.textContent = "Shown: from " + view.name(view.from) + ", to " + view.name(view.to) + "; live up to " +
        Report.bytes(most("live")) + ", reserved up to " + Report.bytes(most("reserved")) + ".";
    }

    nearestMark(event) {
      const reach = (this.view.to - this.view.from) / 150;
      let best = null;
      for (const mark of this.marks)
        if (this.isMarked[mark.kind] && Math.abs(mark.event - event) < reach &&
            (!best || Math.abs(mark.event - event) < Math.abs(best.event - event))) best = mark;
      if (!best) return "";
      const bytes = Report.bytes(best.bytes);
      return best.kind === 0 ? "out of memory at event " + Report.count(best.event) + ": " + bytes + " asked for"
        : KINDS[best.kind].name + " at event " + Report.count(best.event) + ": " + bytes;
    }
  }

  function parseMarks(list) {
    if (!list) return [];
    return list.split(";").map(function (item) {
      const numbers = item.split(",").map(Number);
      return { kind: numbers[0], event: numbers[1], bytes: numbers[2], free: numbers[3] };
    });
  }

  function legend(timeline, recording) {
    const counts = [recording.marks.oom_count, recording.marks.retry_count, recording.marks.empty_count];
    const buttons = SERIES.map(s => el("button", { type: "button", "aria-pressed": String(timeline.shown[s.key]), title: s.text,
      onclick: function () {
        const isOn = this.getAttribute("aria-pressed") !== "true";
        this.setAttribute("aria-pressed", String(isOn));
        timeline.toggle(s.key, isOn);
      } }, el("span", { class: "swatch", style: "background:var(--" + s.key + ")" }), s.name));
    const marks = KINDS.map((kind, k) => counts[k] === 0 ? null : el("button", { type: "button", "aria-pressed": "true",
      onclick: function () {
        const isOn = this.getAttribute("aria-pressed") !== "true";
        this.setAttribute("aria-pressed", String(isOn));
        timeline.toggleMarks(k, isOn);
      } }, el("span", { class: "mark", style: "color:var(--" + kind.colour + ")" }, kind.sign), kind.name + ": " + Report.count(counts[k])));
    return el("div", { class: "legend", role: "group", "aria-label": "What the timeline shows" }, ...buttons, ...marks.filter(Boolean));
  }

  /* The same as text: twenty parts of the recording. */
  function textTable(data, view) {
    const rows = [], parts = Math.min(20, data.buckets);
    for (let i = 0; i < parts; i++) {
      const first = Math.floor(i * data.buckets / parts), end = Math.max(first + 1, Math.floor((i + 1) * data.buckets / parts));
      const most = key => data.most[key].subarray(first, end).reduce((a, b) => Math.max(a, b), 0);
      rows.push([Report.count(first * data.bucketEvents), Report.bytes(most("live")), Report.bytes(most("allocated")),
        Report.bytes(most("active")), Report.bytes(most("reserved"))]);
    }
    return Report.table("The most of each part of the recording", ["from event", "live", "allocated", "active", "reserved"]
      .map(name => ({ name: name, isNumber: true })), rows);
  }

  Report.addTimeline = function (recording, data, view) {
    const chart = el("div", { class: "chart", id: "timeline-chart", tabindex: "0", role: "application",
      "aria-label": "Live, allocated, active and reserved memory over time. Peak live " + Report.bytes(recording.peak_live.bytes) +
        ", peak reserved " + Report.bytes(recording.peak_reserved.bytes) + ". Arrow keys move, plus and minus zoom, 0 shows all, comma and full stop move the moment. The table below has the same as text." });
    const readout = el("p", { class: "readout", id: "timeline-readout", role: "status" }, "Point at the chart to read it; drag to zoom, click to look at a moment.");
    const section = Report.section("timeline", "Timeline",
      "What the program held (blue) and what was reserved for it. The gap between the two is memory that the allocator keeps and no tensor uses.");
    const toolbar = el("div", { class: "toolbar" });
    section.append(toolbar, chart, readout);
    const timeline = new Timeline(recording, data, view, chart);
    timeline.readout = readout;
    toolbar.append(legend(timeline, recording), el("span", { class: "switch push", role: "group", "aria-label": "Zoom" },
      el("button", { type: "button", onclick: () => view.zoom(.5), "aria-label": "Zoom in" }, "+"),
      el("button", { type: "button", onclick: () => view.zoom(2), "aria-label": "Zoom out" }, "\u2212"),
      el("button", { type: "button", onclick: () => view.reset() }, "all")));
    chart.addEventListener("keydown", function (event) {
      if (!event.ctrlKey && !event.metaKey && !event.altKey && Report.timeKeys(view, event.key)) event.preventDefault();
    });
    const table = el("details", { class: "table" }, el("summary", {}, "The same as a table"));
    table.addEventListener("toggle", () => { if (table.open && table.children.length === 1) table.append(textTable(data, view)); });
    section.append(table, Report.how(
      el("p", {}, "Live is what the program asked for and has not given back; no allocator that leaves data where they are can need less. ",
        "Allocated is the same in the sizes of blocks, active adds blocks whose free waits for another stream, and reserved is what was taken from the driver. ",
        "Many events share a point: each point shows the most of its events, so no peak is lost; zoom in for single events."),
      el("p", {}, "A tall gap between live and reserved that stays means that the cache holds memory which does not fit what is asked for. ",
        "A failure (\u25bc) under a tall gap is fragmentation; a failure where live itself reaches the limit is not, and no setting helps against it. ",
        "\u25c6 marks a request for which the allocator first gave cached memory back to the driver, which takes time."),
      recording.limit_bytes ? null : el("p", {}, "The limit under which this was recorded is not in a snapshot; unfrag report --limit SIZE draws it.")));
    return timeline;
  };
})();
