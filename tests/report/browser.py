# SPDX-License-Identifier: MIT
"""A headless Chromium driven through ChromeDriver, with Python's standard library alone.

Only what the tests of the report need: one window, scripts, keys, the pointer, screenshots, the
console, and what was asked of the network (nothing may be: every host name resolves to nowhere)."""

import base64
import json
import os
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request

PROGRAMS = (("chromium", "chromium-browser", "google-chrome"), ("chromedriver",))
START_SECONDS = 30


class Missing(Exception):
    """A program that the tests need is not there."""


def find_programs():
    found = []
    for names in PROGRAMS:
        path = next((p for p in map(shutil.which, names) if p), None)
        if path is None:
            raise Missing(f"{names[0]} is not installed: scripts/setup test installs it")
        found.append(path)
    return found


class Browser:
    def __init__(self, width=1280, height=900):
        chromium, driver = find_programs()
        self.folder = tempfile.mkdtemp(prefix="unfrag-browser-")
        self.process = subprocess.Popen([driver, "--port=0"], stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, text=True,
                                        env=dict(os.environ, HOME=self.folder))
        try:
            self.address = self.wait_for_port()
            self.open_session(chromium, width, height)
        except Exception:
            self.close()
            raise

    def wait_for_port(self):
        end = time.monotonic() + START_SECONDS
        for line in self.process.stdout:
            if "started successfully on port" in line:
                return "http://127.0.0.1:" + line.rstrip().rstrip(".").rsplit(" ", 1)[1]
            if time.monotonic() > end:
                break
        raise RuntimeError("ChromeDriver did not start")

    def open_session(self, chromium, width, height):
        arguments = ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu",
                     "--hide-scrollbars", "--force-device-scale-factor=1",
                     "--disable-background-networking", "--disable-component-update",
                     "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
                     f"--window-size={width},{height}", f"--user-data-dir={self.folder}/profile"]
        options = {"binary": chromium, "args": arguments,
                   "perfLoggingPrefs": {"enableNetwork": True}}
        answer = self.call("POST", "/session", {"capabilities": {"alwaysMatch": {
            "browserName": "chrome", "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"}}}})
        self.session = "/session/" + answer["sessionId"]

    def call(self, method, path, body=None):
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.address + path, data=data, method=method,
                                         headers={"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise RuntimeError(json.load(error)["value"]["message"]) from None

    def post(self, path, body=None):
        return self.call("POST", self.session + path, body if body is not None else {})

    def open(self, path):
        self.post("/url", {"url": "file://" + os.path.abspath(path)})

    def run(self, script, *arguments):
        """The value of a function body; `arguments[0]` and so on are what is given."""
        return self.post("/execute/sync", {"script": script, "args": list(arguments)})

    def wait(self, script, seconds=20):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            value = self.run("return " + script)
            if value:
                return value
            time.sleep(0.05)
        raise RuntimeError("this never came true: " + script)

    def frames(self, count=3):
        """Lets the page draw."""
        self.post("/execute/async", {"script": "let n = arguments[0], done = arguments[1];"
                                               "(function step() { if (n-- <= 0) done(true); else"
                                               " requestAnimationFrame(step); })();",
                                     "args": [count]})

    def size(self, width, height):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=1, mobile=False)

    def prefer(self, scheme):
        self.cdp("Emulation.setEmulatedMedia",
                 features=[{"name": "prefers-color-scheme", "value": scheme}])

    def cdp(self, command, **parameters):
        return self.post("/goog/cdp/execute", {"cmd": command, "params": parameters})

    def keys(self, *keys):
        names = {"ArrowLeft": "\ue012", "ArrowUp": "\ue013", "ArrowRight": "\ue014",
                 "ArrowDown": "\ue015", "Tab": "\ue004", "Enter": "\ue007", "Escape": "\ue00c"}
        steps = []
        for key in keys:
            value = names.get(key, key)
            steps += [{"type": "keyDown", "value": value}, {"type": "keyUp", "value": value}]
        self.post("/actions", {"actions": [{"type": "key", "id": "keys", "actions": steps}]})

    def pointer(self, *steps):
        """Steps: (x, y) moves, "down", "up", "click"."""
        actions = []
        for step in steps:
            if isinstance(step, tuple):
                actions.append({"type": "pointerMove", "x": int(step[0]), "y": int(step[1]),
                                "duration": 30})
            if step in ("down", "click"):
                actions.append({"type": "pointerDown", "button": 0})
            if step in ("up", "click"):
                actions.append({"type": "pointerUp", "button": 0})
        self.post("/actions", {"actions": [{"type": "pointer", "id": "mouse",
                                            "parameters": {"pointerType": "mouse"},
                                            "actions": actions}]})

    def box(self, selector):
        """The place of an element in the window, scrolled into view: left, top, width, height."""
        return self.run("const node = document.querySelector(arguments[0]);"
                        "node.scrollIntoView({block: 'center', behavior: 'instant'});"
                        "const b = node.getBoundingClientRect();"
                        "return [b.left, b.top, b.width, b.height];", selector)

    def screenshot(self, path, is_full=False):
        options = {"format": "png"}
        if is_full:
            height = self.run("return Math.ceil(document.documentElement.scrollHeight)")
            width = self.run("return innerWidth")
            options["captureBeyondViewport"] = True
            options["clip"] = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        data = self.cdp("Page.captureScreenshot", **options)["data"]
        with open(path, "wb") as stream:
            stream.write(base64.b64decode(data))

    def log(self, kind):
        return self.post("/se/log", {"type": kind})

    def problems(self):
        """What the console has that is no plain message."""
        return [entry["message"] for entry in self.log("browser")
                if entry["level"] in ("SEVERE", "WARNING")
                and "Multiple readback" not in entry["message"]]  # the tests read pixels

    def requests(self):
        """Addresses that were asked for, but for the page itself and data inside it."""
        found = []
        for entry in self.log("performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                url = message["params"]["request"]["url"]
                if not url.startswith(("file:", "data:", "blob:", "about:", "chrome:")):
                    found.append(url)
        return found

    def close(self):
        try:
            if hasattr(self, "session"):
                self.call("DELETE", self.session)
        except (OSError, RuntimeError):
            pass
        self.process.terminate()
        self.process.wait()
        self.process.stdout.close()
        shutil.rmtree(self.folder, ignore_errors=True)
