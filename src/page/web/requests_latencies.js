// SPDX-License-Identifier: MIT
// Histogram of latencies: bins are equally wide on a logarithmic axis, percentiles are marked, a drag chooses a range.
"use strict";

/** @typedef {{x: number, y: number, width: number, height: number, name: string, count: number, first: number, end: number}} LatencyBox */

const LATENCIES = { height: 132, axis: 18, top: 16, bins: 48 };

class LatencyChart {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        /** @type {LatencyBox[]} */
        this.boxes = [];
        this.canvas = el("canvas", { tabindex: 0, role: "application", "aria-label": "histogram of latencies",
                                     onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) });
        this.details = el("div", { class: "details", role: "status" });
        this.element = el("div", {}, this.canvas, this.details);
        this.sorted = new Float64Array();
        this.width = 0;
        this.at = 0;      // bin that the keys are at
        this.anchor = -1; // bin at which a choice began
        this.dragging = false;
        this.canvas.addEventListener("pointerdown", (event) => this.press(event));
        this.canvas.addEventListener("pointermove", (event) => this.move(event));
        this.canvas.addEventListener("pointerup", () => this.release());
        this.canvas.addEventListener("pointercancel", () => {
            this.dragging = false;
            this.paint();
        });
    }

    /**
     * @param {Float64Array} sorted latencies, ns @param {number} width CSS pixels
     */
    draw(sorted, width) {
        this.sorted = sorted;
        this.width = Math.max(width, 200);
        this.boxes = this.makeBoxes();
        this.at = Math.min(this.at, Math.max(this.boxes.length - 1, 0));
        this.canvas.setAttribute("aria-label", `histogram of ${sorted.length} latencies, ${timeText(sorted[0] ?? 0)} to ` +
            `${timeText(sorted[sorted.length - 1] ?? 0)}; left and right: bins, with Shift: more of them, Enter: only these, Escape: all`);
        this.paint();
        this.say(-1);
    }

    /** @returns {LatencyBox[]} */
    makeBoxes() {
        const sorted = this.sorted, first = Math.max(sorted[0] ?? 1, 1), last = Math.max(sorted[sorted.length - 1] ?? 1, first);
        const count = last > first ? LATENCIES.bins : 1, step = (last / first) ** (1 / count);
        const edges = Array.from({ length: count + 1 }, (_, i) => i === 0 ? 0 : i === count ? Math.floor(last) + 1 : Math.ceil(first * step ** i));
        const width = this.width / count, counts = new Array(count).fill(0);
        let bin = 0;
        for (const ns of sorted) {
            while (ns >= edges[bin + 1])
                bin++;
            counts[bin]++;
        }
        const most = Math.max(...counts, 1), room = LATENCIES.height - LATENCIES.axis - LATENCIES.top;
        return counts.map((many, i) => {
            const height = many > 0 ? Math.max(many / most * room, 2) : 0, shown = i === 0 ? Math.floor(first) : edges[i];
            return { x: i * width, y: LATENCIES.height - LATENCIES.axis - height, width, height, count: many, first: edges[i], end: edges[i + 1],
                     name: `${timeText(shown)} to ${timeText(edges[i + 1])}: ${countText(many)} ${many === 1 ? "request" : "requests"}` };
        });
    }

    /**
     * Where a latency is on the axis.
     * @param {number} ns
     */
    placeOf(ns) {
        const sorted = this.sorted, first = Math.max(sorted[0] ?? 1, 1), last = sorted[sorted.length - 1] ?? 1;
        const width = this.width;
        return last > first ? Math.min(Math.max(Math.log(Math.max(ns, 1) / first) / Math.log(last / first), 0), 1) * width : width / 2;
    }

    /** First and last bin that are chosen; null = all. */
    chosen() {
        if (this.anchor >= 0)
            return [Math.min(this.anchor, this.at), Math.max(this.anchor, this.at)];
        const { latency } = this.app.selection, [first, end] = latency.split(",").map(Number);
        const inside = this.boxes.flatMap((box, i) => box.end > first && box.first < end ? [i] : []);
        return latency === "" ? null : [inside[0] ?? 1, inside[inside.length - 1] ?? 0];
    }

    paint() {
        const { looks } = this.app, width = this.width, base = LATENCIES.height - LATENCIES.axis;
        const context = canvasContext(this.canvas, width, LATENCIES.height), chosen = this.chosen();
        context.font = "11px system-ui, sans-serif";
        this.boxes.forEach((box, i) => {
            const inside = !chosen || (i >= chosen[0] && i <= chosen[1]);
            context.fillStyle = inside ? `hsl(212 48% ${looks.dark ? 52 : 55}%)` : looks.line;
            context.fillRect(box.x + .5, box.y, Math.max(box.width - 1, 1), box.height);
            if (chosen && inside) {
                context.fillStyle = looks.ink;
                context.fillRect(box.x, base - 1, box.width, 3);
            }
        });
        context.strokeStyle = looks.line;
        context.strokeRect(0, base + .5, width, 0);
        if (document.activeElement === this.canvas && this.boxes[this.at])
            context.strokeRect(this.boxes[this.at].x + .5, .5, Math.max(this.boxes[this.at].width - 1, 1), base);
        this.paintAxis(context);
        this.paintPercentiles(context);
    }

    /** @param {CanvasRenderingContext2D} context */
    paintAxis(context) {
        const { looks } = this.app, sorted = this.sorted, width = this.width;
        context.fillStyle = looks.faint;
        let free = 0;
        for (let decade = 1; decade <= (sorted[sorted.length - 1] ?? 0); decade *= 10)
            for (const digit of [1, 2, 5]) {
                const ns = decade * digit, x = this.placeOf(ns), text = timeText(ns).replace(/\.?0+ /, " "), room = context.measureText(text).width;
                if (ns < sorted[0] || ns > sorted[sorted.length - 1] || x - room / 2 < free || x + room / 2 > width)
                    continue;
                context.fillRect(x, LATENCIES.height - LATENCIES.axis, 1, 3);
                context.fillText(text, x - room / 2, LATENCIES.height - 4);
                free = x + room / 2 + 10;
            }
    }

    /** @param {CanvasRenderingContext2D} context */
    paintPercentiles(context) {
        const { looks } = this.app, sorted = this.sorted, width = this.width;
        let free = 0;
        for (const percent of sorted.length > 0 ? [50, 90, 99] : []) {
            const ns = percentileOf(sorted, percent), x = Math.min(Math.max(this.placeOf(ns), .5), width - .5), text = `p${percent} ${timeText(ns)}`;
            const room = context.measureText(text).width, left = Math.min(Math.max(x - room / 2, free), width - room);
            context.strokeStyle = context.fillStyle = looks.ink;
            context.setLineDash([3, 2]);
            context.beginPath();
            context.moveTo(x, LATENCIES.top - 2);
            context.lineTo(x, LATENCIES.height - LATENCIES.axis);
            context.stroke();
            context.setLineDash([]);
            if (left >= free)
                context.fillText(text, left, 10);
            free = left + room + 8;
        }
    }

    /**
     * Say in words what a bin has; without one, what all have.
     * @param {number} bin
     */
    say(bin) {
        const { sorted } = this, { latency } = this.app.selection, range = latency.split(",").map((ns) => timeText(Number(ns))).join(" to ");
        this.details.textContent = bin >= 0 && this.boxes[bin] ? this.boxes[bin].name
            : latency !== "" ? `Only requests that took ${range}: a click, or Escape, shows all.`
            : `${countText(sorted.length)} requests. A drag shows those of a range only.`;
    }

    /** @param {PointerEvent} event */
    binAt(event) {
        const x = event.clientX - this.canvas.getBoundingClientRect().left, found = this.boxes.findIndex((box) => x < box.x + box.width);
        return found < 0 ? this.boxes.length - 1 : found;
    }

    /** @param {PointerEvent} event */
    press(event) {
        if (event.button !== 0 || this.boxes.length === 0)
            return;
        this.canvas.setPointerCapture(event.pointerId);
        this.dragging = true;
        this.anchor = this.at = this.binAt(event);
        this.paint();
    }

    /** @param {PointerEvent} event */
    move(event) {
        const bin = this.binAt(event);
        if (this.dragging) {
            this.at = bin;
            this.paint();
        }
        this.say(bin);
    }

    release() {
        if (!this.dragging)
            return;
        this.dragging = false;
        if (this.anchor === this.at && this.app.selection.latency !== "")
            this.clear();
        else
            this.choose();
    }

    choose() {
        const [low, high] = this.anchor < 0 ? [this.at, this.at] : [Math.min(this.anchor, this.at), Math.max(this.anchor, this.at)];
        this.anchor = -1;
        this.app.set({ latency: `${this.boxes[low].first},${this.boxes[high].end}` });
    }

    clear() {
        this.anchor = -1;
        this.app.set({ latency: "" });
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        const step = event.key === "ArrowLeft" ? -1 : event.key === "ArrowRight" ? 1 : 0;
        if (this.boxes.length === 0 || (step === 0 && event.key !== "Enter" && event.key !== "Escape"))
            return;
        event.preventDefault();
        event.stopPropagation();
        if (event.key === "Enter")
            return this.choose();
        if (event.key === "Escape")
            return this.clear();
        this.anchor = !event.shiftKey ? -1 : this.anchor < 0 ? this.at : this.anchor;
        this.at = Math.min(Math.max(this.at + step, 0), this.boxes.length - 1);
        this.paint();
        this.say(this.at);
    }
}
