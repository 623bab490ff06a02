# SPDX-License-Identifier: MIT
"""The page of a large profile: 100,000 distinct stacks, 337,000 nodes, 10 million samples, in a second or two.

Columns are made directly, in preorder. Functions call the same few functions wherever they are called from, and a few stacks have
most of the samples, as it is in programs.
"""
import base64
import random
import zlib

from page_data import PageData, html_of, pack

STACKS, NODES, SAMPLES, FUNCTIONS, MODULES, CORES, TRACES = 100_000, 337_000, 10_000_000, 20_000, 60, 2_000, 500
PERIOD_NS = 1_003_017
WORDS = ["parse", "read", "lookup", "encode", "dispatch", "resolve", "render", "commit", "fetch", "merge", "visit", "flush"]


class BigPage:
    def __init__(self, seed=1, part=1):
        """part: of the sizes above, one in so many."""
        self.random = random.Random(seed)
        self.stacks, self.nodes, self.samples = (size // part for size in (STACKS, NODES, SAMPLES))
        self.names = [f"shop::{WORDS[i % 12]}::{WORDS[i // 12 % 12].capitalize()}{i // 144}::{WORDS[i // 7 % 12]}_{i}" for i in range(FUNCTIONS)]
        self.make_nodes()
        self.make_rows()

    def make_nodes(self):
        """self.parent and self.frame, by node; self.ends: the last node of each stack."""
        self.parent, self.frame, self.ends = [0], [0], []
        path, called = [0], [0]  # nodes of the stack; how many children each has
        for left in range(self.stacks, 0, -1):
            wanted = self.nodes - len(self.parent)
            fresh = wanted if left == 1 else min(1 + int(self.random.expovariate(1 / (wanted / left - 1))), wanted - (left - 1))
            keep = max(1, min(len(path) - int(self.random.expovariate(1 / 3.4)), len(path), 60 - fresh))
            if keep == len(path) and self.ends and called[-1] == 0:
                keep -= 1  # else the stack before would not be a leaf
            del path[keep:], called[keep:]
            for _ in range(fresh):
                caller = self.frame[path[-1]]
                self.parent.append(path[-1])
                self.frame.append((caller * 31 + called[-1] * (caller % 97 + 1) + 7) % FUNCTIONS)
                called[-1] += 1
                path.append(len(self.parent) - 1)
                called.append(0)
            self.ends.append(path[-1])

    def make_rows(self):
        """self.rows: (node, label, state, samples); of a part of the stacks there is a row that waited, too."""
        shares = [self.random.paretovariate(1.1) for _ in range(self.stacks)]
        scale = (self.samples - 2 * self.stacks) / sum(shares)
        self.rows, left = [], self.samples
        for end, share in zip(self.ends, shares):
            label, count = min(int(self.random.expovariate(1 / 300)), CORES - 1), 1 + int(share * scale)
            self.rows.append([end, label, 0, count])
            left -= count
            if self.random.random() < .2:
                self.rows.append([end, label, 2, 1])
                left -= 1
        self.rows[0][3] += left

    def sum(self, taken=lambda row: True):
        """ns of the rows that are taken."""
        return sum(row[3] for row in self.rows if taken(row)) * PERIOD_NS

    def found(self, wanted, state=0):
        """ns of a state in stacks with a function of which wanted(name) is true."""
        matches = [wanted(name) for name in self.names]
        inside = [False] * len(self.parent)
        for node in range(1, len(self.parent)):
            inside[node] = inside[self.parent[node]] or matches[self.frame[node]]
        return self.sum(lambda row: row[2] == state and inside[row[0]])

    def encode(self):
        count = len(self.parent)
        plain = PageData(title="large", command="tests", tick_ns=0, threads=["worker"], coroutines=["handle"], traces=[f"{i + 1:032x}" for i in range(TRACES)])
        total = self.sum(lambda row: row[2] == 0)
        plain.head["totals"].update(cpu_ns=total, sampled_ns=total, samples=self.samples, total_ns=self.sum())
        plain.head["sides"][0].update(total_ns=self.sum(), samples=self.samples)
        files = [f"/usr/src/shop/module_{i}.cc" for i in range(MODULES * 8)]
        nodes, labels, states, samples = map(list, zip(*self.rows))
        return pack({**plain.head, "names": self.names, "files": ["~", *files], "modules": [f"libshop_{i}.so" for i in range(MODULES)]}, {
            "frame.name": list(range(FUNCTIONS)), "frame.file": [1 + i % len(files) for i in range(FUNCTIONS)],
            "frame.line": [10 + i * 7 % 2000 for i in range(FUNCTIONS)], "frame.module": [i % MODULES for i in range(FUNCTIONS)],
            "node.parent": [i - self.parent[i] for i in range(count)], "node.frame": self.frame,
            "coro.id": list(range(1, CORES + 1)), "coro.name": [0] * CORES,
            "label.coro": list(range(1, CORES + 1)), "label.thread": [1] * CORES, "label.trace": [1 + i % TRACES for i in range(CORES)],
            "row.node": nodes, "row.label": labels, "row.state": states, "row.samples": samples, "row.weight": [one * PERIOD_NS for one in samples]})

    def write(self, path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(html_of(base64.b64encode(zlib.compress(self.encode(), 9)).decode()))
        return path
