// SPDX-License-Identifier: MIT
// The pointer on the timeline. Dragging chooses a part of the time, with Shift it moves what is in sight; the wheel zooms, on the rows' names
// it scrolls; two fingers zoom and move. A click chooses what is there, a double click shows only that coroutine.
"use strict";

class TimelinePointer {
    /** @param {TimelineView} view @param {HTMLCanvasElement} canvas */
    constructor(view, canvas) {
        this.view = view;
        this.canvas = canvas;
        /** Fingers, or the button. @type {Map<number, {x: number, y: number}>} */
        this.down = new Map();
        /** The state at the beginning of a drag. @type {{x: number, pan: boolean, moved: boolean, from: number, to: number} | null} */
        this.drag = null;
        canvas.addEventListener("pointerdown", (event) => this.press(event));
        canvas.addEventListener("pointermove", (event) => this.move(event));
        canvas.addEventListener("pointerup", (event) => this.release(event));
        canvas.addEventListener("pointercancel", (event) => this.cancel(event));
        canvas.addEventListener("pointerleave", () => this.hover(null));
        canvas.addEventListener("dblclick", (event) => this.only(event));
        canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    }

    /** @param {MouseEvent} event */
    pointOf(event) {
        const box = this.canvas.getBoundingClientRect();
        return { x: event.clientX - box.left, y: event.clientY - box.top };
    }

    /** @param {PointerEvent} event */
    press(event) {
        const point = this.pointOf(event), { place } = this.view;
        if (event.button !== 0 || !place)
            return;
        this.canvas.setPointerCapture(event.pointerId);
        this.down.set(event.pointerId, point);
        this.view.dragged = null;
        this.drag = this.down.size > 1 ? null : { x: point.x, pan: event.shiftKey, moved: false, ...this.view.shown };
    }

    /** @param {PointerEvent} event */
    move(event) {
        const point = this.pointOf(event), { view, drag } = this, { place } = view, before = this.down.get(event.pointerId);
        if (!place)
            return;
        if (before && this.down.size === 2)
            return this.pinch(event.pointerId, point);
        if (!drag)
            return this.hover(this.down.size === 0 ? view.focusAt(point.x, point.y) : null);
        drag.moved ||= Math.abs(point.x - drag.x) > DRAG_PIXELS;
        if (!drag.moved || (drag.x < place.scale.left && !drag.pan))
            return;
        if (drag.pan) {
            const by = (drag.x - point.x) / place.scale.width * (drag.to - drag.from);
            view.look(drag.from + by, drag.to + by);
            return view.later();
        }
        const range = roundRange(view.store, timeOf(place.scale, drag.x), timeOf(place.scale, Math.max(point.x, place.scale.left)));
        view.dragged = { from: Number(range.from), to: Number(range.to) };
        view.paintOverlay();
    }

    /** Two fingers: the moments below them stay below them. @param {number} id @param {{x: number, y: number}} now */
    pinch(id, now) {
        const { view } = this, { place } = view, pinch = pinchOf(this.down, id, now);
        if (pinch && place)
            view.zoom(pinch.times, timeOf(place.scale, pinch.still));
    }

    /** @param {PointerEvent} event */
    release(event) {
        const { view, drag } = this, point = this.pointOf(event), range = view.dragged;
        this.down.delete(event.pointerId);
        this.drag = null;
        if (!drag)
            return;
        view.dragged = null;
        if (range)
            return view.app.set({ from: String(range.from), to: String(range.to) });
        if (!drag.moved)
            this.choose(view.focusAt(point.x, point.y));
    }

    /** @param {PointerEvent} event */
    cancel(event) {
        this.down.delete(event.pointerId);
        this.drag = null;
        this.view.dragged = null;
        this.view.later();
    }

    /** @param {TimelineFocus | null} focus */
    choose(focus) {
        const { view } = this, coro = view.coroOf(focus);
        view.focus.pinned = focus;
        view.revealed = coro;
        view.app.set({ row: coro >= 0 ? `coro:${coro}` : "" });
    }

    /** @param {TimelineFocus | null} focus */
    hover(focus) {
        const { view } = this;
        if (JSON.stringify(view.focus.hovered) === JSON.stringify(focus))
            return;
        view.focus.hovered = focus;
        view.paintOverlay();
    }

    /** @param {MouseEvent} event */
    only(event) {
        const point = this.pointOf(event), coro = this.view.coroOf(this.view.focusAt(point.x, point.y));
        if (coro >= 0)
            this.view.app.set({ coro: String(coro) });
    }

    /** @param {WheelEvent} event */
    wheel(event) {
        const { view } = this, { place } = view, point = this.pointOf(event);
        if (!place || point.x < place.scale.left)
            return;
        event.preventDefault();
        if (isSideways(event))
            view.pan(wheelPixels(event, event.deltaX || event.deltaY) / place.scale.width);
        else
            view.zoom(wheelTimes(event), timeOf(place.scale, point.x));
    }
}
