#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The live view under tmux, with real keys, at 80x24 and 200x50: view.py UNFRAG WORKER

Screens are compared by what stands on them. With VIEW_SHOW=1 they are printed, to be looked at."""

import os
import re
import signal
import subprocess
import sys
import time

from watched import Checks, Watched, need, wait_until

TMUX = need("tmux", "tmux")


class Terminal:
    count = 0

    def __init__(self, watched, command, columns, rows, term="screen-256color", **variables):
        Terminal.count += 1
        self.socket = f"unfrag-view-{os.getpid()}-{Terminal.count}"
        sets = " ".join(f"{k}='{v}'" for k, v in dict(
            UNFRAG_MONITOR_DIR=watched.folder, TERM=term, LANG="C.UTF-8", **variables).items())
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", str(columns), "-y", str(rows),
                  f"env -u LC_ALL {sets} {command}; echo code=$?; stty -a | grep -o -- '-\\?icanon';"
                  " exec sleep 600", env=watched.environment)

    def tmux(self, *words, env=None):
        return subprocess.run([TMUX, "-L", self.socket, *words], capture_output=True, text=True,
                              check=False, env=env).stdout

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def keys(self, *names):
        self.tmux("send-keys", *names)

    def shows(self, pattern, seconds=10):
        found = wait_until(lambda: re.search(pattern, self.screen(), re.M), seconds)
        if os.environ.get("VIEW_SHOW"):
            print(f"--- {pattern}\n{self.screen()}")
        return found

    def pid(self):
        pane = int(self.tmux("display-message", "-p", "#{pane_pid}").strip())
        children = subprocess.run(["pgrep", "-P", str(pane)], capture_output=True, text=True,
                                  check=False).stdout.split()
        return int(children[0])

    def close(self):
        self.tmux("kill-server")


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stream:
        fields = stream.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def list_view(check, watched, program, columns, rows):
    terminal = Terminal(watched, f"{program} top --interval 0.5", columns, rows)
    size = f"{columns}x{rows}"
    check.that(f"{size}: the list shows all processes", terminal.shows(r"8 of 8 processes"))
    text = terminal.screen()
    check.that(f"{size}: no line is longer than the screen",
               max(map(len, text.split("\n"))) <= columns, text)
    check.that(f"{size}: the card and its figures are there",
               re.search(r"simulated +\[\|.*\] .* of 24\.0G, ours .*, others -", text), text)
    for kind in ("steady", "growing", "fragmented", "unfrag"):
        check.that(f"{size}: {kind} is listed", f"python {kind}.py" in text, text)
    check.that(f"{size}: fragmentation is an alarm",
               re.search(r"! fragmented +python fragmented.py", text), text)
    check.that(f"{size}: the largest is first, by reserved",
               re.search(r"^ *%d " % watched.pid(2), text.split("RETRY", 1)[1], re.M), text)
    check.that(f"{size}: history is drawn", terminal.shows("[▁▂▃▄▅▆▇█]{2,}"))

    terminal.keys("N")
    check.that(f"{size}: N sorts by pid", terminal.shows(r"by pid$"))
    first = re.search(r"RETRY.*\n *(\d+)", terminal.screen())
    check.that(f"{size}: the smallest pid is first",
               first and int(first.group(1)) == min(p.pid for p in watched.workers))
    terminal.keys("I")
    check.that(f"{size}: I inverts", terminal.shows(r"by pid inverted"))
    terminal.keys(">")
    check.that(f"{size}: > sorts by the next column", terminal.shows(r"by reserved inverted"))
    terminal.keys("I")

    terminal.keys("/")
    terminal.tmux("send-keys", "-l", "GROWx")
    terminal.keys("BSpace")
    check.that(f"{size}: typing filters", terminal.shows(r"^unfrag top: 1 of 8 processes"))
    check.that(f"{size}: the filter is shown", terminal.shows(r"filter: GROW_"))
    terminal.keys("Enter")
    check.that(f"{size}: only what matches is listed",
               terminal.shows(r"python growing.py") and "steady.py" not in terminal.screen())
    terminal.keys("Escape")
    check.that(f"{size}: Esc ends the filter", terminal.shows(r"8 of 8 processes"))

    terminal.keys("Space")
    check.that(f"{size}: Space pauses", terminal.shows(r"PAUSED"))
    terminal.keys("Space")
    check.that(f"{size}: and goes on", wait_until(lambda: "PAUSED" not in terminal.screen()))
    terminal.keys("h")
    check.that(f"{size}: h helps", terminal.shows(r"filter by command, pid, policy or alarm"))
    terminal.keys("Escape")
    check.that(f"{size}: Esc leaves the help", terminal.shows(r"RETRY"))
    terminal.keys("-")
    check.that(f"{size}: - halves the interval", terminal.shows(r"every 0\.25 s"))
    return terminal


def detail_view(check, watched, terminal, size):
    terminal.keys("/")
    terminal.tmux("send-keys", "-l", str(watched.pid(0)))
    terminal.keys("Enter")
    terminal.shows(r"1 of 8 processes")
    terminal.keys("Enter")
    check.that(f"{size}: Enter shows a process", terminal.shows(r"^POOL +RESERV"))
    text = terminal.screen()
    check.that(f"{size}: its pools are there",
               re.search(r"^0:0 default +\d", text, re.M) and re.search(r"^0:1 private +30\.0M", text, re.M),
               text)
    check.that(f"{size}: its streams are there",
               re.search(r"^STREAM", text, re.M) and re.search(r"^0x7 ", text, re.M), text)
    check.that(f"{size}: its figures are there",
               re.search(r"reserved \S+ +active \S+ +allocated", text), text)
    terminal.keys("Escape")
    terminal.shows(r"RETRY")


def quit_view(check, terminal, size, how):
    how()
    check.that(f"{size}: it ends well", terminal.shows(r"^code=\d+\n-?icanon"))
    text = terminal.screen()
    check.that(f"{size}: the terminal is as before", "\nicanon" in text and "-icanon" not in text, text)


def main():
    program, worker = sys.argv[1:3]
    check = Checks()
    watched = Watched(worker, ["steady", "growing", "fragmented", "unfrag"] + ["steady"] * 4)
    terminal = None
    try:
        for columns, rows in ((80, 24), (200, 50)):
            size = f"{columns}x{rows}"
            terminal = list_view(check, watched, program, columns, rows)
            detail_view(check, watched, terminal, size)
            quit_view(check, terminal, size, lambda: terminal.keys("q"))
            check.that(f"{size}: q is a good end", "code=0" in terminal.screen())
            terminal.close()

        terminal = Terminal(watched, f"{program} top", 80, 24)
        terminal.shows(r"8 of 8")
        terminal.tmux("resize-window", "-x", "140", "-y", "30")
        check.that("a larger window has one line for a process",
                   terminal.shows(r"RETRY RESERVED OVER TIME +COMMAND"))
        terminal.tmux("resize-window", "-x", "40", "-y", "8")
        check.that("a small window breaks nothing",
                   wait_until(lambda: max(map(len, terminal.screen().split("\n"))) <= 40)
                   and terminal.shows(r"^unfrag top"))
        quit_view(check, terminal, "SIGTERM", lambda: os.kill(terminal.pid(), signal.SIGTERM))
        check.that("a signal is passed on", "code=143" in terminal.screen())
        terminal.close()

        terminal = Terminal(watched, f"{program} top", 80, 24)
        terminal.shows(r"8 of 8")
        quit_view(check, terminal, "Ctrl-C", lambda: terminal.keys("C-c"))
        terminal.close()

        for term, variables in (("vt100", {}), ("screen-256color", {"NO_COLOR": "1"})):
            terminal = Terminal(watched, f"{program} top", 80, 24, term=term, **variables)
            check.that(f"{term} {variables}: the view works", terminal.shows(r"8 of 8"))
            colored = terminal.tmux("capture-pane", "-p", "-e")
            check.that(f"{term} {variables}: no colours", not re.search(r"\x1b\[[0-9;]*[34][0-7]m", colored))
            if term == "vt100":
                check.that("vt100: plain characters", terminal.screen().isascii(), terminal.screen())
            terminal.close()
        terminal = Terminal(watched, f"{program} top --count 1", 120, 40, term="dumb")
        check.that("dumb: a table instead", terminal.shows(r"^code=0")
                   and re.search(r"PID +DEV +POLICY", terminal.screen()), terminal.screen())
        terminal.close()

        terminal = Terminal(watched, f"{program} top --interval 0.5", 80, 24)
        terminal.shows(r"8 of 8")
        pid, before, start = terminal.pid(), None, time.monotonic()
        before = cpu_seconds(pid)
        time.sleep(10)
        share = (cpu_seconds(pid) - before) / (time.monotonic() - start)
        check.that(f"at 2 Hz with 8 processes it takes {100 * share:.2f} % of a core: under 1 %",
                   share < 0.01)
        watched.end(0)
        check.that("a process that ends leaves the list", terminal.shows(r"7 of 7"))
        os.kill(watched.pid(1), signal.SIGKILL)
        watched.workers[1].wait()
        check.that("one that is killed, too", terminal.shows(r"6 of 6"))
        check.that("and its page is removed",
                   not [n for n in os.listdir(watched.folder) if n.startswith(f"{watched.pid(1)}-")])
    finally:
        if terminal is not None:
            terminal.close()
        watched.close()
    check.end()


if __name__ == "__main__":
    main()
