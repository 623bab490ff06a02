// SPDX-License-Identifier: MIT
// A flame graph: a canvas as high as can be seen, which stays in place while its boxes are scrolled. The flame view has one; a sandwich has
// two of them.
"use strict";

/**
 * Content of a pane.
 * @typedef {object} FlameContent
 * @property {Weights} weights
 * @property {Float64Array} sizes widths by node, ns (of a diff: what its sides are compared by)
 * @property {number} root topmost node that is shown
 * @property {number} zoom node
 * @property {boolean} down root at the top
 * @property {Matches | null} matches
 * @property {DiffRule | null} diff
 * @property {number} room CSS pixels: as high as it may be
 * @property {Lens} lens the shown part of its width
 */

/**
 * A box that is drawn: CSS pixels on its canvas.
 * @typedef {{x: number, y: number, width: number, height: number, name: string, node: number, pane: string, above: boolean, match: boolean,
 *            focus: boolean, edge: boolean, state: number, total: number, self: number, change: Change | null}} FlameBox
 */

class FlamePane {
    /** @param {FlameView} view @param {string} name "", "callers" or "callees" @param {string} label */
    constructor(view, name, label) {
        this.view = view;
        this.name = name;
        this.layout = new FlameLayout();
        this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-roledescription": "flame graph", "aria-label": label,
                                     "aria-describedby": "flame-details" });
        this.spacer = el("div", {});
        this.element = el("div", { class: "flame-scroll", onscroll: () => this.paint() }, this.canvas, this.spacer);
        this.hover = this.focus = -1;
        this.height = this.width = 0;
        this.lens = WHOLE;
        this.pointer = new FlamePointer(this);
        /** @type {FlameContent | undefined} */
        this.content = undefined;
        this.listen();
    }

    listen() {
        const { canvas, view } = this;
        const at = (/** @type {MouseEvent} */ event) => this.nodeAt(event.offsetX, event.offsetY);
        canvas.addEventListener("mousemove", (event) => this.hovers(at(event)));
        canvas.addEventListener("mouseleave", () => this.hovers(-1));
        canvas.addEventListener("click", (event) => {
            const node = at(event);
            if (node >= 0 && !this.pointer.moved)
                view.zoomTo(this, node);
        });
        canvas.addEventListener("contextmenu", (event) => {
            const node = at(event);
            event.preventDefault();
            if (node >= 0)
                view.menu(this, node, event.pageX, event.pageY);
        });
        addEventListener("beforeprint", () => this.fit(this.layout.rowCount * FLAME_ROW));
        addEventListener("afterprint", () => this.fit(this.content?.room ?? 0));
    }

    /** @returns {FlameContent} */
    get shown() {
        return /** @type {FlameContent} */ (this.content);
    }

    get tree() {
        return this.shown.weights.tree;
    }

    get down() {
        return this.shown.down;
    }

    get matches() {
        return this.shown.matches;
    }

    /** @param {FlameContent} content */
    show(content) {
        const before = this.content;
        this.content = content;
        this.lens = content.lens;
        if (before?.weights.tree !== content.weights.tree)
            this.hover = this.focus = -1;
        this.states = content.diff ? null : this.view.details.statesOf(content.weights);
        const turned = before?.down !== content.down || before.zoom !== content.zoom || before.weights.tree !== content.weights.tree;
        this.arrange();
        this.fit(content.room, turned);
        if (this.element.clientWidth !== this.width) { // a scroll bar has come or gone
            this.arrange();
            this.fit(content.room, turned);
        }
    }

    arrange() {
        const { weights, sizes, zoom, root } = this.shown;
        this.width = this.element.clientWidth;
        this.layout.make(weights.tree, sizes, zoom, root, Math.max(this.width, 1), this.lens);
    }

    /**
     * A part of the width comes into sight; rows near the root stay where they are. A sandwich is shown whole.
     * @param {number} from @param {number} to
     */
    look(from, to) {
        if (this.name !== "" || !this.content)
            return;
        const { element } = this, away = () => element.scrollHeight - element.clientHeight - element.scrollTop, before = away();
        this.lens = lensOf(from, to, 1e-4);
        this.arrange();
        this.fit(this.content.room);
        if (!this.down)
            element.scrollTop += away() - before;
        this.view.noteLens(this.lens);
    }

    /** @param {number} times as much comes into sight @param {number} x on the canvas, which stays where it is */
    zoomAround(times, x) {
        const { from, to } = this.lens, still = from + x / Math.max(this.width, 1) * (to - from);
        const size = Math.min(times, 1 / (to - from)); // beyond all of it nothing moves
        this.look(still - (still - from) * size, still + (to - still) * size);
    }

    /** @param {number} part of what is in sight */
    pan(part) {
        const { from, to } = this.lens, by = part * (to - from);
        this.look(from + by, to + by);
    }

    /** @param {number} room CSS pixels @param {boolean} [toRoot] whether to go to where the root is */
    fit(room, toRoot = false) {
        if (!this.content)
            return;
        const all = this.layout.rowCount * FLAME_ROW;
        this.height = Math.min(all, Math.max(room, 5 * FLAME_ROW));
        this.element.style.height = `${this.height + 2}px`;
        this.spacer.style.height = `${all - this.height}px`;
        this.context = canvasContext(this.canvas, this.width, this.height);
        if (toRoot)
            this.element.scrollTop = this.down ? 0 : all;
        this.paint();
    }

    paint() {
        const { context } = this;
        if (!context || !this.content)
            return;
        context.clearRect(0, 0, this.width, this.height);
        this.view.painter.paint(context, this);
    }

    /** Y of a row on the canvas. @param {number} row */
    rowY(row) {
        return (this.down ? row : this.layout.rowCount - 1 - row) * FLAME_ROW - this.element.scrollTop;
    }

    /** @param {number} node */
    rowOfNode(node) {
        return this.tree.depth[node] - this.tree.depth[this.shown.root];
    }

    /** @param {number} x @param {number} y on the canvas @returns {number} node, -1 = none */
    nodeAt(x, y) {
        const line = Math.floor((y + this.element.scrollTop) / FLAME_ROW);
        const box = this.layout.find(this.down ? line : this.layout.rowCount - 1 - line, x);
        return box < 0 ? -1 : this.layout.node[box];
    }

    /** @param {number} node */
    nameOf(node) {
        return this.view.app.trees.nameOf(this.tree, this.tree.frame[node]);
    }

    /** @param {number} node */
    stateOf(node) {
        return this.states ? this.states.major[node] : 0;
    }

    /** @param {number} node @returns {Change | null} */
    changeOf(node) {
        return this.shown.diff ? this.shown.diff.ofNode(this.shown.weights, node) : null;
    }

    /** @param {number} node */
    hovers(node) {
        if (this.hover === node)
            return;
        this.hover = node;
        this.canvas.style.cursor = node >= 0 ? "pointer" : "default";
        this.paint();
        this.view.describe(this, node >= 0 ? node : this.focus);
    }

    /** Set the focus to a box and bring its row into sight. @param {number} node @param {boolean} [middle] */
    focusOn(node, middle = false) {
        this.focus = node;
        const line = this.rowOfNode(node), top = (this.down ? line : this.layout.rowCount - 1 - line) * FLAME_ROW, { scrollTop } = this.element;
        if (middle)
            this.element.scrollTop = top - this.height / 2;
        else if (top < scrollTop || top + FLAME_ROW > scrollTop + this.height)
            this.element.scrollTop = top < scrollTop ? top : top + FLAME_ROW - this.height;
        this.paint();
        this.view.describe(this, node);
    }

    /**
     * The box that lies beside another on the screen; -1 = none.
     * @param {number} dx -1, 0, 1 @param {number} dy of rows, away from the root = 1
     */
    beside(dx, dy) {
        const row = this.rowOfNode(this.focus), box = this.layout.boxOf(this.focus, row), { rows, node } = this.layout;
        if (box < 0)
            return this.shown.zoom;
        if (dx !== 0)
            return box + dx >= rows[row] && box + dx < rows[row + 1] ? node[box + dx] : -1;
        if (dy < 0)
            return row > 0 ? this.tree.parent[this.focus] : -1;
        if (row + 1 < this.layout.above)
            return node[rows[row + 1]];
        for (let next = rows[row + 1] ?? 0; next < (rows[row + 2] ?? 0); next++)
            if (this.tree.parent[node[next]] === this.focus)
                return node[next];
        return -1;
    }

    /** The drawn boxes. @returns {FlameBox[]} */
    get boxes() {
        if (!this.content)
            return [];
        const { layout, tree } = this, { weights, sizes } = this.shown, found = [];
        for (let box = 0; box < layout.count; box++) {
            const row = layout.rowOf(box), y = this.rowY(row), node = layout.node[box];
            if (y > -FLAME_ROW && y < this.height)
                found.push({ x: layout.x[box], y, width: layout.width[box], height: FLAME_ROW - 1, name: this.nameOf(node), node, pane: this.name,
                             above: row < layout.above, match: node > 0 && this.matches?.frames[tree.frame[node]] === 1, focus: node === this.focus,
                             edge: tree.edges.has(node), state: this.stateOf(node), total: sizes[node], self: weights.self[node],
                             change: this.changeOf(node) });
        }
        return found;
    }
}
