#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page in headless Chromium: browser_test.py PROGRAM [FOLDER FOR SCREENSHOTS].

Nothing outside the page is asked for, nothing is written to the console as an error, the pictures
are drawn, and pointer, keys, search and themes do what they say."""

import os
import subprocess
import sys
import tempfile

from browser import Browser, Missing

HERE = os.path.dirname(os.path.abspath(__file__))
DATA = os.path.join(os.path.dirname(os.path.dirname(HERE)), "data")
VIEW = "const view = Report.view; return [view.from, view.to, view.moment];"
# How many colours a canvas has, and how much of it is not the commonest one.
COLOURS = """
const canvas = document.querySelector(arguments[0]), context = canvas.getContext("2d");
const data = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
const counts = new Map();
for (const pixel of data) counts.set(pixel, (counts.get(pixel) || 0) + 1);
return [counts.size, 1 - Math.max(...counts.values()) / data.length];
"""
# How many pixels have a colour of the style sheet.
PIXELS_OF = """
const canvas = document.querySelector(arguments[0]), context = canvas.getContext("2d");
const data = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
const wanted = Report.pixel(arguments[1]);
let count = 0;
for (const pixel of data) count += pixel === wanted ? 1 : 0;
return count;
"""
CONTRAST = """
const light = text => { const v = parseInt(text.slice(1), 16);
  const part = c => { c /= 255; return c <= .03928 ? c / 12.92 : Math.pow((c + .055) / 1.055, 2.4); };
  return .2126 * part(v >> 16) + .7152 * part(v >> 8 & 255) + .0722 * part(v & 255); };
return arguments[0].map(([over, under]) => { const a = light(Report.colour(over)), b = light(Report.colour(under));
  return (Math.max(a, b) + .05) / (Math.min(a, b) + .05); });
"""
# Accessible names: of everything that can be focused, of pictures, of table headings.
UNNAMED = """
const found = [];
for (const node of document.querySelectorAll("button, a, input, select, summary, [tabindex='0'], [role=img], [role=application], [role=tab]")) {
  const label = node.getAttribute("aria-label") || node.textContent.trim() ||
    (node.labels && node.labels.length > 0 ? node.labels[0].textContent : "") || node.title;
  if (!label) found.push(node.outerHTML.slice(0, 80));
}
for (const table of document.querySelectorAll("table"))
  if (!table.caption || !table.querySelector("thead th")) found.push(table.outerHTML.slice(0, 80));
return found;
"""


class Pages:
    """Makes pages once and opens them."""

    def __init__(self, program, folder, browser):
        self.program, self.folder, self.browser = program, folder, browser
        self.made = {}

    def path(self, *words):
        if words not in self.made:
            path = os.path.join(self.folder, f"page{len(self.made)}.html")
            subprocess.run([self.program, "report", "-o", path, *words], check=True,
                           stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           env=dict(os.environ, UNFRAG_DATA=DATA))
            self.made[words] = path
        return self.made[words]

    def open(self, *words):
        path = self.path(*words)
        self.browser.log("performance")
        self.browser.log("browser")
        self.browser.open(path)
        ready = self.browser.wait("document.documentElement.dataset.ready")
        self.browser.frames()
        return int(ready)

    def check_quiet(self):
        assert self.browser.problems() == []
        assert self.browser.requests() == []


LARGE = ("@zimage-mixed.split128-gc80.cap24GiB",)
STACKS = ("--no-tune", "@resnet-stacks")


def close_to(value, wanted, slack):
    return abs(value - wanted) <= slack


def a_large_recording_is_drawn_without_network_or_errors(pages):
    browser = pages.browser
    print(f"interactive after {pages.open(*LARGE)} ms (662 699 events)")
    pages.check_quiet()
    for canvas in ("#timeline-chart canvas", "#map-time canvas"):
        colours, drawn = browser.run(COLOURS, canvas)
        assert colours > 20 and drawn > 0.2, (canvas, colours, drawn)
    assert browser.run(PIXELS_OF, "#map-time canvas", "cached") > 2000
    texts = browser.run("return document.querySelector('#summary').textContent")
    assert "23.09 GiB" in texts and "23.50 GiB" in texts  # as recorded: peak live, peak reserved
    assert browser.run("return document.querySelectorAll('#settings rect').length") >= 6
    assert browser.run("return document.getElementById('problem').hidden")


def dragging_in_the_timeline_zooms_both_pictures(pages):
    browser = pages.browser
    pages.open(*LARGE)
    before = browser.run(COLOURS, "#map-time canvas")
    left, top, width, height = browser.box("#timeline-chart .u-over")
    y = top + height / 2
    browser.pointer((left + width * .25, y), "down", (left + width * .4, y),
                    (left + width * .5, y), "up")
    browser.frames()
    start, end, _ = browser.run(VIEW)
    assert close_to(start, 662699 * .25, 9000) and close_to(end, 662699 * .5, 9000), (start, end)
    assert browser.run(COLOURS, "#map-time canvas") != before
    browser.run("document.querySelector('#timeline .switch button:last-child').click()")
    assert browser.run(VIEW)[:2] == [0, 662699]
    pages.check_quiet()


def the_map_zooms_by_a_box_and_by_the_wheel(pages):
    browser = pages.browser
    pages.open(*STACKS)
    left, top, width, height = browser.box("#map-time canvas")
    browser.pointer((left + 200, top + 100), "down", (left + 300, top + 150),
                    (left + 400, top + 250), "up")
    browser.frames()
    start, end, _ = browser.run(VIEW)
    assert end - start < 10190 * .25
    browser.run("const c = document.querySelector('#map-time canvas');"
                "c.dispatchEvent(new WheelEvent('wheel', {deltaY: -100, ctrlKey: true,"
                " offsetX: 300, offsetY: 200, clientX: arguments[0], clientY: arguments[1],"
                " bubbles: true, cancelable: true}));", left + 300, top + 200)
    browser.frames()
    inner = browser.run(VIEW)
    assert inner[1] - inner[0] < end - start
    browser.run("document.getElementById('map-all').click()")
    assert browser.run(VIEW)[:2] == [0, 10190]
    pages.check_quiet()


def pointing_at_a_block_tells_what_it_is(pages):
    browser = pages.browser
    pages.open(*STACKS)
    left, top, width, _ = browser.box("#map-time canvas")
    seen = set()
    for step in range(12):
        browser.pointer((left + width * .5, top + 20 + step * 40))
        browser.frames(2)
        hidden, text = browser.run("const t = document.getElementById('tip');"
                                   "return [t.hidden, t.textContent];")
        if not hidden:
            seen.add(text)
    assert any("allocated by" in text and "age: " in text for text in seen), seen
    browser.pointer((left + width * .5, top + 200), "click")
    browser.frames()
    assert browser.run("return document.querySelector('#map .facts') !== null || "
                       "Report.view.moment > 0")
    pages.check_quiet()


def search_finds_by_size_and_by_frame(pages):
    browser = pages.browser
    pages.open(*STACKS)
    find = ("const input = document.getElementById('map-search'); input.value = arguments[0];"
            "input.dispatchEvent(new Event('input'));")
    browser.run(find, ">50MiB")
    browser.wait("document.getElementById('search-result').textContent !== ''")
    browser.frames()
    large = browser.run("return document.getElementById('search-result').textContent")
    assert "block" in large and "the largest" in large
    assert browser.run(PIXELS_OF, "#map-time canvas", "hit") > 50
    browser.run(find, "resnet.py")
    browser.wait(f"document.getElementById('search-result').textContent !== {large!r}")
    by_frame = browser.run("return document.getElementById('search-result').textContent")
    assert not by_frame.startswith("0 "), by_frame
    browser.run("document.getElementById('search-next').click()")
    browser.frames()
    start, end, _ = browser.run(VIEW)
    assert end - start < 10190
    assert "resnet.py" in browser.run("return document.querySelector('#map .facts').textContent")
    browser.run(find, "no such function")
    browser.wait("document.getElementById('search-result').textContent.startsWith('0 ')")
    pages.check_quiet()


def keys_move_and_zoom(pages):
    browser = pages.browser
    pages.open(*STACKS)
    for picture in ("#timeline-chart", "#map-time"):
        browser.run("Report.view.reset(); document.querySelector(arguments[0]).focus()", picture)
        browser.keys("+")
        start, end, _ = browser.run(VIEW)
        assert close_to(end - start, 10190 / 2, 2), picture
        browser.keys("ArrowLeft")
        assert browser.run(VIEW)[0] < start, picture
        if picture == "#timeline-chart":
            said = browser.run("return document.getElementById('timeline-readout').textContent")
            assert said.startswith("Shown: from event ") and "reserved up to" in said, said
        browser.keys("0")
        assert browser.run(VIEW)[:2] == [0, 10190], picture
        moment = browser.run(VIEW)[2]
        browser.keys(",", ",")
        assert close_to(browser.run(VIEW)[2], moment - 2 * 51, 2), picture
    browser.run("document.querySelector('[role=tab][aria-selected=true]').focus()")
    browser.keys("ArrowRight")
    assert browser.run("return document.activeElement.textContent") == "end"
    assert browser.run("return document.activeElement.getAttribute('aria-selected')") == "true"
    browser.run("document.activeElement.blur(); scrollTo(0, 0)")
    for _ in range(40):
        browser.keys("Tab")
    focused = browser.run("return document.activeElement.tagName")
    assert focused != "BODY"
    pages.check_quiet()


def both_maps_and_all_colourings_are_drawn(pages):
    browser = pages.browser
    pages.open(*STACKS)
    modes = browser.run("return [...document.querySelectorAll('#map-colour option')].map(o => o.value)")
    assert modes == ["size", "age", "stream", "stack", "pool"]
    browser.run("document.getElementById('map-at-moment').click()")
    browser.frames()
    pictures = set()
    for mode in modes:
        browser.run("const s = document.getElementById('map-colour'); s.value = arguments[0];"
                    "s.dispatchEvent(new Event('change'));", mode)
        browser.frames()
        pictures.add(tuple(browser.run(COLOURS, "#map-moment-view canvas")))
        legend = browser.run("return document.querySelectorAll('#map .legend .item').length")
        assert legend >= 2, mode
    assert len(pictures) >= 3
    for order in ("cached", "size", "address"):
        browser.run("const s = document.getElementById('map-order'); s.value = arguments[0];"
                    "s.dispatchEvent(new Event('change'));", order)
        browser.frames()
        assert browser.run(COLOURS, "#map-moment-view canvas")[1] > 0.1
    left, top, _, _ = browser.box("#map-moment-view canvas")
    browser.pointer((left + 5, top + 6))
    browser.frames(2)
    assert "segment" in browser.run("return document.getElementById('tip').textContent")
    browser.run("document.getElementById('map-table').open = true")
    browser.frames()
    assert browser.run("return document.querySelectorAll('#map-table tbody tr').length") == 50
    pages.check_quiet()


def both_themes_are_drawn_and_can_be_read(pages):
    browser = pages.browser
    pairs = [["text", "card"], ["muted", "card"], ["text", "page"], ["muted", "page"],
             ["accent", "card"], ["accent-text", "accent"], ["oom", "card"], ["muted", "soft"]]
    pixels = {}
    for scheme in ("light", "dark"):
        browser.prefer(scheme)
        pages.open(*STACKS)
        assert browser.run("return document.documentElement.dataset.theme") == scheme
        ratios = browser.run(CONTRAST, pairs)
        assert min(ratios) >= 4.5, list(zip(pairs, ratios))  # WCAG AA for text
        graphics = browser.run(CONTRAST, [["live", "card"], ["reserved", "card"], ["retry", "card"],
                                          ["empty", "card"], ["size-3", "cached"]])
        assert min(graphics[:4]) >= 2.4 and graphics[4] >= 2, graphics
        pixels[scheme] = browser.run(PIXELS_OF, "#map-time canvas", "card")
        assert pixels[scheme] > 1000
    browser.prefer("light")
    browser.frames()
    browser.run("document.getElementById('theme').click()")
    browser.frames()
    assert browser.run("return document.documentElement.dataset.theme") == "dark"
    pages.check_quiet()


def everything_that_can_be_reached_has_a_name(pages):
    for words in (STACKS, ("--no-tune", "@sdxl-mixed.default.cap14GiB")):
        pages.open(*words)
        assert pages.browser.run(UNNAMED) == []
    assert pages.browser.run("return document.querySelectorAll('[role=tab]').length") == 8
    pages.browser.run("document.querySelectorAll('[role=tab]')[6].click()")  # the last failure
    text = pages.browser.run("return document.querySelector('#moment-panel').textContent")
    assert "Cause: fragmentation" in text and "1.32 GiB were asked for" in text, text


def the_axis_can_count_time(pages):
    browser = pages.browser
    pages.open(*STACKS)
    before = browser.run(COLOURS, "#map-time canvas")
    browser.run("document.getElementById('axis-time').click()")
    browser.frames()
    assert browser.run("return Report.view.isTime")
    assert browser.run(COLOURS, "#map-time canvas") != before
    assert browser.run("return Math.abs(Report.view.event(Report.view.place(5000)) - 5000)") < 2
    pages.check_quiet()


def two_recordings_lie_on_each_other(pages):
    pages.open("@train.default", "@train.split128")
    pages.check_quiet()
    text = pages.browser.run("return document.querySelector('#difference').textContent")
    assert "27.28 GiB more" in text, text
    assert pages.browser.run(COLOURS, "#difference-chart canvas")[0] > 10


def a_snapshot_without_history_has_a_map(pages):
    path = os.path.join(pages.folder, "state.pickle")
    subprocess.run([sys.executable, os.path.join(os.path.dirname(HERE), "cli", "make_state.py"), path],
                   check=True)
    pages.open(path)
    pages.check_quiet()
    assert pages.browser.run(COLOURS, "#map-moment-view canvas")[1] > 0.1
    assert pages.browser.run("return document.getElementById('timeline') === null")


def narrow_windows_need_no_sideways_scrolling(pages):
    for width in (360, 768, 1920):
        pages.browser.size(width, 800)
        pages.open(*STACKS)
        over = pages.browser.run("return document.documentElement.scrollWidth - innerWidth")
        assert over <= 0, (width, over)
    pages.browser.size(1280, 900)


TESTS = [a_large_recording_is_drawn_without_network_or_errors,
         dragging_in_the_timeline_zooms_both_pictures, the_map_zooms_by_a_box_and_by_the_wheel,
         pointing_at_a_block_tells_what_it_is, search_finds_by_size_and_by_frame,
         keys_move_and_zoom, both_maps_and_all_colourings_are_drawn,
         both_themes_are_drawn_and_can_be_read, everything_that_can_be_reached_has_a_name,
         the_axis_can_count_time, two_recordings_lie_on_each_other,
         a_snapshot_without_history_has_a_map, narrow_windows_need_no_sideways_scrolling]


def run(test, pages, shots):
    try:
        pages.browser.prefer("light")
        test(pages)
        return True
    except (AssertionError, RuntimeError) as error:
        trace = error.__traceback__.tb_next
        print(f"{test.__name__}: line {trace.tb_lineno}: {error}")
        if shots:
            pages.browser.screenshot(os.path.join(shots, test.__name__ + ".png"))
        return False


def main():
    program = os.path.abspath(sys.argv[1])
    shots = sys.argv[2] if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory(prefix="unfrag-report-") as folder:
        try:
            browser = Browser()
        except Missing as error:
            print(f"browser_test: {error}")
            print("0 passed, 1 failed")
            return 1
        try:
            browser.size(1280, 900)
            pages = Pages(program, folder, browser)
            results = [run(test, pages, shots) for test in TESTS]
        finally:
            browser.close()
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
