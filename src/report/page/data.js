/* Unpacks the columns of a recording: gzip in base64, numbers of seven bits a byte. What stands
 * where is decided by src/report/columns.c. SPDX-License-Identifier: MIT */
"use strict";

(function () {
  async function unpack(text) {
    const letters = atob(text.trim());
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
    if (typeof DecompressionStream === "undefined")
      throw new Error("This browser is too old to unpack the recording: it needs one of 2023 or later.");
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }

  class Reader {
    constructor(bytes) { this.bytes = bytes; this.at = 0; }

    number() {
      const bytes = this.bytes;
      let byte = bytes[this.at++];
      if (byte < 128) return byte;
      let value = byte & 127, scale = 128;
      do {
        byte = bytes[this.at++];
        value += (byte & 127) * scale;
        scale *= 128;
      } while (byte >= 128);
      return value;
    }

    /* For addresses, which may need all 64 bits. */
    big() {
      let value = 0n, shift = 0n, byte;
      do {
        byte = this.bytes[this.at++];
        value |= BigInt(byte & 127) << shift;
        shift += 7n;
      } while (byte >= 128);
      return value;
    }

    signed() {
      const value = this.number();
      return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }

    column(count, ArrayType, isStep) {
      const values = new ArrayType(count);
      let before = 0;
      for (let i = 0; i < count; i++) {
        const value = this.signed() + (isStep ? before : 0);
        values[i] = value;
        before = value;
      }
      return values;
    }
  }

  function readTimeline(reader, data) {
    const LEVELS = ["live", "allocated", "active", "reserved"];
    data.bucketEvents = reader.number();
    data.buckets = reader.number();
    data.most = {};
    data.least = {};
    for (const level of LEVELS) {
      const most = new Float64Array(data.buckets), least = new Float64Array(data.buckets);
      let before = 0;
      for (let i = 0; i < data.buckets; i++) { before += reader.signed(); most[i] = before * 512; }
      for (let i = 0; i < data.buckets; i++) least[i] = most[i] - reader.number() * 512;
      data.most[level] = most;
      data.least[level] = least;
    }
    data.allocs = new Float64Array(data.buckets);
    for (let i = 0, sum = 0; i < data.buckets; i++) { sum += reader.number(); data.allocs[i] = sum; }
    data.times = null;
    if (reader.number() === 1) {
      data.times = new Float64Array(data.buckets);
      for (let i = 0, sum = 0; i < data.buckets; i++) { sum += reader.number(); data.times[i] = sum; }
    }
  }

  function readLanes(reader, data) {
    const count = reader.number();
    data.lanes = [];
    let addr = 0n, height = 0;
    for (let i = 0; i < count; i++) {
      addr += reader.big();
      const size = reader.number();
      data.lanes.push({ addr: addr, height: height, size: size });
      height += size;
    }
    data.height = height;
  }

  /* When a life of 0 means "to the end": the event at which each is gone. */
  function endsOf(from, life, events) {
    const ends = new Float64Array(from.length);
    for (let i = 0; i < from.length; i++) ends[i] = life[i] === 0 ? events : from[i] + life[i] - 1;
    return ends;
  }

  function readExtents(reader, data) {
    const n = reader.number();
    const from = reader.column(n, Float64Array, true), life = reader.column(n, Float64Array, false);
    data.extents = {
      count: n, from: from, to: endsOf(from, life, Math.max(1, data.events)),
      y: reader.column(n, Float64Array, true), size: reader.column(n, Float64Array, false),
      stream: reader.column(n, Uint16Array, false), pool: reader.column(n, Uint16Array, false),
      kind: reader.column(n, Uint8Array, false)
    };
  }

  function readSpans(reader, data) {
    const n = reader.number(), events = Math.max(1, data.events);
    const from = reader.column(n, Float64Array, true), life = reader.column(n, Float64Array, false);
    const to = endsOf(from, life, events), wait = reader.column(n, Float64Array, false);
    const y = reader.column(n, Float64Array, true), size = reader.column(n, Float64Array, false);
    const requested = reader.column(n, Float64Array, false);
    for (let i = 0; i < n; i++) requested[i] = size[i] * data.unit - requested[i];
    data.spans = {
      count: n, from: from, to: to, isLeft: life.map(v => v === 0 ? 1 : 0), wait: wait, y: y, size: size,
      requested: requested, stream: reader.column(n, Uint16Array, false),
      pool: reader.column(n, Uint16Array, false), stack: reader.column(n, Uint32Array, false)
    };
  }

  Report.unpack = async function (id) {
    const node = document.getElementById(id);
    const reader = new Reader(await unpack(node.textContent));
    node.remove();
    const data = { events: reader.number(), unit: reader.number() };
    readTimeline(reader, data);
    readLanes(reader, data);
    readExtents(reader, data);
    readSpans(reader, data);
    if (reader.at !== reader.bytes.length) throw new Error("The data of this page are damaged.");
    return data;
  };

  /* The address of a height of the map. */
  Report.addressOf = function (data, height) {
    let low = 0, high = data.lanes.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (data.lanes[middle].height <= height) low = middle; else high = middle;
    }
    if (data.lanes.length === 0) return "-";
    const lane = data.lanes[low];
    return "0x" + (lane.addr + BigInt(Math.floor(height - lane.height)) * BigInt(data.unit)).toString(16);
  };

  /* Microseconds from the first event to an event (fractions allowed). */
  Report.timeOf = function (data, event) {
    if (!data.times) return event;
    const place = Math.max(0, event) / data.bucketEvents;
    const bucket = Math.min(data.buckets - 1, Math.floor(place));
    const next = Math.min(data.buckets - 1, bucket + 1);
    return data.times[bucket] + (data.times[next] - data.times[bucket]) * Math.min(1, place - bucket);
  };

  Report.eventOf = function (data, time) {
    if (!data.times) return time;
    let low = 0, high = data.buckets;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (data.times[middle] <= time) low = middle; else high = middle;
    }
    const next = Math.min(data.buckets - 1, low + 1), span = data.times[next] - data.times[low];
    const part = span > 0 ? Math.min(1, Math.max(0, (time - data.times[low]) / span)) : 0;
    return Math.min(data.events, (low + part) * data.bucketEvents);
  };
})();
