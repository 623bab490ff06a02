// SPDX-License-Identifier: MIT
// Marks drawn with the rows of the timeline: the axis, spans, long slices, arrows, a critical path.
"use strict";

const AXIS_HEIGHT = 22;
const TICK_WIDTH = 96;   // CSS pixels between two ticks, at least
const FEW_ARROWS = 60;   // so many are drawn without being asked for
const MANY_ARROWS = 400; // of one coroutine
const MANY_WOKEN = 50000; // activities that are looked at for them

/** A step of 1, 2 or 5 times a power of ten, at least as large as a length. @param {number} ns */
function niceStep(ns) {
    const power = 10 ** Math.floor(Math.log10(Math.max(ns, 1)));
    return [1, 2, 5, 10].map((times) => times * power).find((step) => step >= ns) ?? 10 * power;
}

/** Unit of a time, and its length in ns. @param {number} ns @returns {[string, number]} */
function unitOf(ns) {
    return ns >= 1e9 ? ["s", 1e9] : ns >= 1e6 ? ["ms", 1e6] : ns >= 1e3 ? ["µs", 1e3] : ["ns", 1];
}

/** Moments at which an axis has ticks, and what stands there. @param {TimeScale} scale @returns {{ns: number, x: number, text: string}[]} */
function ticksOf(scale) {
    const step = niceStep((scale.to - scale.from) / Math.max(1, scale.width / TICK_WIDTH)), ticks = [];
    const [unit, size] = unitOf(scale.to);
    const digits = Math.max(0, Math.ceil(Math.log10(size / step) - 1e-9));
    for (let ns = Math.ceil(scale.from / step) * step; ns <= scale.to; ns += step)
        ticks.push({ ns, x: xOf(scale, ns), text: `${(ns / size).toFixed(digits)} ${unit}` });
    return ticks;
}

/**
 * Where the rows are.
 * @typedef {object} TimelinePlace
 * @property {TimelineRows} rows
 * @property {TimeScale} scale
 * @property {number} rowHeight
 * @property {number} spanHeight 0: there are no spans
 * @property {number} scroll pixels of the rows above the canvas
 * @property {number} height of the canvas
 */
/** @typedef {{what: "spawn" | "wake", from: number, to: number, ns: number}} TimelineArrow */

class TimelineMarks {
    /** @param {Store} store @param {Looks} looks @param {TimelinePlace} place */
    constructor(store, looks, place) {
        this.store = store;
        this.index = activitiesOf(store);
        this.looks = looks;
        this.place = place;
        /** @type {{x: number, y: number, width: number, height: number, name: string, span: number}[]} */
        this.spans = [];
        /** @type {{x: number, y: number, width: number, height: number, name: string, hog: number}[]} */
        this.hogs = [];
    }

    /** @param {number} row @returns {number} its upper edge */
    yOf(row) {
        return AXIS_HEIGHT + row * this.place.rowHeight - this.place.scroll;
    }

    /** Upper edge and height of the states of a row. @param {number} row */
    bandOf(row) {
        return { y: this.yOf(row) + this.place.spanHeight + 2, height: TIMELINE_ROW - 4 };
    }

    /** @param {number} coro @returns {number} middle of its states */
    middleOf(coro) {
        const band = this.bandOf(this.place.rows.ofCoro[coro]);
        return band.y + band.height / 2;
    }

    /** Where a critical path runs: below the states, which stay legible. @param {number} coro */
    lineOf(coro) {
        const band = this.bandOf(this.place.rows.ofCoro[coro]);
        return band.y + band.height + 1;
    }

    /** Only the plot of the rows is drawn on. @param {CanvasRenderingContext2D} context @param {() => void} draw */
    within(context, draw) {
        const { scale, height } = this.place;
        context.save();
        context.beginPath();
        context.rect(scale.left, AXIS_HEIGHT, scale.width, height - AXIS_HEIGHT);
        context.clip();
        draw();
        context.restore();
    }

    /** @param {CanvasRenderingContext2D} context */
    axis(context) {
        const { looks } = this, { scale, height } = this.place;
        context.fillStyle = looks.paper;
        context.fillRect(0, 0, scale.left + scale.width, AXIS_HEIGHT);
        for (const tick of ticksOf(scale)) {
            context.fillStyle = looks.line;
            context.fillRect(Math.round(tick.x), AXIS_HEIGHT - 5, 1, height);
            context.fillStyle = looks.faint;
            if (tick.x + 7 * tick.text.length < scale.left + scale.width)
                context.fillText(tick.text, Math.round(tick.x) + 3, AXIS_HEIGHT - 8);
        }
    }

    /**
     * Bars of a coroutine's spans: one within another is drawn over it.
     * @param {CanvasRenderingContext2D} context @param {number} coro @param {number} row
     */
    coroSpans(context, coro, row) {
        const { looks, index, store } = this, { scale, spanHeight } = this.place, { first, list } = index.spans, { span } = store;
        const right = scale.left + scale.width, y = this.yOf(row) + 1;
        for (let at = first[coro], drawn = -1; at < first[coro + 1]; at++) {
            const i = list[at], from = Math.max(scale.left, xOf(scale, span.start[i]));
            const to = Math.min(right, xOf(scale, span.start[i] + span.length[i]));
            if (from > right)
                break;
            if (to < scale.left || (Math.floor(to) === drawn && to - from < 1))
                continue;
            const width = Math.max(1, to - from), failed = (span.flags[i] & 1) !== 0, name = store.names[span.name[i]];
            drawn = Math.floor(to);
            context.fillStyle = looks.line;
            context.fillRect(from, y, width, spanHeight - 1);
            context.fillStyle = looks.faint;
            context.fillRect(from, y, 1, spanHeight - 1);
            context.fillRect(from, y + spanHeight - 2, width, failed ? 2 : 1);
            context.fillStyle = looks.ink;
            if (width > 26)
                context.fillText(cutText((failed ? "✗ " : "") + name, Math.floor((width - 4) / 6)), from + 3, y + spanHeight - 3);
            this.spans.push({ x: from, y, width, height: spanHeight, name, span: i });
        }
    }

    /** Long slices, on their threads' rows. @param {CanvasRenderingContext2D} context @param {number} thread @param {number} row */
    threadHogs(context, thread, row) {
        const { scale } = this.place, right = scale.left + scale.width;
        const { first, list } = this.index.hogs, { hog } = this.store, band = this.bandOf(row);
        context.fillStyle = this.looks.match;
        for (let at = first[thread]; at < first[thread + 1]; at++) {
            const i = list[at], from = Math.max(scale.left, xOf(scale, hog.start[i]));
            const to = Math.min(right, xOf(scale, hog.start[i] + hog.length[i]));
            if (to < scale.left || from > right)
                continue;
            const width = Math.max(2, to - from);
            context.fillRect(from, band.y, width, 2);
            context.beginPath();
            context.moveTo(from, band.y);
            context.lineTo(from + 8, band.y);
            context.lineTo(from, band.y + 8);
            context.fill();
            this.hogs.push({ x: from, y: band.y, width: Math.max(8, width), height: band.height, name: this.store.coroText(hog.coro[i]), hog: i });
        }
    }

    /**
     * The critical path as a line: along the rows of its coroutines, with verticals where it goes from one to another.
     * @param {number[]} segments @returns {{x: number, y: number}[]} its corners
     */
    pathOf(segments) {
        const { scale, rows } = this.place, { segment } = this.store;
        /** @type {{x: number, y: number}[]} */
        const points = [];
        const clamp = (/** @type {number} */ ns) => Math.min(Math.max(xOf(scale, ns), scale.left - 9), scale.left + scale.width + 9);
        for (const i of segments) {
            if (rows.ofCoro[segment.coro[i]] < 0)
                continue;
            const y = this.lineOf(segment.coro[i]);
            for (const x of [clamp(segment.from[i]), clamp(segment.from[i] + segment.length[i])]) {
                const before = points[points.length - 1];
                if (!before || before.x !== x || before.y !== y)
                    points.push({ x, y });
            }
        }
        return points;
    }

    /** @param {CanvasRenderingContext2D} context @param {{x: number, y: number}[]} points */
    path(context, points) {
        context.lineJoin = "round";
        for (const [style, width] of /** @type {[string, number][]} */ ([[this.looks.paper, 6], [this.looks.match, 4]])) {
            context.strokeStyle = style;
            context.lineWidth = width;
            context.beginPath();
            points.forEach((point, i) => i === 0 ? context.moveTo(point.x, point.y) : context.lineTo(point.x, point.y));
            context.stroke();
        }
    }

    /** Whether an arrow's ends have rows, and its moment is in sight. @param {TimelineArrow} arrow */
    hasArrow(arrow) {
        const { rows, scale } = this.place, seen = arrow.ns >= scale.from && arrow.ns <= scale.to;
        return seen && arrow.from !== arrow.to && rows.ofCoro[arrow.from] >= 0 && rows.ofCoro[arrow.to] >= 0;
    }

    /** Arrows that end at a coroutine. @param {number} coro @param {number} limit @returns {TimelineArrow[]} */
    arrowsTo(coro, limit) {
        const { store, index } = this, { activity } = store, { scale } = this.place;
        /** @type {TimelineArrow[]} */
        const found = [];
        if (store.coro.parent[coro] > 0)
            found.push({ what: "spawn", from: store.coro.parent[coro] - 1, to: coro, ns: index.birthOf(coro) });
        const first = index.seek(coro, scale.from), last = Math.min(index.last[coro], first + MANY_WOKEN);
        for (let i = first; i < last && activity.start[i] <= scale.to && found.length <= limit; i++)
            if (activity.waker[i] > 0)
                found.push({ what: "wake", from: activity.waker[i] - 1, to: coro, ns: index.readyAt(i) });
        return found.filter((arrow) => this.hasArrow(arrow));
    }

    /** Arrows that begin at a coroutine. @param {number} coro @param {number} limit @returns {TimelineArrow[]} */
    arrowsFrom(coro, limit) {
        const { index } = this, { children, woken } = index, { activity } = this.store, found = [];
        for (let at = children.first[coro]; at < children.first[coro + 1] && found.length < limit; at++) {
            const arrow = /** @type {TimelineArrow} */ ({ what: "spawn", from: coro, to: children.list[at], ns: index.birthOf(children.list[at]) });
            if (this.hasArrow(arrow))
                found.push(arrow);
        }
        const end = Math.min(woken.first[coro + 1], woken.first[coro] + MANY_WOKEN);
        for (let at = woken.first[coro]; at < end && found.length < limit; at++) {
            const i = woken.list[at], arrow = /** @type {TimelineArrow} */ ({ what: "wake", from: coro, to: activity.coro[i], ns: index.readyAt(i) });
            if (this.hasArrow(arrow))
                found.push(arrow);
        }
        return found;
    }

    /** Arrows of one coroutine; of all rows in sight (-1) only if they are few. @param {number} coro @returns {TimelineArrow[]} */
    arrows(coro) {
        if (coro >= 0 && this.place.rows.ofCoro[coro] >= 0)
            return [...this.arrowsTo(coro, MANY_ARROWS), ...this.arrowsFrom(coro, MANY_ARROWS)];
        const { rows } = this.place, found = [], [first, last] = this.visible();
        for (let row = first; row < last && found.length <= FEW_ARROWS; row++)
            if (rows.kind[row] === ROW.coro)
                found.push(...this.arrowsTo(rows.number[row], FEW_ARROWS));
        return found.length <= FEW_ARROWS ? found : [];
    }

    /** Rows in sight. @returns {[number, number]} */
    visible() {
        const { scroll, rowHeight, height, rows } = this.place;
        return [Math.floor(scroll / rowHeight), Math.min(rows.count, Math.ceil((scroll + height - AXIS_HEIGHT) / rowHeight))];
    }

    /** A spawn is a solid line, a wake a dashed one. @param {CanvasRenderingContext2D} context @param {TimelineArrow} arrow */
    arrow(context, arrow) {
        const x = Math.round(xOf(this.place.scale, arrow.ns)) + .5, from = this.middleOf(arrow.from), to = this.middleOf(arrow.to);
        const down = to > from ? 1 : -1, tip = to - down * 5;
        context.strokeStyle = context.fillStyle = this.looks.ink;
        context.lineWidth = 1;
        context.setLineDash(arrow.what === "spawn" ? [] : [3, 2]);
        context.beginPath();
        context.moveTo(x, from);
        context.lineTo(x, tip);
        context.stroke();
        context.setLineDash([]);
        context.beginPath();
        context.arc(x, from, 2, 0, 7);
        context.moveTo(x, tip + down * 2);
        context.lineTo(x - 4, tip - down * 5);
        context.lineTo(x + 4, tip - down * 5);
        context.fill();
    }

    /** A part of the time, shaded, with its length. @param {CanvasRenderingContext2D} context @param {number} from @param {number} to ns */
    range(context, from, to) {
        const { scale, height } = this.place, { looks } = this, right = scale.left + scale.width;
        const x0 = Math.min(Math.max(xOf(scale, from), scale.left), right), x1 = Math.min(Math.max(xOf(scale, to), scale.left), right);
        context.globalAlpha = .16;
        context.fillStyle = looks.ink;
        context.fillRect(x0, 0, x1 - x0, height);
        context.globalAlpha = 1;
        context.fillRect(x0, 0, 1, height);
        context.fillRect(x1 - 1, 0, 1, height);
        const text = timeText(to - from), wide = context.measureText(text).width + 8;
        const at = Math.min(Math.max((x0 + x1 - wide) / 2, scale.left), right - wide);
        context.fillStyle = looks.ink;
        context.fillRect(at, 1, wide, 14);
        context.fillStyle = looks.paper;
        context.fillText(text, at + 4, 12);
    }
}
