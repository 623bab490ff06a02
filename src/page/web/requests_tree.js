// SPDX-License-Identifier: MIT
// Differential flame graph of critical paths: as wide as the mean of a slow request, coloured by what it has more than the rest.
"use strict";

/**
 * @typedef {object} DifferenceBox
 * @property {number} x
 * @property {number} y
 * @property {number} width
 * @property {number} height
 * @property {string} name
 * @property {number} node of the store
 * @property {number} depth
 * @property {number} slow mean ns
 * @property {number} rest mean ns
 */

class DifferenceGraph {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        /** @type {DifferenceBox[]} */
        this.boxes = [];
        /**
         * By node, mean ns.
         * @type {Float64Array}
         */
        this.slow = new Float64Array(1);
        this.rest = this.slow;
        this.width = 0;
        this.zoom = 0;
        this.at = 0;
        this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "differential flame graph",
                                     onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
                                     onclick: (/** @type {MouseEvent} */ event) => this.zoomTo(this.boxAt(event)),
                                     onpointermove: (/** @type {PointerEvent} */ event) => this.say(this.boxAt(event)),
                                     onfocus: () => this.paint(), onblur: () => this.paint() });
        this.details = el("div", { class: "details", role: "status" });
        this.element = el("div", {}, this.canvas, this.details);
    }

    /**
     * @param {Float64Array} slow by node, mean ns @param {Float64Array} rest
     * @param {number} width CSS pixels
     */
    draw(slow, rest, width) {
        if (this.slow !== slow) {
            this.zoom = 0;
            this.at = 0;
        }
        this.slow = slow;
        this.rest = rest;
        this.width = Math.max(width, 200);
        this.layOut();
        this.canvas.setAttribute("aria-label", `differential flame graph: slow requests take ${timeText(Math.round(slow[0]))}, the rest ` +
            `${timeText(Math.round(rest[0]))}; arrow keys: frames, Enter: zoom, Escape: all`);
        this.paint();
        this.say(this.boxes[this.at]);
    }

    layOut() {
        const { store } = this.app, { slow, rest } = this, whole = slow[this.zoom], scale = whole > 0 ? this.width / whole : 0;
        const next = new Map([[this.zoom, 0]]), top = store.depth[this.zoom];
        this.boxes = [];
        for (let node = this.zoom; node < store.end[this.zoom]; node++) {
            const width = slow[node] * scale, parent = store.parent[node], x = node === this.zoom ? 0 : next.get(parent) ?? 0;
            next.set(parent, x + width);
            if (width < 1) {
                node = store.end[node] - 1; // nor what is below it
                continue;
            }
            next.set(node, x);
            const depth = store.depth[node] - top;
            this.boxes.push({ x, y: depth * 16, width, height: 15, node, depth, slow: slow[node], rest: rest[node],
                              name: node === 0 ? "all" : store.nameOf(store.node.frame[node]) });
        }
    }

    paint() {
        const { looks } = this.app, rows = this.boxes.reduce((most, box) => Math.max(most, box.depth + 1), 1);
        const context = canvasContext(this.canvas, this.width, rows * 16);
        const most = Math.max(...this.boxes.map((box) => Math.abs(box.slow - box.rest)), 1);
        context.font = "11px system-ui, sans-serif";
        for (const box of this.boxes) {
            const share = (box.slow - box.rest) / most, strong = Math.abs(share), light = looks.dark ? 22 + 13 * strong : 92 - 26 * strong;
            context.fillStyle = strong < .01 ? `hsl(0 0% ${looks.dark ? 28 : 88}%)` : `hsl(${share > 0 ? 6 : 212} ${45 + 35 * strong}% ${light}%)`;
            context.fillRect(box.x, box.y, Math.max(box.width - .5, .5), box.height);
            if (box.width >= 3 && strong >= .01) {
                context.fillStyle = /** @type {CanvasPattern} */ (context.createPattern(looks.tiles[share > 0 ? "stripes" : "dots"], "repeat"));
                context.fillRect(box.x, box.y, box.width - .5, box.height);
            }
            context.fillStyle = looks.ink;
            const text = cutText(box.name, Math.floor((box.width - 6) / 6));
            if (text !== "")
                context.fillText(text, box.x + 3, box.y + 11);
        }
        const box = this.boxes[this.at];
        if (box && document.activeElement === this.canvas) {
            context.strokeStyle = looks.ink;
            context.lineWidth = 2;
            context.strokeRect(box.x + 1, box.y + 1, Math.max(box.width - 2, 1), box.height - 2);
        }
    }

    /** @param {MouseEvent} event */
    boxAt(event) {
        const place = this.canvas.getBoundingClientRect(), x = event.clientX - place.left, y = event.clientY - place.top;
        return this.boxes.find((box) => x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height + 1);
    }

    /** @param {DifferenceBox | undefined} box */
    say(box) {
        const more = box ? Math.round(box.slow - box.rest) : 0;
        this.details.textContent = !box ? "Red, striped: slow requests spend more time there. Blue, dotted: less. Widths are those of the slow ones."
            : `${box.name}: ${timeText(Math.round(box.slow))} of a slow request, ${timeText(Math.round(box.rest))} of one of the rest: ` +
              `${more > 0 ? "+" : ""}${timeText(more)}`;
    }

    /** @param {DifferenceBox | undefined} box */
    zoomTo(box) {
        if (!box)
            return;
        this.zoom = box.node === this.zoom ? 0 : box.node;
        this.layOut();
        this.at = Math.max(this.boxes.findIndex((one) => one.node === box.node), 0);
        this.paint();
        this.say(this.boxes[this.at]);
    }

    /**
     * The box that a key goes to from another.
     * @param {string} key @param {DifferenceBox} box
     */
    neighbour(key, box) {
        const { store } = this.app, above = store.parent[box.node];
        const same = this.boxes.filter((one) => one.depth === box.depth), at = same.indexOf(box);
        return key === "ArrowUp" ? this.boxes.find((one) => one.node === above)
            : key === "ArrowDown" ? this.boxes.find((one) => one.depth === box.depth + 1 && store.parent[one.node] === box.node)
            : key === "ArrowLeft" ? same[at - 1] : same[at + 1];
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        const box = this.boxes[this.at];
        if (!box || !/^(Arrow(Up|Down|Left|Right)|Enter|Escape)$/.test(event.key))
            return;
        event.preventDefault();
        event.stopPropagation();
        if (event.key === "Enter")
            return this.zoomTo(box);
        if (event.key === "Escape")
            return this.zoomTo(this.zoom === 0 ? undefined : this.boxes[0]);
        const next = this.neighbour(event.key, box);
        if (next)
            this.at = this.boxes.indexOf(next);
        this.paint();
        this.say(this.boxes[this.at]);
    }
}
