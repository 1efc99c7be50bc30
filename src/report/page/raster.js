/* Draws many rectangles into the pixels of a canvas. Small ones are mixed in by how much of a pixel
 * they cover; large ones come later and lie on top. SPDX-License-Identifier: MIT */
"use strict";

(function () {
  function mix(under, over, part) {
    const keep = 1 - part;
    const r = (under & 255) * keep + (over & 255) * part;
    const g = (under >> 8 & 255) * keep + (over >> 8 & 255) * part;
    const b = (under >> 16 & 255) * keep + (over >> 16 & 255) * part;
    return (0xff000000 | (b & 255) << 16 | (g & 255) << 8 | (r & 255)) >>> 0;
  }
  Report.mix = mix;

  class Raster {
    constructor(width, height) {
      this.width = width;
      this.height = height;
      this.image = new ImageData(width, height);
      this.pixels = new Uint32Array(this.image.data.buffer);
    }

    clear(colour) { this.pixels.fill(colour); }

    /* From left to right in pixels, top to bottom; fractions are allowed. */
    rectangle(left, top, right, bottom, colour) {
      const width = this.width, height = this.height;
      if (right <= 0 || bottom <= 0 || left >= width || top >= height) return;
      const wide = right - left, tall = bottom - top;
      let x0 = Math.round(left), x1 = Math.round(right), y0 = Math.round(top), y1 = Math.round(bottom), part = 1;
      if (x1 <= x0) { x0 = Math.floor(left); x1 = x0 + 1; part = Math.min(1, wide); }
      if (y1 <= y0) { y0 = Math.floor(top); y1 = y0 + 1; part *= Math.min(1, tall); }
      x0 = Math.max(0, x0); y0 = Math.max(0, y0);
      x1 = Math.min(width, x1); y1 = Math.min(height, y1);
      if (part < .003 || x1 <= x0) return;
      const pixels = this.pixels;
      for (let y = y0; y < y1; y++) {
        const row = y * width;
        if (part >= .999) pixels.fill(colour, row + x0, row + x1);
        else for (let x = row + x0; x < row + x1; x++) pixels[x] = mix(pixels[x], colour, part);
      }
    }

    put(context) { context.putImageData(this.image, 0, 0); }
  }

  Report.Raster = Raster;

  /* The order in which rectangles are drawn: by the logarithm of their area, small ones first. */
  Report.drawingOrder = function (spans) {
    const n = spans.count, weights = new Uint8Array(n), counts = new Uint32Array(257);
    for (let i = 0; i < n; i++) {
      weights[i] = Math.min(255, Math.max(0, Math.log2(1 + spans.size[i] * (spans.to[i] - spans.from[i])) * 3));
      counts[weights[i] + 1]++;
    }
    for (let w = 0; w < 256; w++) counts[w + 1] += counts[w];
    const order = new Uint32Array(n);
    for (let i = 0; i < n; i++) order[counts[weights[i]]++] = i;
    return order;
  };
})();
