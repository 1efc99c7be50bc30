#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes the pictures of docs/report.md and the README anew: shoot_pictures.py PROGRAM FOLDER.

Look at them before you keep them; `pngquant 64` makes them small."""

import base64
import os
import subprocess
import sys
import tempfile

from browser import Browser

SDXL, ZIMAGE = "@sdxl-mixed.default.cap14GiB", "@zimage-1024.default"
CHOOSE = ("const s = document.getElementById(arguments[0]); s.value = arguments[1];"
          "s.dispatchEvent(new Event('change'));")


def shoot(browser, path, first, last=None):
    """From the top of one element to the bottom of another."""
    box = browser.run("const a = document.querySelector(arguments[0]).getBoundingClientRect(),"
                      " b = document.querySelector(arguments[1]).getBoundingClientRect();"
                      "return [a.left, a.top + scrollY, a.width, b.bottom - a.top];",
                      first, last or first)
    data = browser.cdp("Page.captureScreenshot", format="png", captureBeyondViewport=True,
                       clip={"x": box[0], "y": box[1], "width": box[2], "height": box[3],
                             "scale": 1})["data"]
    with open(path, "wb") as stream:
        stream.write(base64.b64decode(data))


def main():
    program, folder = os.path.abspath(sys.argv[1]), sys.argv[2]
    browser = Browser()
    with tempfile.TemporaryDirectory() as pages:
        try:
            browser.size(1100, 900)
            browser.prefer("light")
            for name, recording in (("sdxl", SDXL), ("zimage", ZIMAGE)):
                path = os.path.join(pages, name + ".html")
                subprocess.run([program, "report", recording, "-o", path], check=True,
                               stdout=subprocess.DEVNULL)
                browser.open(path)
                browser.wait("document.documentElement.dataset.ready")
                browser.frames()
                if name == "zimage":
                    shoot(browser, f"{folder}/report-settings.png", "#settings svg",
                          "#settings svg")
                    continue
                shoot(browser, f"{folder}/report.png", "#summary", "#timeline-readout")
                shoot(browser, f"{folder}/report-timeline.png", "#timeline-chart")
                shoot(browser, f"{folder}/report-map.png", "#map-time", "#map .legend")
                browser.run("document.getElementById('map-at-moment').click()")
                browser.run(CHOOSE, "map-order", "cached")
                browser.frames()
                shoot(browser, f"{folder}/report-moment.png", "#map-moment-view", "#map .legend")
        finally:
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
