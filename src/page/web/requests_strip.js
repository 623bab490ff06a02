// SPDX-License-Identifier: MIT
// The chosen request's latency as a bar of its states and as a strip of its critical path in the order of time.
"use strict";

/** @typedef {{state: number, name: string, coro: number, from: number, length: number}} StripPart ns */
/** @typedef {StripPart & {x: number, y: number, width: number, height: number}} StripBox */

const STRIP_HEIGHT = 26;

class PathStrip {
    /**
     * @param {App} app @param {(box: StripBox) => void} open a box was clicked
     * @param {string} what
     */
    constructor(app, what, open) {
        this.app = app;
        this.what = what;
        this.open = open;
        /** @type {StripBox[]} */
        this.boxes = [];
        this.at = 0;
        this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": what,
                                     onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event),
                                     onclick: (/** @type {MouseEvent} */ event) => this.pick(event, true),
                                     onpointermove: (/** @type {PointerEvent} */ event) => this.pick(event, false),
                                     onfocus: () => this.paint(), onblur: () => this.paint() });
        this.details = el("div", { class: "details", role: "status" });
        this.element = el("div", {}, this.canvas, this.details);
    }

    /**
     * @param {StripPart[]} parts in their order, back to back
     * @param {number} from ns @param {number} length ns
     * @param {number} width CSS pixels
     */
    draw(parts, from, length, width) {
        this.width = Math.max(width, 200);
        const scale = length > 0 ? this.width / length : 0;
        this.boxes = parts.map((part) => ({ ...part, x: (part.from - from) * scale, y: 0, width: part.length * scale, height: STRIP_HEIGHT }));
        this.start = from;
        this.at = Math.min(this.at, Math.max(parts.length - 1, 0));
        this.canvas.setAttribute("aria-label", `${this.what}: ${parts.length} parts; left and right: the next one, Enter: its timeline`);
        this.paint();
        this.say(undefined);
    }

    paint() {
        const { looks, store } = this.app, context = canvasContext(this.canvas, this.width ?? 0, STRIP_HEIGHT);
        context.font = "11px system-ui, sans-serif";
        for (const box of this.boxes) {
            if (box.state < store.head.states.length)
                looks.fill(context, box.state, box.name, box.x, 0, Math.max(box.width - .3, .3), STRIP_HEIGHT);
            context.fillStyle = looks.ink;
            const text = cutText(box.name, Math.floor((box.width - 6) / 6));
            if (text !== "")
                context.fillText(text, box.x + 3, 17);
        }
        const box = this.boxes[this.at];
        if (box && document.activeElement === this.canvas) {
            context.strokeStyle = looks.ink;
            context.lineWidth = 2;
            context.strokeRect(box.x + 1, 1, Math.max(box.width - 2, 1), STRIP_HEIGHT - 2);
        }
    }

    /** @param {StripBox | undefined} box */
    say(box) {
        const { store } = this.app;
        this.details.textContent = box ? `${timeText(box.length)} ${box.name}${box.coro >= 0 ? `, ${store.coroText(box.coro)}` : ""}, ` +
            `${timeText(box.from - (this.start ?? 0))} after the beginning` : this.what;
    }

    /** @param {MouseEvent} event @param {boolean} click */
    pick(event, click) {
        const x = event.clientX - this.canvas.getBoundingClientRect().left, at = this.boxes.findIndex((box) => x >= box.x && x < box.x + box.width);
        this.say(this.boxes[at]);
        if (click && at >= 0) {
            this.at = at;
            this.open(this.boxes[at]);
        }
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0, box = this.boxes[this.at];
        if (!box || (step === 0 && event.key !== "Enter"))
            return;
        event.preventDefault();
        event.stopPropagation();
        if (step === 0)
            return this.open(box);
        this.at = Math.min(Math.max(this.at + step, 0), this.boxes.length - 1);
        this.paint();
        this.say(this.boxes[this.at]);
    }
}
