/* Numbers as people read them, and elements made of text: nothing here or elsewhere in the page
 * turns text into markup. SPDX-License-Identifier: MIT */
"use strict";
var Report = {};

(function () {
  const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];

  /* "512 B", "1.50 GiB", as the command line writes them; null is unknown. */
  Report.bytes = function (value) {
    if (value === null || value === undefined) return "-";
    let size = Math.abs(value), unit = 0;
    while (size >= 1023.995 && unit < UNITS.length - 1) { size /= 1024; unit++; }
    if (unit === 0) size = Math.round(size);
    return (value < 0 ? "-" : "") + (unit === 0 ? size : size.toFixed(2)) + " " + UNITS[unit];
  };

  /* For axes: no more digits than needed. */
  Report.shortBytes = function (value) {
    let size = value, unit = 0;
    while (size >= 1024 && unit < UNITS.length - 1) { size /= 1024; unit++; }
    return String(Math.round(size * 100) / 100) + " " + UNITS[unit];
  };

  Report.count = function (value) {
    if (value === null || value === undefined) return "-";
    return String(Math.round(value)).replace(/\B(?=(\d{3})+$)/g, "\u00a0");
  };

  Report.plural = function (value, noun) {
    return Report.count(value) + " " + noun + (value === 1 ? "" : "s");
  };

  /* A duration in microseconds. */
  Report.duration = function (us) {
    if (us < 1000) return Math.round(us) + " \u00b5s";
    if (us < 1e6) return (us / 1e3).toFixed(us < 1e4 ? 2 : 1) + " ms";
    if (us < 6e7) return (us / 1e6).toFixed(us < 1e7 ? 2 : 1) + " s";
    const seconds = Math.round(us / 1e6);
    return Math.floor(seconds / 60) + " min " + String(seconds % 60).padStart(2, "0") + " s";
  };

  Report.milliseconds = function (ms) {
    return ms === null || ms === undefined ? "-" : Report.duration(ms * 1000);
  };

  Report.percent = function (part, whole) {
    return whole > 0 ? (part / whole * 100).toFixed(1) + " %" : "-";
  };

  /* An element; attributes by name ("on..." are handlers), children are nodes or texts. */
  Report.el = function (tag, attributes, ...children) {
    const node = document.createElement(tag);
    fill(node, attributes, children);
    return node;
  };

  Report.svg = function (tag, attributes, ...children) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    fill(node, attributes, children);
    return node;
  };

  function fill(node, attributes, children) {
    for (const name in attributes || {}) {
      const value = attributes[name];
      if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value);
    }
    for (const child of children.flat()) {
      if (child !== null && child !== undefined)
        node.append(child instanceof Node ? child : document.createTextNode(String(child)));
    }
  }

  /* A table: columns are {name, isNumber, isShort}; rows are arrays of texts or nodes. */
  Report.table = function (caption, columns, rows, rowClass) {
    const el = Report.el;
    return el("div", { class: "wide" }, el("table", {},
      el("caption", {}, caption),
      el("thead", {}, el("tr", {}, columns.map(c =>
        el("th", { scope: "col", class: c.isNumber ? "number" : null }, c.name)))),
      el("tbody", {}, rows.map((row, r) =>
        el("tr", { class: rowClass ? rowClass(r) : null }, row.map((cell, i) => el(i === 0 ? "th" : "td",
          { scope: i === 0 ? "row" : null, class: columns[i].isNumber ? "number" : columns[i].isShort ? "short" : "text" }, cell)))))));
  };

  Report.how = function (...children) {
    return Report.el("details", { class: "how" },
      Report.el("summary", {}, "How to read this"), ...children);
  };

  /* A section of the page with its entry in the bar. */
  Report.section = function (id, heading, lead, ...children) {
    const el = Report.el;
    const node = el("section", { id: id, "aria-labelledby": id + "-heading" },
      el("h2", { id: id + "-heading" }, heading),
      lead ? el("p", { class: "lead" }, lead) : null, ...children);
    document.getElementById("main").append(node);
    document.getElementById("nav").append(el("a", { href: "#" + id }, heading));
    return node;
  };

  /* Rows beyond the first few are shown on demand. */
  Report.longTable = function (caption, columns, rows, first) {
    if (rows.length <= first) return Report.table(caption, columns, rows);
    const holder = Report.el("div", {}, Report.table(caption, columns, rows.slice(0, first)));
    holder.append(Report.el("button", { type: "button", onclick: () =>
      holder.replaceChildren(Report.table(caption, columns, rows)) }, "Show all " + rows.length));
    return holder;
  };

  /* Shows a tip near a place on the screen; nodes are its content, none hides it. */
  Report.tip = function (x, y, nodes) {
    const tip = document.getElementById("tip");
    if (!nodes) { tip.hidden = true; return; }
    tip.replaceChildren(...nodes);
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
    const top = y + 14 + box.height > innerHeight ? y - 14 - box.height : y + 14;
    tip.style.left = Math.max(4, left) + "px";
    tip.style.top = Math.max(4, top) + "px";
  };
})();
