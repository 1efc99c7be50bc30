/* What the pictures have in common: the range of events that is shown, the moment that is looked
 * at, whether the axis counts events or time, and what is searched for.
 * SPDX-License-Identifier: MIT */
"use strict";

(function () {
  class View {
    constructor(data) {
      this.data = data;
      this.end = Math.max(1, data.events);
      this.from = 0;
      this.to = this.end;
      this.moment = 0;
      this.isTime = false;
      this.listeners = [];
    }

    listen(listener) { this.listeners.push(listener); }
    tell(what) { for (const listener of this.listeners) listener(what); }

    show(from, to) {
      const least = Math.min(this.end, 4);
      let width = Math.max(least, Math.min(this.end, to - from));
      from = Math.max(0, Math.min(this.end - width, from));
      if (from === this.from && from + width === this.to) return;
      this.from = from;
      this.to = from + width;
      this.tell("range");
    }

    /* Zooms around an event; factor below 1 goes in. */
    zoom(factor, at) {
      const centre = at === undefined ? (this.from + this.to) / 2 : at;
      this.show(centre - (centre - this.from) * factor, centre + (this.to - centre) * factor);
    }

    pan(part) {
      const by = (this.to - this.from) * part;
      this.show(this.from + by, this.to + by);
    }

    reset() { this.show(0, this.end); }

    look(event) {
      event = Math.max(0, Math.min(this.end - 1, Math.round(event)));
      if (event === this.moment) return;
      this.moment = event;
      this.tell("moment");
    }

    setAxis(isTime) {
      if (isTime === this.isTime || (isTime && !this.data.times)) return;
      this.isTime = isTime;
      this.tell("axis");
    }

    /* Between events and places on the axis. */
    place(event) { return this.isTime ? Report.timeOf(this.data, event) : event; }
    event(place) { return this.isTime ? Report.eventOf(this.data, place) : place; }
    label(place) { return this.isTime ? Report.duration(place) : Report.count(place); }

    /* An event in words. */
    name(event) {
      const text = "event " + Report.count(event);
      return this.data.times ? text + ", after " + Report.duration(Report.timeOf(this.data, event)) : text;
    }
  }

  Report.View = View;

  /* Keys that every picture over time knows. Returns whether the key was one of them. */
  Report.timeKeys = function (view, key) {
    switch (key) {
      case "ArrowLeft": view.pan(-.2); return true;
      case "ArrowRight": view.pan(.2); return true;
      case ",": view.look(view.moment - Math.max(1, (view.to - view.from) / 200)); return true;
      case ".": view.look(view.moment + Math.max(1, (view.to - view.from) / 200)); return true;
      case "+": case "=": view.zoom(.5); return true;
      case "-": case "_": view.zoom(2); return true;
      case "0": case "Escape": view.reset(); return true;
      case "Home": view.show(0, view.to - view.from); return true;
      case "End": view.show(view.end - (view.to - view.from), view.end); return true;
      default: return false;
    }
  };
})();
