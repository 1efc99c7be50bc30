/* The sections of text and tables: the summary, what pins memory at a moment, who allocates.
 * SPDX-License-Identifier: MIT */
"use strict";

(function () {
  const el = Report.el;

  Report.momentName = function (recording, moment) {
    if (moment.kind === "peak") return "peak of reserved memory";
    if (moment.kind === "end") return recording.has_history ? "end" : "the snapshot";
    return "failure at event " + Report.count(moment.event);
  };

  function tile(kind, value, text) { return el("div", { class: "tile " + kind }, el("b", {}, value), el("span", {}, text)); }

  /* A setting to paste, with a button that copies it. */
  Report.command = function (text) {
    const button = el("button", { type: "button" }, "copy");
    button.addEventListener("click", function () {
      const done = () => { button.textContent = "copied"; setTimeout(() => { button.textContent = "copy"; }, 1500); };
      if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, () => { button.textContent = "select and copy"; });
    });
    return el("div", { class: "command" }, el("code", {}, text), button);
  };

  function tiles(recording) {
    const peak = recording.peak_reserved, live = recording.peak_live, list = [];
    if (!recording.has_history) {
      list.push(tile("live", Report.bytes(recording.end.active), "in use"),
        tile("reserved", Report.bytes(recording.end.reserved), "reserved"),
        tile("lost", Report.bytes(recording.end.reserved - recording.end.active), "cached"));
      return el("div", { class: "tiles" }, list);
    }
    list.push(tile("live", Report.bytes(live.bytes), "peak live: the most the program held at once"),
      tile("reserved", Report.bytes(peak.bytes), "peak reserved: the most taken from the driver"),
      tile("lost", Report.bytes(recording.summary.lost_bytes), "more than needed: " + Report.percent(recording.summary.lost_bytes, live.bytes) + " of peak live"),
      tile(recording.marks.oom_count > 0 ? "oom" : "good", Report.count(recording.marks.oom_count), "requests failed (out of memory)"),
      tile("", Report.count(recording.marks.retry_count), "times the cache was given back for a request"));
    const today = recording.settings.rows.find(r => r.is_today), best = recording.settings.rows.find(r => r.is_best);
    if (today && today.card_bytes) list.push(tile("", Report.bytes(today.card_bytes).replace(".00", ""), "smallest card with today's settings" +
      (best && best !== today && best.card_bytes && best.card_bytes < today.card_bytes ? "; " + Report.bytes(best.card_bytes).replace(".00", "") + " with better ones" : "")));
    return el("div", { class: "tiles" }, list);
  }

  Report.addSummary = function (recording, isOfTwo) {
    const summary = recording.summary;
    const section = Report.section("summary", "Summary", isOfTwo ? "This and all that follows is of the second, " + recording.name + "." : null, el("p", { class: "headline" }, summary.headline), tiles(recording));
    const columns = el("div", { class: "columns" });
    if (summary.points.length > 0) columns.append(el("div", {}, el("h3", {}, "What happened"), el("ul", {}, summary.points.map(p => el("li", {}, p)))));
    const best = recording.settings.rows.find(r => r.is_best && !r.is_today && !r.is_unfrag && r.conf !== "");
    if (summary.advice.length > 0)
      columns.append(el("div", {}, el("h3", {}, "What to do"), el("ol", {}, summary.advice.map(a => el("li", {}, a))),
        best && summary.advice.some(a => a.includes(best.conf)) ? Report.command("export PYTORCH_CUDA_ALLOC_CONF=" + best.conf) : null));
    section.append(columns);
  };

  const PARTS = [["active_bytes", "in blocks", "live"], ["between_bytes", "cached between live blocks", "reserved"],
    ["whole_bytes", "cached in whole segments", "cached"], ["stream_bytes", "cached for other streams", "other"],
    ["pool_bytes", "cached in private pools", "group-7"]];

  function parts(moment) {
    const values = Object.assign({ active_bytes: moment.levels.active }, moment), total = Math.max(1, moment.levels.reserved);
    const bar = el("div", { class: "parts", "aria-hidden": "true" }), legend = el("div", { class: "legend" });
    for (const [key, name, colour] of PARTS) {
      if (values[key] === 0 && key !== "between_bytes") continue;
      bar.append(el("i", { style: "background:var(--" + colour + ");width:" + values[key] / total * 100 + "%" }));
      legend.append(el("span", { class: "item" }, el("span", { class: "swatch", style: "background:var(--" + colour + ")" }),
        name + ": ", el("b", {}, Report.bytes(values[key]))));
    }
    return [bar, legend];
  }

  /* A picture of one segment: where its blocks lie. */
  function strip(data, moment, pinned) {
    const canvas = el("canvas", { class: "strip", width: 440, height: 32, "aria-hidden": "true" });
    const draw = function () {
      const context = canvas.getContext("2d"), addr = BigInt(pinned.addr), lane = data.lanes.find(l => addr >= l.addr && (addr - l.addr) / BigInt(data.unit) < BigInt(l.size));
      if (!lane) return;
      const low = lane.height + Number((addr - lane.addr) / BigInt(data.unit)), size = pinned.total_bytes / data.unit, spans = data.spans;
      context.fillStyle = Report.colour("cached");
      context.fillRect(0, 0, 440, 32);
      context.fillStyle = Report.colour("live");
      for (let i = 0; i < spans.count; i++)
        if (spans.from[i] <= moment.event && moment.event < spans.to[i] && spans.y[i] >= low && spans.y[i] < low + size)
          context.fillRect((spans.y[i] - low) / size * 440, 0, Math.max(1.5, spans.size[i] / size * 440), 32);
    };
    draw();
    Report.onTheme(draw);
    return canvas;
  }

  function pinnedTable(recording, data, view, moment) {
    if (moment.pinned.length === 0) return el("p", { class: "lead" }, "No segment is pinned: what is cached can be given back whole.");
    const rows = moment.pinned.map(p => [el("span", { class: "mono" }, p.addr), strip(data, moment, p), Report.bytes(p.total_bytes), Report.bytes(p.cached_bytes),
      Report.bytes(p.largest_cached_bytes), Report.count(p.live_count), Report.bytes(p.holder.bytes),
      p.holder.is_start ? "the start" : el("span", { class: "whole", title: view.name(p.holder.from) }, "event " + Report.count(p.holder.from)), p.holder.frame || (recording.has_stacks ? "-" : "no stacks recorded")]);
    return Report.table("The " + moment.pinned.length + " segments with most cached, of " + Report.count(moment.pinned_count) + " that live blocks pin",
      [{ name: "segment", isShort: true }, { name: "its blocks", isShort: true }, { name: "size", isNumber: true }, { name: "cached", isNumber: true }, { name: "largest piece", isNumber: true },
        { name: "live blocks", isNumber: true }, { name: "largest of them", isNumber: true }, { name: "there since", isShort: true }, { name: "allocated by" }], rows);
  }

  function momentPanel(recording, data, view, moment) {
    const panel = el("div", { role: "tabpanel", id: "moment-panel" });
    const what = moment.kind === "oom" ? Report.bytes(moment.wanted_bytes) + " were asked for and refused. " : "";
    panel.append(el("p", {}, what + Report.bytes(moment.levels.reserved) + " were reserved in " + Report.plural(moment.segment_count, "segment") + ", " +
      Report.bytes(moment.levels.active) + " of them in blocks; the largest cached piece had " + Report.bytes(moment.largest_cached_bytes) + "."), ...parts(moment));
    moment.causes.forEach((cause, k) => panel.append(el("p", { class: "cause" }, el("b", {}, (k === 0 ? "Cause: " : "Also: ") + cause.id.replace(/_/g, " ")), ". " + cause.reason + ".")));
    panel.append(pinnedTable(recording, data, view, moment));
    return panel;
  }

  Report.addPinned = function (recording, data, view) {
    const section = Report.section("pinned", "What pins memory", recording.has_history
      ? "At the peak, at failures and at the end: what was cached, why it could not be given back, and which blocks were in the way."
      : "What was cached, why it cannot be given back, and which blocks are in the way.");
    const tabs = el("div", { class: "tabs", role: "tablist", "aria-label": "Moments" }), place = el("div", {});
    const buttons = recording.moments.map((moment, k) => el("button", { type: "button", role: "tab", "aria-selected": "false",
      tabindex: k === 0 ? "0" : "-1", "aria-controls": "moment-panel", onclick: () => choose(k) }, Report.momentName(recording, moment)));
    function choose(k) {
      buttons.forEach((button, i) => {
        button.setAttribute("aria-selected", String(i === k));
        button.tabIndex = i === k ? 0 : -1;
      });
      place.replaceChildren(momentPanel(recording, data, view, recording.moments[k]));
    }
    tabs.addEventListener("keydown", function (event) {
      const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      if (by === 0) return;
      const k = (buttons.indexOf(document.activeElement) + by + buttons.length) % buttons.length;
      buttons[k].focus();
      choose(k);
      event.preventDefault();
    });
    tabs.append(...buttons);
    section.append(tabs, place, Report.how(
      el("p", {}, "Between live blocks: cached bytes in segments that also hold live blocks. PyTorch cannot give such a segment back, and serves from it only what fits into a piece. ",
        "In whole segments: nothing live is in them; they are given back as soon as memory is short. For other streams, in private pools: cached, but not for this request."),
      el("p", {}, "The blocks listed hold the most cached memory in place. If one of them was allocated early and lives long, allocating it before everything else, or freeing it in time, sets the segment free. ",
        "Expandable segments give back single pages instead of whole segments.")));
    choose(Math.max(0, recording.moments.findIndex(m => m.kind === "oom")));
  };

  Report.addSites = function (recording) {
    if (!recording.has_stacks) {
      Report.section("sites", "Who allocates", "The recording has no call stacks, so it does not say which lines of the program allocate.",
        el("p", {}, "Record them with ", el("code", {}, "torch.cuda.memory._record_memory_history(stacks=\"python\", max_entries=5_000_000)"), "."));
      return;
    }
    const stacks = recording.stacks.split(";");
    const rows = recording.sites.map(site => [
      el("details", { class: "stack" }, el("summary", {}, site.frame || "?"), site.stack === null ? null :
        el("ol", {}, stacks[site.stack].split(",").map(id => el("li", {}, recording.frames[Number(id)])))),
      Report.bytes(site.peak_bytes), Report.count(site.peak_count), Report.bytes(site.alloc_bytes), Report.count(site.alloc_count), Report.bytes(site.largest_bytes)]);
    Report.section("sites", "Who allocates", "Call stacks by what they held when most was live. Open one to see all of it.",
      Report.longTable((rows.length < recording.site_count ? "The first " + rows.length + " of " : "") + Report.plural(recording.site_count, "call stack"),
        [{ name: "innermost frame of the program" }, { name: "at the peak", isNumber: true }, { name: "blocks then", isNumber: true },
          { name: "in all", isNumber: true }, { name: "allocations", isNumber: true }, { name: "largest", isNumber: true }], rows, 20),
      Report.how(el("p", {}, "At the peak counts what was live when the program held most: that is what decides which card it needs. ",
        "In all adds up every allocation of the recording: much here and little at the peak is traffic, which costs time and can fragment, but does not need a larger card.")));
  };
})();
