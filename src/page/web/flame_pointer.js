// SPDX-License-Identifier: MIT
// Pointer and wheel on a flame graph: Ctrl and the wheel, or two fingers, zoom around a point; dragging moves what is in sight.
"use strict";

class FlamePointer {
    /** @param {FlamePane} pane */
    constructor(pane) {
        this.pane = pane;
        /** Fingers, or the button. @type {Map<number, {x: number, y: number}>} */
        this.down = new Map();
        /** The state at the beginning of a drag. @type {{x: number, y: number, lens: Lens, top: number} | null} */
        this.drag = null;
        this.moved = false; // since the press: its end is no click
        const { canvas } = pane, up = (/** @type {PointerEvent} */ event) => {
            this.down.delete(event.pointerId);
            this.drag = null;
        };
        canvas.addEventListener("pointerdown", (event) => this.press(event));
        canvas.addEventListener("pointermove", (event) => this.move(event));
        canvas.addEventListener("pointerup", up);
        canvas.addEventListener("pointercancel", up);
        canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    }

    /** @param {PointerEvent} event */
    press(event) {
        if (event.button !== 0)
            return;
        this.down.set(event.pointerId, { x: event.offsetX, y: event.offsetY });
        this.moved = this.down.size > 1;
        this.drag = this.moved ? null : { x: event.clientX, y: event.clientY, lens: this.pane.lens, top: this.pane.element.scrollTop };
    }

    /** @param {PointerEvent} event */
    move(event) {
        const { pane, drag } = this;
        if (this.down.size === 2 && this.down.has(event.pointerId)) {
            const pinch = pinchOf(this.down, event.pointerId, { x: event.offsetX, y: event.offsetY });
            return pinch ? pane.zoomAround(pinch.times, pinch.still) : undefined;
        }
        const dx = drag ? event.clientX - drag.x : 0, dy = drag ? event.clientY - drag.y : 0;
        if (!drag || (!this.moved && Math.abs(dx) + Math.abs(dy) <= DRAG_PIXELS))
            return;
        if (!this.moved)
            pane.canvas.setPointerCapture(event.pointerId);
        this.moved = true;
        const by = dx / pane.width * (drag.lens.to - drag.lens.from);
        pane.look(drag.lens.from - by, drag.lens.to - by);
        pane.element.scrollTop = drag.top - dy;
    }

    /** @param {WheelEvent} event */
    wheel(event) {
        const { pane } = this, { from, to } = pane.lens, zooms = event.ctrlKey || event.metaKey;
        if (!zooms && (!isSideways(event) || to - from === 1))
            return; // rows scroll, then the page
        event.preventDefault();
        const by = wheelPixels(event, event.deltaX || event.deltaY) / pane.width * (to - from);
        if (zooms)
            pane.zoomAround(wheelTimes(event), event.offsetX);
        else
            pane.look(from + by, to + by);
    }
}
