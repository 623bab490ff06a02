# SPDX-License-Identifier: MIT
"""Makes pages without a capture: data as DATA.md describes it, in the page's HTML."""
import base64
import json
import os
import re
import struct
import zlib

WEB = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../../src/page/web")
SHORT = [bytes([value]) for value in range(128)]
STATES = ["running", "preempted", "parked", "ready", "waiting", "blocked", "gil", "lock", "queued"]


def varint(value):
    if value < 128:
        return SHORT[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def column(encoding, values):
    if encoding == "d":
        steps = [value - before for before, value in zip([0, *values], values)]
        values = [2 * step if step >= 0 else -2 * step - 1 for step in steps]
    return bytes(values) if not values or max(values) < 128 else b"".join(map(varint, values))


def pack(head, columns):
    """head and {"table.column": values} as DATA.md describes them, uncompressed."""
    listed, blob = [], []
    for name, values in columns.items():
        encoding = "d" if name in DELTAS else "u"
        data = column(encoding, values)
        listed.append([name, encoding, len(values), len(data)])
        blob.append(data)
    text = json.dumps({**head, "columns": listed}).encode()
    return struct.pack("<I", len(text)) + text + b"".join(blob)


DELTAS = {"row.node", "delay.node", "path.node", "coro.id", "request.start", "span.start", "activity.coro", "activity.start", "segment.request", "segment.from",
          "hog.start"}


def read_page(path):
    """(header, {table: {column: [number]}}) of a page."""
    with open(path, encoding="utf-8") as file:
        data = zlib.decompress(base64.b64decode(re.search(r'<script id="data" type="text/plain">([^<]*)<', file.read())[1]))
    length, = struct.unpack("<I", data[:4])
    head, tables, at = json.loads(data[4:4 + length]), {}, 4 + length
    for name, encoding, count, size in head["columns"]:
        table, _, column = name.partition(".")
        numbers = numbers_of(data[at:at + size], encoding)
        assert len(numbers) == count, name
        tables.setdefault(table, {})[column] = numbers
        at += size
    assert at == len(data)
    return head, tables


def numbers_of(data, encoding):
    found, value, shift, before = [], 0, 0, 0
    for byte in data:
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            if encoding == "d":
                before = value = before + (value // 2 if value % 2 == 0 else -(value + 1) // 2)
            found.append(value)
            value = shift = 0
    return found


def stacks_of(head, tables):
    """By node: the names of its frames, root first."""
    stacks = [()]
    for number, (up, frame) in enumerate(zip(tables["node"]["parent"][1:], tables["node"]["frame"][1:]), 1):
        stacks.append(stacks[number - up] + (head["names"][tables["frame"]["name"][frame]],))
    return stacks


def scripts():
    """The script's files in their order: the first line of order.txt comes first."""
    with open(os.path.join(WEB, "order.txt")) as file:
        return file.read().split()


def read(name):
    with open(os.path.join(WEB, name), encoding="utf-8") as file:
        return file.read()


def html_of(data):
    """The page around data, a text in base64."""
    script = "\n".join(read(name) for name in scripts())
    return read("page.html").replace("@STYLE@", read("page.css")).replace("@DATA@", data).replace("@SCRIPT@", script)


class PageData:
    """Stacks are tuples of names, root first; other tables are rows of dicts."""

    def __init__(self, **head):
        self.head = {"version": 1, "title": "made", "command": "tests", "made_by": "greenprof", "duration_ns": 10**9, "start_realtime_ns": "0",
                     "frequency_hz": 1000, "tick_ns": 0, "weight": "cpu", "states": STATES,
                     "totals": {"cpu_ns": 0, "sampled_ns": 0, "error_ns": 0, "samples": 0, "total_ns": 0, "basis": "exact", "exact_calls": False},
                     "sides": [{"file": "x.greenprof", "total_ns": 0, "samples": 0, "duration_ns": 10**9}], "counters": [], "not_known": [], "notes": [],
                     "threads": [], "traces": [], "coroutines": [], "endpoints": [], "heat": None, "sources": [], **head}
        self.names, self.name_of = [], {}
        self.frames, self.frame_of = [], {}
        self.children = {}
        self.tables = {}

    def name(self, text):
        return self.name_of.setdefault(text, len(self.name_of)) if text in self.name_of else self._add(self.names, self.name_of, text)

    @staticmethod
    def _add(items, numbers, key):
        numbers[key] = len(items)
        items.append(key)
        return numbers[key]

    def stack(self, *frames):
        """Remember a stack. Frames: names, or (name, kind[, file, line, module, at])."""
        at = self.children
        for frame in frames:
            at = at.setdefault(frame if isinstance(frame, tuple) else (frame, 2 if frame.startswith("[") else 0), {})
        return frames

    def row(self, table, stack, **values):
        self.stack(*stack)
        self.tables.setdefault(table, []).append({"node": stack, **values})

    def add(self, table, **values):
        self.tables.setdefault(table, []).append(values)
        return len(self.tables[table]) - 1

    def _frame(self, key):
        if key not in self.frame_of:
            name, kind, file, line, module, at = key + ("", 0, "", 0)[len(key) - 2:]
            for text, items in ((file, self.files), (module, self.modules)):
                if text not in items:
                    items.append(text)
            self._add(self.frames, self.frame_of, key)
            self.frame_rows.append({"name": self.name(name), "kind": kind, "file": self.files.index(file), "line": line,
                                    "module": self.modules.index(module), "at": at})
        return self.frame_of[key]

    def encode(self):
        self.files, self.modules, self.frame_rows = ["~"], [""], []
        nodes, numbers, todo = [{"parent": 0, "frame": 0}], {(): 0}, [((), 0, self.children)]
        while todo:  # depth first, preorder
            path, parent, children = todo.pop()
            if path:
                numbers[path] = len(nodes)
                nodes.append({"parent": len(nodes) - parent, "frame": self._frame(path[-1])})
            number = numbers[path]
            todo.extend((path + (key,), number, below) for key, below in reversed(children.items()))
        if not self.frame_rows:
            self._frame(("all", 2))

        def number_of(stack):
            return numbers[tuple(frame if isinstance(frame, tuple) else (frame, 2 if frame.startswith("[") else 0) for frame in stack)]
        for name, field, plus in (("coro", "spawn", 1), ("segment", "node", 1), ("row", "node", 0), ("delay", "node", 0), ("path", "node", 0)):
            for row in self.tables.get(name, []):
                if isinstance(row.get(field), tuple):
                    row[field] = number_of(row[field]) + plus
        for name in ("row", "delay", "path"):
            self.tables.get(name, []).sort(key=lambda row: row["node"])
        for row in self.tables.get("row", []) if len(self.head["sides"]) > 1 else []:
            row.setdefault("error", round(row["weight"] / max(row["samples"], 1) ** .5))  # samples of one weight
        if self.tables.get("row") and "label" not in self.tables:
            self.add("label", coro=0)
        tables = {"frame": self.frame_rows, "node": nodes, **self.tables}
        columns = {f"{table}.{key}": [row.get(key, 0) for row in rows]
                   for table, rows in tables.items() for key in dict.fromkeys(key for row in rows for key in row)}
        return pack({**self.head, "names": self.names, "files": self.files, "modules": self.modules}, columns)

    def html(self):
        return html_of(base64.b64encode(zlib.compress(self.encode(), 9)).decode())

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(self.html())
        return path
