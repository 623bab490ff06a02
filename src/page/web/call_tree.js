// SPDX-License-Identifier: MIT
// The call tree: rows that unfold, heaviest first, with self and total time. Shape and filters are those of the flame graph.
"use strict";

const CALL_TREE_ROWS = 1000;     // at most
const CALL_TREE_CHILDREN = 100;  // of a row, at most
const CALL_TREE_HEAVY = .5;      // of all: rows with more are open at first

class CallTreeView {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.key = "tree";
        this.title = "Call tree";
        this.letter = "e";
        this.element = el("div", { class: "call-tree" });
        /** Open nodes of each tree. @type {WeakMap<Tree, Set<number>>} */
        this.opened = new WeakMap();
        /** Nodes of the rows, in their order. @type {number[]} */
        this.nodes = [];
        this.at = 0;
        /** @type {Record<string, [string, () => void]>} */
        this.keys = {
            ArrowDown: ["next row", () => this.go(this.at + 1)],
            ArrowUp: ["row before", () => this.go(this.at - 1)],
            ArrowRight: ["unfold; then: to what it calls", () => this.into()],
            ArrowLeft: ["fold; then: to its caller", () => this.outOf()],
            Home: ["first row", () => this.go(0)],
            End: ["last row", () => this.go(this.nodes.length - 1)],
            "*": ["unfold the heaviest stack below", () => this.unfold()],
            I: ["turn round: callers below what they call", () => this.app.set({ invert: this.app.selection.invert === "" ? "1" : "", zoom: "" })],
        };
    }

    sentence() {
        const { weight, selection } = this.app;
        return `${WEIGHTS[weight].text} by stack, as rows that unfold: ` +
            (selection.invert === "1" ? "what took the time, and below it its callers." : "callers, and below them what they call.");
    }

    empty() {
        return this.app.weights().sum > 0 ? null : "Nothing is left under these filters: choose another weight (w), or take a filter away.";
    }

    /** @param {number} node @returns {number[]} heaviest first */
    children(node) {
        const { tree, total } = this.app.weights(), links = TreeLinks.of(tree), found = [];
        for (let child = links.first[node]; child > 0; child = links.next[child])
            if (total[child] > 0)
                found.push(child);
        return found.sort((a, b) => total[b] - total[a] || a - b);
    }

    get open() {
        const { tree, total, sum } = this.app.weights();
        let open = this.opened.get(tree);
        if (!open) {
            this.opened.set(tree, open = new Set([0]));
            for (let [child] = this.children(0); child !== undefined && total[child] >= sum * CALL_TREE_HEAVY; [child] = this.children(child))
                open.add(child);
        }
        return open;
    }

    draw() {
        if (this.empty() !== null)
            return this.element.replaceChildren();
        const { open } = this, current = this.nodes[this.at] ?? 0, rows = [], todo = [0];
        this.nodes = [];
        for (let node = todo.pop(); node !== undefined && rows.length < CALL_TREE_ROWS; node = todo.pop()) {
            const below = this.children(node);
            rows.push(this.row(node, below.length > 0 ? open.has(node) : null));
            this.nodes.push(node);
            if (open.has(node))
                todo.push(...below.slice(0, CALL_TREE_CHILDREN).reverse());
        }
        const focused = this.element.contains(document.activeElement), left = this.element.firstElementChild?.scrollTop ?? 0;
        const head = ["Function", "Total", "Total %", "Self", "Self %", "Samples"].map((text, i) =>
            el("th", { scope: "col", class: i > 0 ? "" : "left", text }));
        this.element.replaceChildren(el("div", { class: "table" }, el("table", { role: "treegrid", "aria-label": "call tree" },
            el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...rows))),
            ...(todo.length > 0 ? [el("p", { class: "more", text: `Only the first ${CALL_TREE_ROWS} rows are shown: fold some.` })] : []));
        if (this.element.firstElementChild)
            this.element.firstElementChild.scrollTop = left;
        this.go(Math.max(this.nodes.indexOf(current), 0), focused);
    }

    /** @param {number} node @param {boolean | null} open null: nothing is below */
    row(node, open) {
        const { app } = this, weights = app.weights(), { tree, total, self, samples, sum } = weights, frame = tree.frame[node];
        const name = app.trees.nameOf(tree, frame), own = frame >= 0 && frame < app.store.frame.name.length;
        const place = own ? app.store.placeOf(frame).replace(/.*\//, "") : "", wanted = regexOf(app.selection.search);
        const cells = [...[total, self].flatMap((ns) => [timeText(ns[node]), percentText(ns[node], sum)]), countText(samples[node])];
        return el("tr", { tabindex: -1, "aria-level": tree.depth[node] + 1, "aria-expanded": open === null ? null : String(open),
                          class: wanted && wanted.test(name) ? "found" : "",
                          onclick: () => this.toggle(node), onkeydown: (/** @type {KeyboardEvent} */ event) => {
                              if (event.key === "Enter" || event.key === " ") {
                                  event.preventDefault();
                                  this.toggle(node);
                              }
                          } },
                  el("td", { class: "left", style: `padding-left: ${4 + 14 * tree.depth[node]}px` },
                     `${open === null ? "  " : open ? "▾" : "▸"} ${name}`, el("span", { class: "muted", text: place && `  ${place}` })),
                  ...cells.map((text) => el("td", { text })));
    }

    /** @returns {HTMLElement[]} */
    rows() {
        return [...this.element.querySelectorAll("tbody tr")].map((row) => /** @type {HTMLElement} */ (row));
    }

    /** To a row, which alone Tab reaches. @param {number} at @param {boolean} [focus] */
    go(at, focus = true) {
        const rows = this.rows();
        rows[this.at]?.setAttribute("tabindex", "-1");
        this.at = Math.min(Math.max(at, 0), rows.length - 1);
        rows[this.at]?.setAttribute("tabindex", "0");
        if (focus)
            rows[this.at]?.focus();
    }

    /** @param {number} node */
    toggle(node) {
        this.at = this.nodes.indexOf(node);
        if (this.open.delete(node) || this.children(node).length === 0)
            return this.draw();
        this.open.add(node);
        this.draw();
        this.go(this.at);
    }

    into() {
        const node = this.nodes[this.at];
        if (!this.open.has(node) && this.children(node).length > 0)
            this.toggle(node);
        else if (this.app.weights().tree.parent[this.nodes[this.at + 1]] === node)
            this.go(this.at + 1);
    }

    outOf() {
        const node = this.nodes[this.at];
        if (this.open.has(node) && this.children(node).length > 0)
            this.toggle(node);
        else
            this.go(this.nodes.indexOf(this.app.weights().tree.parent[node]));
    }

    unfold() {
        for (let node = this.nodes[this.at]; node !== undefined; [node] = this.children(node))
            this.open.add(node);
        this.draw();
        this.go(this.at);
    }
}

VIEWS.push((app) => new CallTreeView(app));
