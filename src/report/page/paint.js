/* The colours of blocks: by size, age, stream, stack or pool; and which of them a search finds.
 * SPDX-License-Identifier: MIT */
"use strict";

(function () {
  const KIB = 1024, MIB = 1048576, GIB = 1073741824;
  const SIZES = [{ most: 64 * KIB, name: "to 64 KiB" }, { most: MIB, name: "to 1 MiB" }, { most: 10 * MIB, name: "to 10 MiB" },
    { most: 100 * MIB, name: "to 100 MiB" }, { most: GIB, name: "to 1 GiB" }, { most: Infinity, name: "above" }];
  const GROUPS = 10;

  class Paint {
    constructor(recording, data) {
      this.recording = recording;
      this.data = data;
      this.mode = "size";
      this.classes = new Uint8Array(data.spans.count);
      this.hits = null; /* by span; null: nothing is searched for */
      this.hitCount = 0;
      this.choose("size");
    }

    modes() {
      const list = [["size", "size"]];
      if (this.data.events > 0) list.push(["age", "age"]);
      list.push(["stream", "stream"]);
      if (this.recording.has_stacks) list.push(["stack", "call stack"]);
      if (this.recording.pools.length > 1) list.push(["pool", "pool"]);
      return list;
    }

    choose(mode) {
      const spans = this.data.spans, classes = this.classes, unit = this.data.unit;
      this.mode = mode;
      if (mode === "size") {
        for (let i = 0; i < spans.count; i++) {
          let k = 0;
          while (spans.size[i] * unit > SIZES[k].most) k++;
          classes[i] = k;
        }
        this.names = SIZES.map(s => s.name);
        this.prefix = "size-";
      } else if (mode === "age") {
        const end = Math.max(1, this.data.events);
        const parts = [.001, .01, .1, .5];
        for (let i = 0; i < spans.count; i++) {
          const part = (spans.to[i] - spans.from[i]) / end;
          let k = 0;
          while (k < 4 && part > parts[k]) k++;
          classes[i] = spans.isLeft[i] && k >= 3 ? 5 : k;
        }
        this.names = ["under 0.1 % of the time", "under 1 %", "under 10 %", "under half", "longer", "still there at the end"];
        this.prefix = "age-";
      } else {
        this.group(mode);
      }
    }

    /* The groups with most memory over time get a colour each, the rest the last one. */
    group(mode) {
      const spans = this.data.spans, sums = new Map();
      const values = mode === "stack" ? this.frameOfSpans() : spans[mode];
      for (let i = 0; i < spans.count; i++)
        sums.set(values[i], (sums.get(values[i]) || 0) + spans.size[i] * (spans.to[i] - spans.from[i]));
      const ranked = Array.from(sums.keys()).sort((a, b) => sums.get(b) - sums.get(a) || (a < b ? -1 : 1));
      const has = new Map(ranked.slice(0, GROUPS - 1).map((value, k) => [value, k]));
      for (let i = 0; i < spans.count; i++) {
        const k = has.get(values[i]);
        this.classes[i] = k === undefined ? GROUPS - 1 : k;
      }
      this.names = Array.from(has.keys()).map(value => this.nameOf(mode, value));
      if (ranked.length >= GROUPS) this.names[GROUPS - 1] = Report.plural(ranked.length - GROUPS + 1, "other");
      this.prefix = "group-";
    }

    nameOf(mode, value) {
      const recording = this.recording;
      if (mode === "stream") return "stream " + (recording.streams[value] || "?");
      if (mode === "pool") return value === 0 ? "default pool" : "pool " + recording.pools[value];
      return value === "" ? "no stack" : value;
    }

    /* Stacks that end in the same line of the program are one group. */
    frameOfSpans() {
      const names = new Map([[0, ""]]);
      return Array.from(this.data.spans.stack, stack => {
        if (!names.has(stack)) names.set(stack, this.frameName(stack - 1));
        return names.get(stack);
      });
    }

    /* The innermost frame that is not PyTorch's own, short. */
    frameName(stack) {
      const frames = this.stackOf(stack);
      const own = frames.find(f => !/[\\/]torch[\\/]|\?\?|\.cpp|\.so|^:|^</.test(f)) || frames[0] || "?";
      return own.replace(/^.*[\\/]([^\\/]+[\\/][^\\/]+:)/, "$1");
    }

    stackOf(stack) {
      if (!this.stacks) this.stacks = this.recording.stacks.split(";");
      const list = this.stacks[stack];
      return list ? list.split(",").map(id => this.recording.frames[Number(id)]) : [];
    }

    palette() {
      return this.names.map((name, k) => Report.pixel(this.prefix + k));
    }

    /* A search: ">100MiB", "<1KiB", an address, "stream default", "pool 3", or part of a frame. */
    search(text) {
      const test = this.testOf(text.trim());
      const spans = this.data.spans;
      this.hits = null;
      this.hitCount = 0;
      this.hitBytes = 0;
      if (!test) return;
      this.hits = new Uint8Array(spans.count);
      for (let i = 0; i < spans.count; i++) {
        if (test(i)) {
          this.hits[i] = 1;
          this.hitCount++;
          this.hitBytes = Math.max(this.hitBytes, spans.size[i] * this.data.unit);
        }
      }
    }

    testOf(text) {
      const spans = this.data.spans, unit = this.data.unit;
      if (text === "") return null;
      const size = /^([<>=]?)\s*([\d.]+)\s*([kmgt]?)(i?b?)$/i.exec(text);
      if (size && (size[1] || size[3] || size[4])) {
        const bytes = Number(size[2]) * Math.pow(1024, " kmgt".indexOf((size[3] || " ").toLowerCase()));
        if (size[1] === "<") return i => spans.size[i] * unit < bytes;
        if (size[1] === ">") return i => spans.size[i] * unit > bytes;
        return i => Math.abs(spans.size[i] * unit - bytes) <= Math.max(511, bytes * .005) || spans.requested[i] === bytes;
      }
      if (/^0x[0-9a-f]+$/i.test(text)) {
        const height = this.heightOf(BigInt(text));
        return height < 0 ? () => false : i => spans.y[i] <= height && height < spans.y[i] + spans.size[i];
      }
      const word = text.toLowerCase();
      const named = /^(stream|pool)\s+(.+)$/.exec(word);
      if (named) {
        const list = named[1] === "stream" ? this.recording.streams : this.recording.pools;
        const values = spans[named[1]];
        return i => String(list[values[i]]).toLowerCase().includes(named[2]);
      }
      const frames = this.recording.frames.map(f => f.toLowerCase().includes(word));
      const stacks = this.recording.stacks.split(";").map(list => list !== "" && list.split(",").some(id => frames[Number(id)]));
      return i => spans.stack[i] > 0 && stacks[spans.stack[i] - 1];
    }

    heightOf(addr) {
      for (const lane of this.data.lanes) {
        const offset = (addr - lane.addr) / BigInt(this.data.unit);
        if (addr >= lane.addr && offset < BigInt(lane.size)) return lane.height + Number(offset);
      }
      return -1;
    }

    legend() {
      const el = Report.el;
      const items = this.names.map((name, k) => el("span", { class: "item" },
        el("span", { class: "swatch", style: "background:var(--" + this.prefix + k + ")" }), name));
      items.push(el("span", { class: "item" }, el("span", { class: "swatch cached" }), "cached: reserved, in no block"));
      return items;
    }

    /* What is known of a block, as nodes for a tip, or as pairs for a list. */
    facts(i, view) {
      const spans = this.data.spans, recording = this.recording, unit = this.data.unit;
      const size = spans.size[i] * unit, facts = [["block", Report.bytes(size) + " at " + Report.addressOf(this.data, spans.y[i])]];
      if (spans.requested[i] !== size) facts.push(["asked for", Report.bytes(spans.requested[i]) + " (" + Report.count(spans.requested[i]) + " bytes)"]);
      if (this.data.events > 0) {
        facts.push(["from", spans.from[i] === 0 ? "the start of the recording" : view.name(spans.from[i])]);
        facts.push(["to", spans.isLeft[i] ? "still there at the end" : view.name(spans.to[i])]);
        const life = spans.to[i] - spans.from[i];
        facts.push(["age", Report.plural(life, "event") + (this.data.times
          ? ", " + Report.duration(Report.timeOf(this.data, spans.to[i]) - Report.timeOf(this.data, spans.from[i])) : "")]);
        if (spans.wait[i] > 1) facts.push(["waited", Report.plural(spans.wait[i], "event") + " for another stream after its free"]);
      }
      if (recording.streams.length > 1) facts.push(["stream", recording.streams[spans.stream[i]]]);
      if (spans.pool[i] > 0) facts.push(["private pool", recording.pools[spans.pool[i]]]);
      if (spans.stack[i] > 0) facts.push(["allocated by", this.frameName(spans.stack[i] - 1)]);
      return facts;
    }

    tipOf(i, view) {
      const facts = this.facts(i, view), el = Report.el;
      return [el("b", {}, facts[0][1])].concat(facts.slice(1).map(f => el("div", {}, f[0] + ": " + f[1])));
    }

    listOf(i, view) {
      const el = Report.el, list = el("dl", { class: "facts" });
      for (const fact of this.facts(i, view)) list.append(el("dt", {}, fact[0]), el("dd", {}, fact[1]));
      const stack = this.data.spans.stack[i];
      if (stack > 0) list.append(el("dt", {}, "call stack"), el("dd", {}, el("ol", {}, this.stackOf(stack - 1).map(f => el("li", {}, f)))));
      return list;
    }
  }

  Report.Paint = Paint;
})();
