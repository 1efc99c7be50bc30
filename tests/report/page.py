# SPDX-License-Identifier: MIT
"""Reads a report's page without a browser: its elements, its JSON, its columns. Written from
docs/internals/report.md, not from the code that writes them."""

import base64
import gzip
import html.parser
import json


class Parser(html.parser.HTMLParser):
    """Elements in order, and the text of script and title elements."""

    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.tags, self.attributes, self.texts, self.open = [], [], {}, None

    def handle_starttag(self, tag, attrs):
        attributes = dict(attrs)
        self.tags.append(tag)
        self.attributes.append((tag, attributes))
        if tag in ("script", "title", "style"):
            self.open = attributes.get("id", tag)
            self.texts.setdefault(self.open, "")

    def handle_endtag(self, tag):
        if tag in ("script", "title", "style"):
            self.open = None

    def handle_data(self, data):
        if self.open is not None:
            self.texts[self.open] += data


class Reader:
    def __init__(self, data):
        self.data, self.at = data, 0

    def number(self):
        value = shift = 0
        while True:
            byte = self.data[self.at]
            self.at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    def signed(self):
        value = self.number()
        return value >> 1 if value % 2 == 0 else -((value + 1) >> 1)

    def column(self, count, is_step=False):
        values, before = [], 0
        for _ in range(count):
            before = self.signed() + (before if is_step else 0)
            values.append(before)
        return values


def read_columns(text):
    reader = Reader(gzip.decompress(base64.b64decode(text)))
    found = {"events": reader.number(), "unit": reader.number(), "bucket_events": reader.number()}
    buckets = reader.number()
    for level in ("live", "allocated", "active", "reserved"):
        most = [value * 512 for value in reader.column(buckets, is_step=True)]
        found[level] = [(value - reader.number() * 512, value) for value in most]
    found["allocs"] = [reader.number() for _ in range(buckets)]
    found["times"] = [reader.number() for _ in range(buckets)] if reader.number() else None
    lanes, addr, height = [], 0, 0
    for _ in range(reader.number()):
        addr += reader.number()
        size = reader.number()
        lanes.append((addr, height, size))
        height += size
    found["lanes"] = lanes
    names = ("from", "life", "height", "size", "stream", "pool", "kind")
    found["extents"] = read_rows(reader, names)
    names = ("from", "life", "wait", "height", "size", "rounding", "stream", "pool", "stack")
    found["spans"] = read_rows(reader, names)
    assert reader.at == len(reader.data), "bytes are left over"
    return found


def read_rows(reader, names):
    count = reader.number()
    columns = [reader.column(count, name in ("from", "height")) for name in names]
    return [dict(zip(names, row)) for row in zip(*columns)]


def address(columns, height):
    for addr, start, size in columns["lanes"]:
        if start <= height < start + size:
            return addr + (height - start) * columns["unit"]
    raise AssertionError(f"no lane has height {height}")


class Page:
    def __init__(self, path):
        with open(path, encoding="utf-8") as stream:  # strict: it must be valid UTF-8
            self.text = stream.read()
        self.parser = Parser()
        self.parser.feed(self.text)
        self.data = json.loads(self.parser.texts["data"])
        self.recordings = self.data["recordings"]

    def columns(self, number=0):
        return read_columns(self.parser.texts[f"columns-{number}"])
