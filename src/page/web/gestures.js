// SPDX-License-Identifier: MIT
// Wheel and fingers on a part of a width, and the minimap that says which part is in sight.
"use strict";

const MINIMAP_HEIGHT = 26; // CSS pixels
const DRAG_PIXELS = 3;     // from which on a press is no click

/** @param {WheelEvent} event @param {number} delta of it @returns {number} CSS pixels */
function wheelPixels(event, delta) {
    return delta * (event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 20 : 1);
}

/** How many times as much comes into sight by a turn of the wheel; a pinch on a pad is one with Ctrl. @param {WheelEvent} event */
function wheelTimes(event) {
    return Math.exp(Math.min(Math.max(wheelPixels(event, event.deltaY) * (event.ctrlKey ? .01 : .002), -.7), .7));
}

/** Whether a wheel goes sideways. @param {WheelEvent} event */
function isSideways(event) {
    return event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
}

/**
 * Two fingers, of which one has moved: how many times as much comes into sight around the other; null: not yet to be told.
 * @param {Map<number, {x: number, y: number}>} down @param {number} id @param {{x: number, y: number}} now
 */
function pinchOf(down, id, now) {
    const before = down.get(id), other = [...down].find(([key]) => key !== id)?.[1];
    down.set(id, now);
    if (!before || !other || Math.abs(now.x - other.x) < 8 || Math.abs(before.x - other.x) < 8)
        return null;
    const times = (before.x - other.x) / (now.x - other.x);
    return times > 0 ? { times, still: other.x } : null;
}

/** All of a width, small, with a frame around the part in sight. A press, or a drag, moves that part. */
class Minimap {
    /**
     * @param {App} app @param {(context: CanvasRenderingContext2D, width: number, height: number, app: App) => void} paint all of it
     * @param {(lens: Lens) => void} look
     */
    constructor(app, paint, look) {
        this.app = app;
        this.paint = paint;
        this.whole = el("canvas");
        /** @type {any[]} what `whole` was painted from */
        this.of = [];
        this.lens = WHOLE;
        this.canvas = el("canvas", { class: "minimap", "aria-hidden": "true", width: "1", height: `${MINIMAP_HEIGHT}` }); // what is below stays there
        const move = (/** @type {PointerEvent} */ event) => {
            const middle = event.offsetX / this.canvas.clientWidth, size = this.lens.to - this.lens.from;
            if (event.buttons & 1)
                look(lensOf(middle - size / 2, middle + size / 2, 0));
        };
        this.canvas.addEventListener("pointerdown", (event) => {
            this.canvas.setPointerCapture(event.pointerId);
            move(event);
        });
        this.canvas.addEventListener("pointermove", move);
    }

    /** @param {any[]} of what all of it depends on @param {Lens} lens @param {number} width CSS pixels */
    draw(of, lens, width) {
        const { app } = this, { looks } = app, key = [...of, looks, width], from = width * lens.from, size = width * (lens.to - lens.from);
        if (key.some((one, i) => one !== this.of[i]))
            this.paint(canvasContext(this.whole, width, MINIMAP_HEIGHT), width, MINIMAP_HEIGHT, app);
        this.of = key;
        this.lens = lens;
        const context = canvasContext(this.canvas, width, MINIMAP_HEIGHT);
        context.drawImage(this.whole, 0, 0, width, MINIMAP_HEIGHT);
        context.globalAlpha = .7;
        context.fillStyle = looks.paper;
        context.fillRect(0, 0, from, MINIMAP_HEIGHT);
        context.fillRect(from + size, 0, width, MINIMAP_HEIGHT);
        context.globalAlpha = 1;
        context.strokeStyle = looks.ink;
        context.strokeRect(from + .5, .5, Math.max(size - 1, 2), MINIMAP_HEIGHT - 1);
    }
}
