// SPDX-License-Identifier: MIT
// Heat per line: the source of a function's file beside what its lines took, where the file was made with --source.
"use strict";

class FlameSource {
    /** @param {FlameView} view */
    constructor(view) {
        this.view = view;
        this.element = el("section", { class: "panel", "aria-label": "source", hidden: true });
    }

    /** The parts of a frame's file that the page has, in order. @param {number} frame */
    partsOf(frame) {
        const { head, frame: { name, file } } = this.view.app.store;
        return frame < 0 || frame >= name.length ? [] : head.sources.filter((part) => part.file === head.files[file[frame]]);
    }

    /** The line of a frame; where it is not known, its function's. @param {number} frame */
    lineOf(frame) {
        const { at, line } = this.view.app.store.frame;
        return at[frame] || line[frame];
    }

    /**
     * Times of a file's lines, under the filters in force other than those of frames.
     * @param {number} file @returns {{sum: number, lines: Map<number, {self: number, total: number}>}} ns; total: once a stack
     */
    linesOf(file) {
        const { app } = this.view, { store } = app, facts = store.factsOf(app.weight);
        const { tree, total, self, sum } = app.trees.weigh(app.trees.plain(facts, null), filterOf(store, app.selection), facts);
        /** @type {Map<number, {self: number, total: number}>} */
        const lines = new Map();
        for (let i = 1; i < tree.count; i++) {
            if (store.frame.file[tree.frame[i]] !== file || total[i] === 0)
                continue;
            const line = this.lineOf(tree.frame[i]), sums = lines.get(line) ?? { self: 0, total: 0 };
            sums.self += self[i];
            if (!this.isBelow(tree, i, file, line))
                sums.total += total[i];
            lines.set(line, sums);
        }
        return { sum, lines };
    }

    /** Whether a caller stands on the same line. @param {Tree} tree @param {number} node @param {number} file @param {number} line */
    isBelow(tree, node, file, line) {
        const { frame } = this.view.app.store;
        for (let up = tree.parent[node]; up > 0; up = tree.parent[up])
            if (frame.file[tree.frame[up]] === file && this.lineOf(tree.frame[up]) === line)
                return true;
        return false;
    }

    /** @param {number} frame */
    open(frame) {
        const parts = this.partsOf(frame), { store } = this.view.app, file = store.frame.file[frame];
        if (parts.length === 0)
            return;
        const { sum, lines } = this.linesOf(file), most = Math.max(1, ...[...lines.values()].map((sums) => sums.total));
        const close = el("button", { type: "button", text: "close the source", onclick: () => this.close() });
        const rows = parts.flatMap((part, i) => [
            ...(i > 0 ? [el("tr", {}, el("td", { class: "muted", colspan: 5, text: "lines without samples" }))] : []),
            ...part.lines.map((text, at) => FlameSource.row(part.first_line + at, text, lines.get(part.first_line + at), sum, most)),
        ]);
        const head = el("thead", {}, el("tr", {}, ...["self", "total", "share", "line", "source"].map((text) => el("th", { scope: "col", text }))));
        this.element.replaceChildren(el("div", { class: "toolbar" }, el("h2", { text: store.head.files[file] }), close),
                                     el("div", { class: "source", tabindex: 0 }, el("table", {}, head, el("tbody", {}, ...rows))));
        this.element.hidden = false;
        const first = this.element.querySelector(`[data-line="${store.frame.line[frame]}"]`) ?? this.element.querySelector("[data-hot]");
        first?.classList.add("chosen");
        first?.scrollIntoView({ block: "center" });
        close.focus({ preventScroll: true });
    }

    /**
     * @param {number} number of the line @param {string} text @param {{self: number, total: number} | undefined} sums
     * @param {number} sum of everything @param {number} most of a line
     */
    static row(number, text, sums, sum, most) {
        const share = sums ? 100 * sums.total / most : 0;
        const heat = `background-image: linear-gradient(var(--chosen), var(--chosen)); background-size: ${share.toFixed(1)}% 100%`;
        return el("tr", { "data-line": number, "data-hot": sums ? "" : null }, el("td", { text: sums ? timeText(sums.self) : "" }),
                  el("td", { text: sums ? timeText(sums.total) : "" }), el("td", { text: sums ? percentText(sums.total, sum) : "" }),
                  el("td", { class: "muted", text: String(number) }), el("td", { class: "code", text, style: heat }));
    }

    close() {
        this.element.hidden = true;
    }
}
