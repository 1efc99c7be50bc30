/* Light and dark, and the colours of the style sheet for what is drawn on a canvas.
 * SPDX-License-Identifier: MIT */
"use strict";

(function () {
  const system = matchMedia("(prefers-color-scheme: dark)");
  const listeners = [];
  let chosen = null; /* null: as the system says */
  let cache = {};

  function read() {
    try { return localStorage.getItem("unfrag-theme"); } catch (error) { return null; }
  }

  function keep(value) {
    try { localStorage.setItem("unfrag-theme", value); } catch (error) { /* it is a courtesy */ }
  }

  function apply() {
    const isDark = chosen === null ? system.matches : chosen === "dark";
    document.documentElement.dataset.theme = isDark ? "dark" : "light";
    const button = document.getElementById("theme");
    button.textContent = isDark ? "light" : "dark";
    button.setAttribute("aria-label", isDark ? "Change to light colours" : "Change to dark colours");
    cache = {};
    for (const listener of listeners) listener();
  }

  Report.onTheme = function (listener) { listeners.push(listener); };

  /* A colour of the style sheet, by its name without "--". */
  Report.colour = function (name) {
    if (!cache[name])
      cache[name] = getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
    return cache[name];
  };

  /* The same as a number for image data: 0xAABBGGRR. */
  Report.pixel = function (name) {
    const text = Report.colour(name);
    const value = parseInt(text.slice(1), 16);
    return (0xff000000 | (value & 0xff) << 16 | (value & 0xff00) | value >> 16) >>> 0;
  };

  Report.startTheme = function () {
    const kept = read();
    chosen = kept === "dark" || kept === "light" ? kept : null;
    document.getElementById("theme").addEventListener("click", function () {
      chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      keep(chosen);
      apply();
    });
    system.addEventListener("change", apply);
    apply();
  };
})();
