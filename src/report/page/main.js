/* Puts the page together from its data. SPDX-License-Identifier: MIT */
"use strict";

(function () {
  const el = Report.el;

  function aboutOf(recording) {
    const parts = [recording.name + ": device " + recording.device + ", "];
    if (!recording.has_history) return parts[0] + "a snapshot without history.";
    parts.push(Report.plural(recording.events, "event") + ", " + Report.plural(recording.blocks, "block") + "; settings when recorded: " +
      (recording.conf || "PyTorch's defaults") + "; limit when recorded: " + (recording.limit_bytes ? Report.bytes(recording.limit_bytes) : "not known") + ".");
    return parts.join("");
  }

  function footer(report) {
    document.getElementById("footer").append(...report.recordings.map(r => el("p", {}, aboutOf(r))),
      el("p", {}, "Made by unfrag " + report.version + ". The page is complete in itself: it loads nothing and sends nothing. Sizes are binary: 1 GiB is 1024 MiB."));
  }

  /* The title of two is both names, unless one was given. */
  function showTitle(report) {
    const short = name => name.replace(/^.*[\\/]/, ""), names = report.recordings.map(r => short(r.name));
    const isGiven = report.title !== report.recordings[0].name;
    const text = isGiven || names.length === 1 ? short(report.title) : names.join(" and ");
    document.getElementById("title").textContent = text;
    document.getElementById("title").title = report.title;
  }

  function axisButtons(view) {
    const events = document.getElementById("axis-events"), time = document.getElementById("axis-time");
    if (!view.data.times) { time.parentNode.hidden = true; return; }
    const choose = function (isTime) {
      view.setAxis(isTime);
      events.setAttribute("aria-pressed", String(!isTime));
      time.setAttribute("aria-pressed", String(isTime));
    };
    events.addEventListener("click", () => choose(false));
    time.addEventListener("click", () => choose(true));
  }

  async function start() {
    Report.startTheme();
    const report = JSON.parse(document.getElementById("data").textContent);
    showTitle(report);
    const datas = await Promise.all(report.recordings.map((r, k) => Report.unpack("columns-" + k)));
    document.getElementById("loading").remove();
    /* Of two recordings the second is the one in question; the first is what it is compared with. */
    const last = report.recordings.length - 1, recording = report.recordings[last], data = datas[last], view = new Report.View(data);
    view.moment = recording.moments[0].event;
    for (const other of datas) {
      other.pyramids = {};
      for (const level of ["live", "reserved"]) other.pyramids[level] = Report.pyramid(other.least[level], other.most[level]);
    }
    if (report.difference) Report.addDifference(report, datas);
    Report.addSummary(recording, last > 0);
    if (recording.has_history) Report.addTimeline(recording, data, view);
    Report.addMap(recording, data, view);
    Report.addPinned(recording, data, view);
    Report.addSettings(recording);
    Report.addSites(recording);
    axisButtons(view);
    footer(report);
    Report.view = view;
    requestAnimationFrame(() => requestAnimationFrame(() => { document.documentElement.dataset.ready = String(Math.round(performance.now())); }));
  }

  start().catch(function (error) {
    const problem = document.getElementById("problem"), loading = document.getElementById("loading");
    if (loading) loading.remove();
    problem.hidden = false;
    problem.textContent = "The report could not be shown: " + error.message;
    console.error(error);
  });
})();
