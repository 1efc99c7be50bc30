#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""`unfrag export` from outside: export.py UNFRAG WORKER. HTTP as clients should and should not
speak it, the file for node_exporter, promtool's check, and a scrape by a real Prometheus."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.parse
import urllib.request

from watched import Checks, Watched, need, wait_until

PROMTOOL = need("promtool", "prometheus")
PROMETHEUS = need("prometheus", "prometheus")


class Server:
    def __init__(self, program, watched):
        self.process = subprocess.Popen([program, "export", "--listen", "127.0.0.1:0"],
                                        env=watched.environment, stderr=subprocess.PIPE, text=True)
        line = self.process.stderr.readline()
        self.port = int(re.search(r"http://127\.0\.0\.1:(\d+)/metrics", line).group(1))

    def ask(self, method, path):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        connection.request(method, path)
        answer = connection.getresponse()
        body = answer.read().decode()
        connection.close()
        return answer, body

    def raw(self, data, pause=0.0):
        """What comes back for these bytes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=15) as one:
            for part in data if isinstance(data, list) else [data]:
                one.sendall(part)
                time.sleep(pause)
            received = b""
            try:
                while chunk := one.recv(65536):
                    received += chunk
            except ConnectionResetError:
                pass
            return received.decode("latin-1")


def parse(text):
    """Samples by name and labels; an own reading of the format."""
    samples, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert name not in types, f"{name} is typed twice"
            types[name] = kind
        elif line and not line.startswith("#"):
            name, labels, value = re.fullmatch(r"([a-z_]+)\{(.*)\} (\S+)", line).groups()
            assert name in types, f"{name} has no type"
            key = (name, labels)
            assert key not in samples, f"{line} is there twice"
            samples[key] = float(value)
    return samples, types


def http_cases(check, server):
    answer, body = server.ask("GET", "/metrics")
    check.that("GET /metrics is answered", answer.status == 200
               and answer.getheader("Content-Type") == "text/plain; version=0.0.4; charset=utf-8"
               and int(answer.getheader("Content-Length")) == len(body.encode()))
    answer, body = server.ask("HEAD", "/metrics")
    check.that("HEAD has no body", answer.status == 200 and body == "")
    check.that("/ leads to the metrics", "/metrics" in server.ask("GET", "/")[1])
    check.that("another path is not found", server.ask("GET", "/etc/passwd")[0].status == 404)
    answer, _ = server.ask("POST", "/metrics")
    check.that("POST is not allowed", answer.status == 405 and answer.getheader("Allow") == "GET, HEAD")
    check.that("garbage is a bad request",
               server.raw(b"\x16\x03\x01\x02\x00\x01\x00 \r\n\r\n").startswith("HTTP/1.1 400 "))
    check.that("a head that never ends is too large",
               server.raw(b"GET / HTTP/1.1\r\nA: " + b"a" * 9000).startswith("HTTP/1.1 431 "))
    check.that("a request in pieces is one request",
               server.raw([b"GET /me", b"trics HTTP/1.1\r\nHos", b"t: a\r\n\r", b"\n"], 0.05)
               .startswith("HTTP/1.1 200 OK\r\n"))
    silent = [socket.create_connection(("127.0.0.1", server.port)) for _ in range(31)]
    answer, _ = server.ask("GET", "/metrics")
    check.that("31 silent connections do not keep it from answering", answer.status == 200)
    for one in silent:
        one.close()


def metrics_cases(check, watched, text):
    samples, types = parse(text)
    pids = [process.pid for process in watched.workers]
    for number, pid in enumerate(pids):
        labels = [key for key in samples
                  if key[0] == "unfrag_reserved_bytes" and f'pid="{pid}"' in key[1]]
        check.that(f"process {number} has its reserved bytes", len(labels) == 1)
    check.that("names end as their units do",
               all(re.search(r"_(bytes|total|ratio|seconds|info|blocks|alarm)$", name) for name in types))
    check.that("counters end in _total",
               all(name.endswith("_total") == (kind == "counter") for name, kind in types.items()))
    done = subprocess.run([PROMTOOL, "check", "metrics"], input=text, capture_output=True, text=True,
                          check=False)
    check.that("promtool has nothing to say", done.returncode == 0 and not done.stderr + done.stdout,
               done.stdout + done.stderr)


def textfile_cases(check, program, watched):
    path = os.path.join(watched.folder, "unfrag.prom")
    done = subprocess.run([program, "export", "--textfile", path, "--once"], env=watched.environment,
                          check=False)
    with open(path, encoding="utf-8") as stream:
        check.that("the file is written once", done.returncode == 0
                   and "unfrag_reserved_bytes" in stream.read())
    inode = os.stat(path).st_ino
    writer = subprocess.Popen([program, "export", "--textfile", path, "--interval", "1"],
                              env=watched.environment)
    check.that("it is replaced whole, again and again",
               wait_until(lambda: os.stat(path).st_ino != inode))
    writer.send_signal(signal.SIGTERM)
    check.that("SIGTERM ends it", writer.wait(10) == 0)


def query(port, expression):
    url = f"http://127.0.0.1:{port}/api/v1/query?query=" + urllib.parse.quote(expression)
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return json.load(answer)["data"]["result"]
    except OSError:
        return []


def vacant_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def scrape_cases(check, watched, server):
    folder, port = os.path.join(watched.folder, "prometheus"), vacant_port()
    os.mkdir(folder)
    config = os.path.join(folder, "prometheus.yml")
    with open(config, "w", encoding="utf-8") as stream:
        stream.write("global: {scrape_interval: 1s}\nscrape_configs:\n- job_name: unfrag\n"
                     f"  static_configs: [{{targets: ['127.0.0.1:{server.port}']}}]\n")
    process = subprocess.Popen(
        [PROMETHEUS, f"--config.file={config}", f"--storage.tsdb.path={folder}/data",
         f"--web.listen-address=127.0.0.1:{port}"], stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL)
    try:
        check.that("Prometheus scrapes it",
                   wait_until(lambda: query(port, "up{job=\"unfrag\"} == 1"), 30))
        count = len(watched.workers)
        check.that("it has the reserved bytes of every process",
                   wait_until(lambda: len(query(port, "unfrag_reserved_bytes")) == count))
        check.that("rates can be computed of counters",
                   wait_until(lambda: query(port, "rate(unfrag_allocations_total[10s]) > 0"), 30))
        path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "data",
                            "grafana", "unfrag.json")
        with open(path, encoding="utf-8") as stream:
            dashboard = json.load(stream)
        for panel in dashboard["panels"]:
            for target in panel.get("targets", []):
                expression = re.sub(r"\$__rate_interval", "10s", target["expr"])
                expression = re.sub(r"=~\"\$\w+\"", "=~\".*\"", expression)
                url = (f"http://127.0.0.1:{port}/api/v1/query?query="
                       + urllib.parse.quote(expression))
                try:
                    with urllib.request.urlopen(url, timeout=5) as answer:
                        is_good = json.load(answer)["status"] == "success"
                except OSError:
                    is_good = False
                names = set(re.findall(r"unfrag_[a-z_]+", expression))
                known = all(query(port, f"count({name})") or "card" in name or "limit" in name
                            or "frozen" in name for name in names)
                check.that(f"the dashboard's query works: {expression}", is_good and known)
    finally:
        process.terminate()
        process.wait(20)


def main():
    program, worker = sys.argv[1:3]
    check = Checks()
    watched = Watched(worker, ["steady", "growing", "fragmented", "unfrag"])
    server = None
    try:
        server = Server(program, watched)
        http_cases(check, server)
        metrics_cases(check, watched, server.ask("GET", "/metrics")[1])
        textfile_cases(check, program, watched)
        scrape_cases(check, watched, server)
        server.process.send_signal(signal.SIGTERM)
        check.that("SIGTERM ends the server", server.process.wait(10) == 0)
    finally:
        if server is not None and server.process.poll() is None:
            server.process.kill()
        watched.close()
    check.end()


if __name__ == "__main__":
    main()
