/* The section of the memory map: the two pictures, their tools, search, and the same as a table.
 * SPDX-License-Identifier: MIT */
"use strict";

(function () {
  const el = Report.el;

  class Explorer {
    constructor(recording, data, view) {
      Object.assign(this, { recording, data, view });
      this.paint = new Report.Paint(recording, data);
      this.hasTime = data.events > 0;
      this.details = el("div", { "aria-live": "polite" });
      this.legend = el("div", { class: "legend" });
      this.count = el("span", { class: "readout", id: "search-result", role: "status" });
      this.now = el("span", { id: "map-moment", class: "readout" });
    }

    build() {
      const cached = el("span", { class: "swatch cached" });
      const section = Report.section("map", "Memory map", [this.hasTime ? "Every block where it lay and as long as it lived." : "Every block where it lay.",
        cached, "is reserved and in no block: memory that is lost to everything that does not fit into it."]);
      this.timeHolder = el("div", { class: "map", id: "map-time", tabindex: "0", role: "application", "aria-label":
        "Memory map: addresses upwards, time to the right. Arrow keys move, plus and minus zoom, 0 shows all. The blocks are listed in the table below." });
      this.momentHolder = el("div", { class: "map scroll", id: "map-moment-view", tabindex: "0", role: "application", hidden: true, "aria-label":
        "Memory map at one moment: segments as bars. Left and right change the moment, plus and minus the scale. The blocks are listed in the table below." });
      section.append(this.toolbar(), this.searchBar(), this.timeHolder, this.momentHolder, this.now, this.legend, this.details, this.table(), this.how());
      const choose = i => this.choose(i);
      if (this.hasTime) this.time = new Report.TimeMap(this.recording, this.data, this.view, this.paint, this.timeHolder, choose);
      this.moment = new Report.MomentMap(this.recording, this.data, this.view, this.paint, this.momentHolder, choose);
      for (const [holder, key] of [[this.timeHolder, "time"], [this.momentHolder, "moment"]])
        holder.addEventListener("keydown", event => {
          if (!event.ctrlKey && !event.metaKey && !event.altKey && this[key] && this[key].key(event.key)) event.preventDefault();
        });
      this.view.listen(() => { this.tellMoment(); this.refreshTable(); });
      Report.onTheme(() => this.redraw());
      this.showMode(this.hasTime ? "time" : "moment");
      this.redraw();
      this.tellMoment();
      return this;
    }

    redraw() {
      this.legend.replaceChildren(...this.paint.legend());
      if (this.time) this.time.schedule();
      this.moment.schedule();
    }

    toolbar() {
      const modes = el("span", { class: "switch", role: "group", "aria-label": "Which map" },
        el("button", { type: "button", id: "map-over-time", onclick: () => this.showMode("time") }, "over time"),
        el("button", { type: "button", id: "map-at-moment", onclick: () => this.showMode("moment") }, "at one moment"));
      const colours = el("select", { id: "map-colour", onchange: event => { this.paint.choose(event.target.value); this.redraw(); } },
        this.paint.modes().map(([value, name]) => el("option", { value: value }, name)));
      const order = el("select", { id: "map-order", onchange: event => this.moment.sort(event.target.value) },
        [["address", "address"], ["cached", "most cached"], ["size", "size"]].map(([value, name]) => el("option", { value: value }, name)));
      this.orderLabel = el("label", {}, "segments by", order);
      const places = el("select", { id: "map-place", onchange: event => { if (event.target.value !== "") this.view.look(Number(event.target.value)); } },
        this.recording.moments.map(m => el("option", { value: m.event }, Report.momentName(this.recording, m))),
        el("option", { value: "", hidden: true }, "another"));
      return el("div", { class: "toolbar" }, this.hasTime ? modes : null, el("label", {}, "colour by", colours), this.orderLabel,
        this.hasTime ? el("label", {}, "moment", places) : null,
        el("span", { class: "switch push", role: "group", "aria-label": "Zoom of the map" },
          el("button", { type: "button", id: "map-in", "aria-label": "Zoom in", onclick: () => this.zoom(.5) }, "+"),
          el("button", { type: "button", id: "map-out", "aria-label": "Zoom out", onclick: () => this.zoom(2) }, "\u2212"),
          el("button", { type: "button", id: "map-all", onclick: () => this.zoom(0) }, "all")));
    }

    zoom(factor) {
      if (this.mode === "moment") return factor === 0 ? this.moment.key("0") : this.moment.zoom(1 / factor);
      if (factor === 0) return this.time.reset();
      this.time.zoomHeight(factor);
      return this.view.zoom(factor);
    }

    searchBar() {
      const input = el("input", { type: "search", id: "map-search", placeholder: this.recording.has_stacks ? "file or function, >100MiB, 0x7f..." : ">100MiB, <1KiB, 0x7f..., stream default",
        "aria-label": "Search blocks by size, address, stream or frame", autocomplete: "off", spellcheck: "false" });
      let timer = 0;
      input.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(() => this.search(input.value), 150); });
      input.addEventListener("keydown", event => {
        if (event.key === "Enter") { clearTimeout(timer); this.search(input.value, true); this.step(event.shiftKey ? -1 : 1); event.preventDefault(); }
        if (event.key === "Escape") { input.value = ""; this.search(""); }
      });
      this.previous = el("button", { type: "button", disabled: true, onclick: () => this.step(-1) }, "previous");
      this.next = el("button", { type: "button", id: "search-next", disabled: true, onclick: () => this.step(1) }, "next");
      return el("div", { class: "toolbar" }, el("label", { for: "map-search" }, "find"), input, this.previous, this.next, this.count);
    }

    search(text, isKept) {
      if (isKept && text === this.searched) return;
      this.searched = text;
      this.paint.search(text);
      this.found = null;
      const hits = this.paint.hits, spans = this.data.spans;
      this.previous.disabled = this.next.disabled = !hits || this.paint.hitCount === 0;
      this.count.textContent = !hits ? "" : Report.plural(this.paint.hitCount, "block") + (this.paint.hitCount > 0 ? ", the largest " + Report.bytes(this.paint.hitBytes) : "");
      if (hits && this.paint.hitCount > 0) {
        this.found = [];
        for (let i = 0; i < spans.count; i++) if (hits[i]) this.found.push(i);
        this.found.sort((a, b) => spans.size[b] - spans.size[a] || spans.from[a] - spans.from[b]);
        this.at = -1;
      }
      this.redraw();
      this.refreshTable();
    }

    /* The next of what was found, largest first. */
    step(by) {
      if (!this.found) return;
      this.at = (this.at + by + this.found.length) % this.found.length;
      const i = this.found[this.at];
      if (this.mode === "time") this.time.reveal(i);
      this.view.look(this.data.spans.from[i]);
      this.choose(i);
    }

    showMode(mode) {
      this.mode = mode;
      this.timeHolder.hidden = mode !== "time";
      this.momentHolder.hidden = mode === "time";
      this.orderLabel.hidden = mode === "time";
      if (this.time) this.time.isShown = mode === "time";
      this.moment.isShown = mode !== "time";
      for (const [id, name] of [["map-over-time", "time"], ["map-at-moment", "moment"]]) {
        const button = document.getElementById(id);
        if (button) button.setAttribute("aria-pressed", String(name === mode));
      }
      this.redraw();
      this.tellMoment();
      this.refreshTable();
    }

    choose(i) {
      if (this.time) this.time.select(i);
      this.moment.select(i);
      this.details.replaceChildren(...(i < 0 ? [] : [this.paint.listOf(i, this.view)]));
    }

    tellMoment() {
      if (!this.hasTime) return;
      const segments = this.mode === "moment" ? Report.plural(Report.stateAt(this.data, this.view.moment).length, "segment") + ", " : "";
      this.now.textContent = "The moment that is looked at: " + segments + this.view.name(this.view.moment) +
        (this.mode === "moment" ? ". Click the timeline for another." : ". Click to choose another; drag to zoom, Ctrl and the wheel too.");
      const places = document.getElementById("map-place");
      if (places) places.value = this.recording.moments.some(m => m.event === this.view.moment) ? String(this.view.moment) : "";
    }

    table() {
      this.tableBody = el("div", {});
      this.tableDetails = el("details", { class: "table", id: "map-table" }, el("summary", {}, "The largest blocks as a table"), this.tableBody);
      this.tableDetails.addEventListener("toggle", () => this.refreshTable());
      return this.tableDetails;
    }

    refreshTable() {
      if (!this.tableDetails || !this.tableDetails.open) return;
      const spans = this.data.spans, view = this.view, hits = this.paint.hits, list = [];
      for (let i = 0; i < spans.count; i++) {
        const isIn = this.mode === "moment" ? spans.from[i] <= view.moment && view.moment < spans.to[i]
          : spans.from[i] < view.to && spans.to[i] > view.from;
        if (isIn && (!hits || hits[i])) list.push(i);
      }
      list.sort((a, b) => spans.size[b] - spans.size[a] || spans.from[a] - spans.from[b]);
      const rows = list.slice(0, 50).map(i => [
        el("button", { type: "button", onclick: () => { this.choose(i); } }, Report.addressOf(this.data, spans.y[i])),
        Report.bytes(spans.size[i] * this.data.unit), Report.count(spans.from[i]), spans.isLeft[i] ? "-" : Report.count(spans.to[i]),
        this.recording.streams[spans.stream[i]], spans.stack[i] > 0 ? this.paint.frameName(spans.stack[i] - 1) : "-"]);
      this.tableBody.replaceChildren(Report.table("The " + rows.length + " largest of " + Report.plural(list.length, "block") +
        (this.mode === "moment" ? " at this moment" : " in this range") + (hits ? " that were found" : ""),
        [{ name: "address", isShort: true }, { name: "size", isNumber: true }, { name: "from event", isNumber: true }, { name: "to event", isNumber: true },
          { name: "stream", isShort: true }, { name: "allocated by" }], rows));
    }

    how() {
      const skipped = this.recording.skipped_blocks;
      return Report.how(
        el("p", {}, "Upwards stand addresses; those that were never held are left out, so the height is what was held at any time. ",
          "To the right runs time. A block is as tall as it is large and as long as it lived."),
        el("p", {}, "Fragmentation is cached memory between blocks: a long thin block in an otherwise empty segment pins it, because PyTorch can give back whole segments only. ",
          "Many thin stripes can add up to gigabytes that cannot serve one large request. Whole segments without a block are only cached: they are given back when memory is short."),
        el("p", {}, "Find takes sizes (>100MiB, <1KiB, 64MiB), addresses (0x7f...), stream NAME, pool NAME, and parts of a file or function name where stacks were recorded; Enter goes from one to the next, largest first."),
        skipped > 0 ? el("p", {}, Report.plural(skipped, "block") + " that hardly show are left out of the map, none larger than " + Report.bytes(this.recording.skipped_bytes_most) +
          " and none that lived longer than " + Report.plural(this.recording.skipped_events_most, "event") + ". The timeline and all figures count them.") : null);
    }
  }

  Report.addMap = (recording, data, view) => new Explorer(recording, data, view).build();
})();
