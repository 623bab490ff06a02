// SPDX-License-Identifier: MIT
// Heat per line: the source of a function's file beside what its lines took, where the file was made with --source.
"use strict";

class FlameSource {
    /** @param {FlameView} view */
    constructor(view) {
        this.view = view;
        this.element = el("section", { class: "panel", "aria-label": "source", hidden: true });
    }

    /** What the page has of a frame's file. @param {number} frame */
    sourceOf(frame) {
        const { store } = this.view.app, count = store.frame.name.length;
        if (frame < 0 || frame >= count)
            return undefined;
        const file = store.head.files[store.frame.file[frame]], line = store.frame.line[frame];
        const parts = store.head.sources.filter((source) => source.file === file);
        return parts.find((source) => line >= source.first_line && line < source.first_line + source.lines.length) ?? parts[0];
    }

    /** Lines of the frames in a file: total and self of each. @param {Weights} weights @param {number} file */
    linesOf(weights, file) {
        const { store } = this.view.app, { tree } = weights, count = store.frame.name.length;
        /** @type {Map<number, {self: number, total: number}>} */
        const lines = new Map();
        for (let i = 1; i < tree.count; i++) {
            const frame = tree.frame[i];
            if (frame >= count || store.frame.file[frame] !== file || weights.total[i] === 0)
                continue;
            const line = store.frame.line[frame], sums = lines.get(line) ?? { self: 0, total: 0 };
            sums.self += weights.self[i];
            if (!this.isBelow(tree, i, file, line))
                sums.total += weights.total[i];
            lines.set(line, sums);
        }
        return lines;
    }

    /** Whether a caller stands on the same line. @param {Tree} tree @param {number} node @param {number} file @param {number} line */
    isBelow(tree, node, file, line) {
        const { frame } = this.view.app.store;
        for (let up = tree.parent[node]; up > 0; up = tree.parent[up])
            if (frame.file[tree.frame[up]] === file && frame.line[tree.frame[up]] === line)
                return true;
        return false;
    }

    /** @param {number} frame */
    open(frame) {
        const source = this.sourceOf(frame), { app } = this.view, weights = this.view.functions.weights();
        if (!source)
            return;
        const file = app.store.frame.file[frame], lines = this.linesOf(weights, file), at = app.store.frame.line[frame];
        const most = Math.max(1, ...[...lines.values()].map((sums) => sums.total));
        const close = el("button", { type: "button", text: "close the source", onclick: () => this.close() });
        const rows = source.lines.map((text, i) => {
            const number = source.first_line + i, sums = lines.get(number), share = sums ? 100 * sums.total / most : 0;
            return el("tr", { class: number === at ? "chosen" : "", "data-line": number }, el("td", { text: sums ? timeText(sums.self) : "" }),
                      el("td", { text: sums ? timeText(sums.total) : "" }), el("td", { text: sums ? percentText(sums.total, weights.sum) : "" }), el("td", { class: "muted", text: String(number) }),
                      el("td", { class: "code", text, style: `background-image: linear-gradient(var(--chosen), var(--chosen)); background-size: ${share.toFixed(1)}% 100%` }));
        });
        const head = el("thead", {}, el("tr", {}, ...["self", "total", "", "line", ""].map((text) => el("th", { scope: "col", text }))));
        this.element.replaceChildren(el("div", { class: "toolbar" }, el("h2", { text: source.file }), close),
                                     el("div", { class: "source", tabindex: 0 }, el("table", {}, head, el("tbody", {}, ...rows))));
        this.element.hidden = false;
        this.element.querySelector(".chosen")?.scrollIntoView({ block: "center" });
        close.focus({ preventScroll: true });
    }

    close() {
        this.element.hidden = true;
    }
}
