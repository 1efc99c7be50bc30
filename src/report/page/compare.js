/* Settings side by side, and two recordings side by side. SPDX-License-Identifier: MIT */
"use strict";

(function () {
  const el = Report.el, svg = Report.svg;
  const CARDS = [4, 6, 8, 10, 11, 12, 16, 20, 24, 32, 40, 48, 64, 80, 96, 141, 192];

  function nameOf(row) { return row.is_unfrag ? "unfrag's policy (another allocator)" : row.conf === "" ? "PyTorch's defaults" : row.conf; }

  /* Long settings in lines at their commas. */
  function lines(text) {
    const list = [];
    for (const piece of text.split(/(?<=,)/)) {
      if (list.length > 0 && list[list.length - 1].length + piece.length <= 36) list[list.length - 1] += piece;
      else list.push(piece);
    }
    return list;
  }

  function bars(settings, peakLive) {
    const LEFT = 290, RIGHT = 110, WIDTH = 1000, ROW = 46, TOP = 26;
    const rows = settings.rows.filter(r => r.peak_reserved_bytes !== null || r.smallest_limit_bytes !== null);
    const most = rows.reduce((m, r) => Math.max(m, r.peak_reserved_bytes || 0, r.smallest_limit_bytes || 0), peakLive) * 1.02;
    const x = bytes => LEFT + bytes / most * (WIDTH - LEFT - RIGHT), height = TOP + rows.length * ROW + 30;
    const node = svg("svg", { class: "bars", viewBox: "0 0 " + WIDTH + " " + height, role: "img",
      "aria-label": "Memory under each of the settings; the table below has the figures" });
    const cards = CARDS.filter(g => { const at = g * 1073741824 - settings.allowance_bytes; return at > peakLive * .98 && at < most; });
    let before = -1000;
    for (const g of cards) {
      const at = x(g * 1073741824 - settings.allowance_bytes);
      if (at - before < 90) continue;
      before = at;
      node.append(svg("line", { class: "card-line", x1: at, x2: at, y1: TOP - 6, y2: height - 24 }),
        svg("text", { class: "muted", x: at, y: TOP - 10, "text-anchor": "middle" }, g + " GiB card"));
    }
    rows.forEach(function (row, k) {
      const y = TOP + k * ROW, names = lines(nameOf(row));
      names.slice(0, 2).forEach((line, n) => node.append(svg("text", { x: LEFT - 10, y: y + (names.length > 1 ? 15 : 22) + n * 16, "text-anchor": "end" }, line)));
      if (row.peak_reserved_bytes !== null) node.append(svg("rect", { x: LEFT, y: y + 6, width: x(row.peak_reserved_bytes) - LEFT, height: 26, rx: 3, fill: "var(--reserved-fill)" }));
      if (row.smallest_limit_bytes !== null) node.append(svg("rect", { x: LEFT, y: y + 11, width: x(row.smallest_limit_bytes) - LEFT, height: 16, rx: 2,
        fill: row.is_unfrag ? "var(--active)" : row.is_best ? "var(--good)" : "var(--allocated)" }));
      const end = Math.max(row.peak_reserved_bytes || 0, row.smallest_limit_bytes || 0);
      node.append(svg("text", { x: x(end) + 8, y: y + 23 }, Report.bytes(row.smallest_limit_bytes !== null ? row.smallest_limit_bytes : row.peak_reserved_bytes)));
    });
    const floor = x(peakLive);
    node.append(svg("line", { class: "floor", x1: floor, x2: floor, y1: TOP, y2: height - 24 }),
      svg("text", { class: "muted", x: floor, y: height - 8, "text-anchor": "middle" }, "peak live " + Report.bytes(peakLive)));
    return node;
  }

  Report.addSettings = function (recording) {
    const settings = recording.settings;
    if (settings.effort === "none") return;
    const hasLimits = settings.effort !== "peaks";
    const section = Report.section("settings", "Settings", hasLimits
      ? "The same program under other allocator settings, by exact replay: the least memory each runs within (dark), and what it reserves where nothing holds it back (pale)."
      : "The same program under other allocator settings, by exact replay: what each reserves. For the least memory each runs within, make the page with --tune.");
    section.append(bars(settings, recording.peak_live.bytes));
    const columns = [{ name: "settings" }].concat(hasLimits ? [{ name: "runs within", isNumber: true }, { name: "over peak live", isNumber: true }, { name: "smallest card", isNumber: true }] : [],
      [{ name: "reserves without a limit", isNumber: true }, { name: "in the driver", isNumber: true }, { name: "waits for the device", isNumber: true }, { name: "retries", isNumber: true }]);
    const live = recording.peak_live.bytes;
    const rows = settings.rows.map(row => [
      el("span", {}, nameOf(row), row.is_today ? el("span", { class: "tag" }, "today") : null, row.is_best ? el("span", { class: "tag" }, "best") : null,
        row.is_undefined ? el("span", { class: "tag" }, "undefined behaviour") : null)].concat(hasLimits ? [Report.bytes(row.smallest_limit_bytes),
      row.smallest_limit_bytes === null ? "-" : Report.percent(row.smallest_limit_bytes - live, live), row.card_bytes === null ? "-" : Report.shortBytes(row.card_bytes)] : [],
      [Report.bytes(row.peak_reserved_bytes), Report.milliseconds(row.device_ms), Report.count(row.device_syncs), Report.count(row.num_alloc_retries)]));
    section.append(Report.table("Times, waits and retries " + (hasLimits ? "at the smallest limit" : "without a limit") +
      (settings.effort === "few" ? " where that was searched; --tune searches it for all" : "") + ", by " + Report.plural(settings.replay_count, "replay"), columns, rows,
      k => settings.rows[k].is_best ? "best" : null));
    section.append(Report.how(
      el("p", {}, "Runs within is the smallest memory limit under which no request fails. The blue line is peak live: nothing that leaves data where they are gets below it. ",
        "The smallest card leaves " + Report.bytes(settings.allowance_bytes) + " of it to CUDA and its libraries; the dotted lines are where cards end, less that."),
      el("p", {}, "A setting that runs within less but spends much time in the driver, or waits often, is slower on a tight card. ",
        "The last row is no setting: it is unfrag's own policy, simulated, which moves pages instead of fragmenting.")));
  };

  /* Two recordings: the reserved and live levels of both over the requests they make. */
  function overlay(datas, names, holder) {
    let plot = null;
    function values() {
      const points = Math.max(300, Math.floor(holder.clientWidth)), all = datas.map(function (data) {
        let level = 0, width = 1;
        while (data.buckets / width > points && data.pyramids.reserved.length > level + 1) { level++; width *= 2; }
        const n = data.pyramids.reserved[level].most.length, xs = [], rise = { last: -1 };
        for (let i = 0; i < n; i++) {
          const at = Math.max(rise.last + 1e-6, data.allocs[Math.min(data.buckets - 1, i * width)]);
          xs.push(at);
          rise.last = at;
        }
        return [xs, Array.from(data.pyramids.reserved[level].most), Array.from(data.pyramids.live[level].most)];
      });
      return uPlot.join(all);
    }
    function build() {
      if (plot) plot.destroy();
      const line = (label, colour, dash) => ({ label: label, stroke: Report.colour(colour), width: 1.5, dash: dash, spanGaps: true, points: { show: false } });
      plot = new uPlot({ width: Math.max(280, holder.clientWidth), height: 300, legend: { show: false }, padding: [8, 12, 0, 0],
        cursor: { y: false, drag: { x: true, y: false } },
        scales: { x: { time: false }, y: { range: (u, least, most) => [0, (most || 1) * 1.06] } },
        axes: [Object.assign(Report.axisStyle(), { values: (u, splits) => splits.map(Report.count), space: 90 }),
          Object.assign(Report.axisStyle(), { values: (u, splits) => splits.map(Report.shortBytes), size: 74, incrs: Report.byteSteps })],
        series: [{}, line("a", "reserved"), line("a live", "live", [4, 4]), line("b", "other"), line("b live", "active", [4, 4])] }, values(), holder);
    }
    build();
    new ResizeObserver(function () { if (holder.clientWidth > 50 && plot.width !== holder.clientWidth) { plot.setSize({ width: holder.clientWidth, height: 300 }); } }).observe(holder);
    Report.onTheme(build);
    return el("div", { class: "legend" }, [["reserved", names[0] + ", reserved"], ["live", names[0] + ", live"], ["other", names[1] + ", reserved"], ["active", names[1] + ", live"]]
      .map(([colour, name]) => el("span", { class: "item" }, el("span", { class: "swatch", style: "background:var(--" + colour + ")" }), name)));
  }

  function signed(bytes) { return (bytes > 0 ? "+" : "") + Report.bytes(bytes); }

  function levelRows(recordings) {
    const peaks = recordings.map(r => r.moments[0]), value = (k, get) => get(recordings[k], peaks[k]);
    const rows = [["peak live", r => r.peak_live.bytes], ["peak reserved", r => r.peak_reserved.bytes],
      ["at that peak: in blocks", (r, m) => m.levels.active], ["cached between live blocks", (r, m) => m.between_bytes], ["cached in whole segments", (r, m) => m.whole_bytes],
      ["cached for other streams", (r, m) => m.stream_bytes], ["cached in private pools", (r, m) => m.pool_bytes]];
    return rows.map(([name, get]) => [name, Report.bytes(value(0, get)), Report.bytes(value(1, get)), signed(value(1, get) - value(0, get))])
      .concat([["failures", r => r.marks.oom_count], ["times the cache was given back", r => r.marks.retry_count], ["segments at the peak", (r, m) => m.segment_count]]
        .map(([name, get]) => [name, Report.count(value(0, get)), Report.count(value(1, get)), (value(1, get) > value(0, get) ? "+" : "") + (value(1, get) - value(0, get))]));
  }

  Report.addDifference = function (report, datas) {
    const recordings = report.recordings, difference = report.difference, names = recordings.map(r => r.name);
    const change = recordings[1].peak_reserved.bytes - recordings[0].peak_reserved.bytes;
    const sameText = difference.is_same_program ? "Both make the same " + Report.plural(difference.equal_requests, "request") + ". "
      : "They make different requests: the first " + Report.count(difference.equal_requests) + " are equal. ";
    const headline = sameText + "The second reserves " + (change === 0 ? "as much as the first." : Report.bytes(Math.abs(change)) + (change > 0 ? " more" : " less") + " than the first.");
    const section = Report.section("difference", "Difference", null, el("p", { class: "headline" }, headline));
    if (recordings.every(r => r.has_history)) {
      const holder = el("div", { class: "chart", id: "difference-chart", role: "img", "aria-label": "Reserved and live memory of both over the requests they make; the table below has the figures" });
      section.append(holder);
      section.append(overlay(datas, names, holder));
    }
    const columns = [{ name: "" }, { name: names[0], isNumber: true }, { name: names[1], isNumber: true }, { name: "difference", isNumber: true }];
    section.append(Report.table("Peaks, and where memory lay when most was reserved", columns, levelRows(recordings)));
    section.append(Report.table("Where: the pools at each one's peak, by how much they differ", columns, difference.parts.slice(0, 20).map(part => [
      (part.is_small ? "small blocks" : "large blocks") + ", stream " + part.stream + (part.is_private ? ", a private pool" : ""),
      Report.bytes(part.reserved_bytes[0]) + " (" + Report.plural(part.segments[0], "segment") + ")", Report.bytes(part.reserved_bytes[1]) + " (" + Report.plural(part.segments[1], "segment") + ")",
      signed(part.reserved_bytes[1] - part.reserved_bytes[0])])));
    section.append(Report.how(el("p", {}, "To the right run the requests that the program makes, so that two recordings of one program lie on each other whatever the allocator did. ",
      "Where the live lines are one and the reserved lines are not, the allocator made the difference, not the program.")));
  };
})();
