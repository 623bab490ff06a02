// SPDX-License-Identifier: MIT
// The timeline: which coroutine ran when on which thread, and what each coroutine did meanwhile. This file is the view: its controls, its
// keys, what is in sight. Rows, painting, marks and details have files of their own; timeline_pointer.js has the pointer.
"use strict";

const NAMES_WIDTH = 240; // CSS pixels of the rows' names, at most
const SHORTEST_NS = 1000; // that a zoom goes down to

/** The coroutine that is chosen in the timeline; -1: none. @param {Store} store @param {Selection} selection */
function chosenCoro(store, selection) {
    const number = /^coro:\d+$/.test(selection.row) ? Number(selection.row.slice(5)) : -1;
    return number < store.coroCount ? number : -1;
}

class TimelineView {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.store = app.store;
        this.key = "timeline";
        this.title = "Timeline";
        this.letter = "l";
        this.details = new TimelineDetails(app);
        /** Rows and the path, and what they were made for. @type {{key: string, rows: TimelineRows, segments: number[]} | null} */
        this.kept = null;
        this.waiting = /** @type {number | null} a frame that is asked for */ (null);
        this.onlySeen = false;
        /** The last brought into sight: a coroutine's row, a request's time. */
        this.revealed = -1;
        this.shownFor = "";
        this.shown = { from: 0, to: 0 };
        /** The URL's text, and the timer until the URL has it. @type {{text: string, waiting: ReturnType<typeof setTimeout> | undefined}} */
        this.sight = { text: "", waiting: undefined };
        /** The thing under the pointer, and the chosen one. @type {{hovered: TimelineFocus | null, pinned: TimelineFocus | null}} */
        this.focus = { hovered: null, pinned: null };
        /** A range while it is dragged. @type {{from: number, to: number} | null} */
        this.dragged = null;
        /** The drawn boxes, CSS pixels of the canvas. @type {TimelineBox[]} */
        this.boxes = [];
        this.spans = /** @type {TimelineMarks["spans"]} */ ([]);
        this.hogs = /** @type {TimelineMarks["hogs"]} */ ([]);
        this.path = /** @type {{x: number, y: number}[]} */ ([]);
        this.arrows = /** @type {TimelineArrow[]} */ ([]);
        this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "timeline" });
        this.overlay = el("canvas", { "aria-hidden": "true" });
        this.sizer = el("div", {}, el("div", { class: "timeline-sticky" }, this.canvas, this.overlay));
        this.scroller = el("div", { class: "timeline-scroll", onscroll: () => this.later() }, this.sizer);
        this.controls = new TimelineControls(this);
        this.map = new Minimap(app, paintBusy, (lens) => this.lookAt(lens));
        this.element = el("section", { "aria-label": "timeline" }, this.controls.element, this.map.canvas, this.scroller, this.details.line,
                          this.details.more);
        new TimelinePointer(this, this.canvas);
        this.keys = this.makeKeys();
    }

    /** @returns {Record<string, [string, () => void]>} */
    makeKeys() {
        return {
            "+": ["zoom in", () => this.zoom(.5)],
            "=": ["zoom in", () => this.zoom(.5)],
            "-": ["zoom out", () => this.zoom(2)],
            "0": ["all of the time", () => this.showAll()],
            "ArrowLeft": ["earlier", () => this.pan(-.2)],
            "ArrowRight": ["later", () => this.pan(.2)],
            "ArrowDown": ["next coroutine", () => this.stepRow(1)],
            "ArrowUp": ["coroutine before", () => this.stepRow(-1)],
            ".": ["next slice of the coroutine", () => this.stepActivity(1)],
            ",": ["slice before", () => this.stepActivity(-1)],
            "o": ["only coroutines that are there in the time in sight, or all", () => this.toggleSeen()],
            "n": ["next long slice, and what had to wait for it", () => this.nextHog()],
            "m": ["the range is what is in sight", () => this.app.set(roundRange(this.store, this.shown.from, this.shown.to))],
            "Enter": ["flame graph of the range; without one: only the chosen coroutine", () => this.enter()],
            "c": ["only the chosen coroutine", () => this.onlyChosen()],
            "Escape": ["no range; then: nothing chosen", () => this.escape()],
        };
    }

    /** Rows of the selection: kept until it changes. @returns {{rows: TimelineRows, segments: number[]}} */
    rows() {
        const { coro, name, entry, spawn, trace, endpoint, request, latency, thread, sort, nest } = this.app.selection;
        const seen = this.onlySeen ? this.shown : null;
        const key = JSON.stringify([seen, coro, name, entry, spawn, trace, endpoint, request, latency, thread, sort, nest]);
        if (this.kept?.key !== key) {
            const segments = segmentsOf(this.store, chosenRequest(this.store, this.app.selection));
            this.kept = { key, rows: timelineRows(this.store, this.app.selection, seen), segments };
        }
        return this.kept;
    }

    empty() {
        if (this.store.activity.start.length === 0 && this.store.span.start.length === 0 && this.store.head.tick_ns > 0)
            return "No coroutine was seen to be switched in this recording: threads by themselves have no timeline here.\n" +
                "greenprof runtimes PROGRAM says which runtimes are known.";
        if (this.store.activity.start.length === 0 && this.store.span.start.length === 0)
            return "This file does not say when coroutines ran: it was made from a profile, or the switches of its runtime were not recorded.\n" +
                "Record the program with greenprof run -o FILE PROGRAM: greenprof flamegraph FILE -o out.html then has a timeline.";
        return this.rows().rows.count === 0 ? "No coroutine passes the filters: take one of them away." : null;
    }

    sentence() {
        const { rows } = this.rows(), { head } = this.store;
        const count = (/** @type {number} */ n, /** @type {string} */ what) => `${countText(n)} ${what}${n === 1 ? "" : "s"}`;
        return `What ${count(rows.threads, "thread")} and ${count(rows.coros, "coroutine")} did, and when. ` +
            (rows.silent > 0 ? `${count(rows.silent, "more coroutine")}: nothing is kept of when they ran. ` : "") +
            (head.tick_ns > 0 ? `Drag over a part of the time to choose it, in steps of ${timeText(head.tick_ns)}.`
                : "The samples of this file have no time: a range that is chosen here does not narrow the flame graph.");
    }

    /** Selection, size or colours have changed. */
    draw() {
        if (this.empty() !== null) {
            this.element.hidden = true;
            return;
        }
        const { selection } = this.app, { segments } = this.rows(), chosen = chosenCoro(this.store, selection);
        this.adopt();
        if (chosen >= 0 && this.coroOf(this.focus.pinned) !== chosen)
            this.focus.pinned = { kind: "coro", number: chosen, state: 0 };
        if (chosen < 0 && this.focus.pinned?.kind !== "hog")
            this.focus.pinned = null;
        this.controls.draw();
        this.details.showTables(chosenRequest(this.store, selection), segments, this.focus.pinned);
        this.reveal(chosen);
        this.paint();
    }

    /** Once for each request, and for a range that a link has: what is in sight. */
    adopt() {
        const { selection } = this.app, request = chosenRequest(this.store, selection), range = rangeOf(this.store, selection);
        const { until } = activitiesOf(this.store), first = this.shown.to === 0, key = `request ${request}`;
        const from = request >= 0 ? this.store.request.start[request] : range?.from ?? 0;
        const to = request >= 0 ? from + this.store.request.latency[request] : range?.to ?? until;
        if (first)
            this.look(0, until);
        const [one, other] = selection.sight.split(",").map(Number), linked = selection.sight !== this.sight.text && other > one;
        if (linked)
            this.look(one, other);
        else if ((first && range) || (request >= 0 && key !== this.shownFor))
            this.look(from - (to - from) / 10, to + (to - from) / 10);
        this.sight.text = selection.sight;
        this.shownFor = key;
    }

    /** A little later: a wheel turns often. */
    noteSight() {
        clearTimeout(this.sight.waiting);
        this.sight.waiting = setTimeout(() => {
            const { from, to } = this.shown, whole = from === 0 && to >= activitiesOf(this.store).until;
            this.sight.text = whole ? "" : `${Math.floor(from)},${Math.ceil(to)}`;
            if (this.app.selection.sight !== this.sight.text)
                this.app.note({ sight: this.sight.text });
        }, 200);
    }

    /** A part of the time comes into sight. @param {number} from @param {number} to ns */
    look(from, to) {
        const { until } = activitiesOf(this.store), length = Math.min(Math.max(to - from, SHORTEST_NS), Math.max(until, SHORTEST_NS));
        const start = Math.min(Math.max(0, from), Math.max(0, until - length));
        this.shown = { from: start, to: start + length };
        this.noteSight();
    }

    /** @param {Lens} part of all of the time */
    lookAt({ from, to }) {
        const { until } = activitiesOf(this.store);
        this.look(from * until, to * until);
        this.later();
    }

    /** @param {number} times more of the time, or less @param {number} [around] ns that stays where it is */
    zoom(times, around = (this.shown.from + this.shown.to) / 2) {
        const { from, to } = this.shown;
        this.look(around - (around - from) * times, around + (to - around) * times);
        this.later();
    }

    /** @param {number} part of what is in sight */
    pan(part) {
        const { from, to } = this.shown, by = part * (to - from);
        this.look(from + by, to + by);
        this.later();
    }

    showAll() {
        this.look(0, Infinity);
        this.later();
    }

    /** Sizes of what is to be drawn. @returns {TimelinePlace} */
    measure() {
        const { rows } = this.rows(), { scroller, sizer } = this;
        const spanHeight = this.store.span.start.length > 0 ? SPAN_HEIGHT : 0, rowHeight = TIMELINE_ROW + spanHeight;
        const content = AXIS_HEIGHT + rows.count * rowHeight, room = innerHeight - scroller.getBoundingClientRect().top - scrollY - 120;
        const height = Math.round(Math.min(content, Math.max(room, 220)));
        scroller.style.height = `${height + 2}px`;
        sizer.style.height = `${content}px`;
        const width = scroller.clientWidth, left = Math.min(NAMES_WIDTH, Math.round(width * .28));
        return { rows, rowHeight, spanHeight, height, scroll: Math.min(scroller.scrollTop, content - height),
                 scale: { ...this.shown, left, width: Math.max(1, width - left) } };
    }

    /** All that is in sight. */
    paint() {
        const { looks } = this.app, place = this.place = this.measure(), { rows, scale } = place;
        const marks = this.marks = new TimelineMarks(this.store, looks, place);
        const painter = new TimelinePainter(this.store, looks, scale, place.height - AXIS_HEIGHT);
        const context = canvasContext(this.canvas, scale.left + scale.width, place.height), [first, last] = marks.visible();
        context.font = "11px system-ui, sans-serif";
        marks.axis(context);
        for (let row = first; row < last; row++) {
            const band = marks.bandOf(row);
            if (rows.kind[row] === ROW.coro)
                painter.coro(rows.number[row], band.y, band.height, AXIS_HEIGHT);
            else if (rows.kind[row] === ROW.thread)
                painter.thread(rows.number[row], band.y, band.height, AXIS_HEIGHT);
        }
        marks.within(context, () => painter.end(context, AXIS_HEIGHT));
        marks.within(context, () => {
            for (let row = first; row < last; row++) {
                if (rows.kind[row] === ROW.coro)
                    marks.coroSpans(context, rows.number[row], row);
                else if (rows.kind[row] === ROW.thread)
                    marks.threadHogs(context, rows.number[row], row);
            }
        });
        this.drawNames(context, marks);
        Object.assign(this, { boxes: painter.boxes, merges: painter.merges, spans: marks.spans, hogs: marks.hogs });
        this.canvas.setAttribute("aria-label", this.sentence());
        this.paintOverlay();
        const { until } = activitiesOf(this.store);
        this.map.canvas.style.marginLeft = `${scale.left}px`;
        this.map.draw([this.store], { from: scale.from / until, to: Math.min(scale.to / until, 1) }, scale.width);
    }

    /** Names of the rows, heads of groups. @param {CanvasRenderingContext2D} context @param {TimelineMarks} marks */
    drawNames(context, marks) {
        const { rows, scale, rowHeight, height } = marks.place, { looks, selection } = this.app;
        const search = regexOf(selection.search), [first, last] = marks.visible();
        context.save();
        context.beginPath();
        context.rect(0, AXIS_HEIGHT, scale.left + scale.width, height);
        context.clip();
        for (let row = first; row < last; row++) {
            const head = rows.kind[row] === ROW.head, y = marks.yOf(row), text = rows.textOf(row), indent = 6 + 10 * Math.min(rows.depth[row], 8);
            context.fillStyle = looks.line;
            context.fillRect(0, y + rowHeight - 1, scale.left + scale.width, 1);
            context.font = head ? "bold 12px system-ui, sans-serif" : "12px system-ui, sans-serif";
            context.fillStyle = search && search.test(text) ? looks.match : head ? looks.faint : looks.ink;
            const room = Math.floor(((head ? scale.width : 0) + scale.left - indent) / 6.4);
            context.fillText(cutText(text, room), indent, y + rowHeight / 2 + 4);
        }
        context.fillStyle = looks.line;
        context.fillRect(scale.left - 1, AXIS_HEIGHT, 1, height);
        context.restore();
    }

    /** Everything that changes with the pointer: arrows, the path, the range. */
    paintOverlay() {
        const { marks, place } = this;
        if (!marks || !place)
            return;
        const { scale, rows } = place, context = canvasContext(this.overlay, scale.left + scale.width, place.height);
        const chosen = chosenCoro(this.store, this.app.selection), hovered = this.coroOf(this.focus.hovered), coro = hovered >= 0 ? hovered : chosen;
        context.font = "11px system-ui, sans-serif";
        this.arrows = marks.arrows(coro);
        this.path = marks.pathOf(this.rows().segments);
        marks.within(context, () => {
            this.shadeOutside(context);
            if (this.path.length > 0)
                marks.path(context, this.path);
            for (const arrow of this.arrows)
                marks.arrow(context, arrow);
        });
        for (const one of new Set([chosen, hovered]))
            if (one >= 0 && rows.ofCoro[one] >= 0)
                this.frameRow(context, rows.ofCoro[one], one === chosen);
        const range = this.dragged ?? rangeOf(this.store, this.app.selection);
        if (range)
            marks.range(context, range.from, range.to);
        this.details.show(this.focus.hovered ?? this.focus.pinned);
    }

    /** @param {CanvasRenderingContext2D} context @param {number} row @param {boolean} chosen else the pointer is there */
    frameRow(context, row, chosen) {
        const { marks, place } = this;
        if (!marks || !place || marks.yOf(row) + place.rowHeight <= AXIS_HEIGHT)
            return;
        context.strokeStyle = chosen ? this.app.looks.ink : this.app.looks.faint;
        context.lineWidth = chosen ? 2 : 1;
        context.strokeRect(1, Math.max(AXIS_HEIGHT, marks.yOf(row)), place.scale.left + place.scale.width - 2, place.rowHeight - 1);
    }

    /** Times outside of the chosen request are pale. @param {CanvasRenderingContext2D} context */
    shadeOutside(context) {
        const request = chosenRequest(this.store, this.app.selection), { place } = this;
        if (request < 0 || !place)
            return;
        const { start, latency } = this.store.request, { scale } = place, right = scale.left + scale.width;
        const x0 = Math.max(scale.left, xOf(scale, start[request])), x1 = Math.min(right, xOf(scale, start[request] + latency[request]));
        context.globalAlpha = .55;
        context.fillStyle = this.app.looks.paper;
        context.fillRect(scale.left, AXIS_HEIGHT, x0 - scale.left, place.height);
        context.fillRect(x1, AXIS_HEIGHT, right - x1, place.height);
        context.globalAlpha = 1;
    }

    /** The thing at a point of the canvas. @param {number} x @param {number} y CSS pixels @returns {TimelineFocus | null} */
    focusAt(x, y) {
        const { place } = this, row = place && y >= AXIS_HEIGHT ? Math.floor((y - AXIS_HEIGHT + place.scroll) / place.rowHeight) : -1;
        if (!place || row < 0 || row >= place.rows.count || place.rows.kind[row] === ROW.head)
            return null;
        const number = place.rows.number[row], thread = place.rows.kind[row] === ROW.thread;
        const ns = timeOf(place.scale, x), index = activitiesOf(this.store);
        const within = (/** @type {{x: number, y: number, width: number, height: number}} */ box) =>
            x >= box.x && x < box.x + box.width && y >= box.y && y < box.y + box.height;
        const hog = this.hogs.findLast(within), span = this.spans.findLast(within);
        if (hog)
            return { kind: "hog", number: hog.hog, state: STATE.running };
        if (span)
            return { kind: "span", number: span.span, state: STATE.running };
        const i = x < place.scale.left ? -1 : thread ? index.onThread(number, ns) : index.at(number, ns);
        if (i < 0)
            return thread ? null : { kind: "coro", number, state: STATE.running };
        const part = thread ? undefined : index.partsOf(i).findLast((one) => one.from <= ns);
        return { kind: "activity", number: i, state: part?.state ?? STATE.running };
    }

    toggleSeen() {
        this.onlySeen = !this.onlySeen;
        this.app.draw();
    }

    /** Draw before the next frame, once. */
    later() {
        this.waiting ??= requestAnimationFrame(() => {
            this.waiting = null;
            if (!this.element.hidden && this.place)
                this.paint();
        });
    }

    /** @param {TimelineFocus | null} focus @returns {number} -1: of none */
    coroOf(focus) {
        const { activity, span, hog } = this.store;
        return !focus ? -1 : focus.kind === "coro" ? focus.number : focus.kind === "span" ? span.coro[focus.number] - 1
            : focus.kind === "hog" ? hog.coro[focus.number] : activity.coro[focus.number];
    }

    /** @param {number} step */
    stepRow(step) {
        const { rows } = this.rows(), chosen = chosenCoro(this.store, this.app.selection);
        let row = chosen >= 0 ? rows.ofCoro[chosen] : -1;
        if (row < 0)
            row = step > 0 ? -1 : rows.count;
        do
            row += step;
        while (row >= 0 && row < rows.count && rows.kind[row] !== ROW.coro);
        if (row >= 0 && row < rows.count)
            this.app.set({ row: `coro:${rows.number[row]}` });
    }

    /** @param {number} step */
    stepActivity(step) {
        const coro = chosenCoro(this.store, this.app.selection), index = activitiesOf(this.store);
        if (coro < 0 || index.first[coro] === index.last[coro])
            return;
        const now = this.focus.pinned?.kind === "activity" ? this.focus.pinned.number + step : index.seek(coro, this.shown.from);
        const i = Math.min(Math.max(now, index.first[coro]), index.last[coro] - 1);
        const { start } = this.store.activity, half = (this.shown.to - this.shown.from) / 2;
        this.focus.pinned = { kind: "activity", number: i, state: STATE.running };
        if (start[i] < this.shown.from || start[i] > this.shown.to)
            this.look(start[i] - half, start[i] + half);
        this.later();
    }

    /** The long slice after the chosen one, in order of time; its coroutine must have a row. */
    nextHog() {
        const { hog } = this.store, { rows } = this.rows();
        const order = [...orderOf(new Float64Array(hog.start))].filter((i) => rows.ofCoro[hog.coro[i]] >= 0);
        const now = this.focus.pinned?.kind === "hog" ? order.indexOf(this.focus.pinned.number) : -1, next = order[(now + 1) % order.length];
        if (next === undefined)
            return;
        const middle = hog.start[next] + hog.length[next] / 2, half = Math.max((this.shown.to - this.shown.from) / 2, hog.length[next]);
        if (hog.start[next] < this.shown.from || hog.start[next] + hog.length[next] > this.shown.to)
            this.look(middle - half, middle + half);
        this.focus.pinned = { kind: "hog", number: next, state: STATE.running };
        this.app.set({ row: `coro:${hog.coro[next]}` });
    }

    /** Scroll to a coroutine's row. @param {number} coro */
    reveal(coro) {
        const row = coro >= 0 ? this.rows().rows.ofCoro[coro] : -1, { scroller } = this;
        if (row < 0 || coro === this.revealed)
            return;
        this.revealed = coro;
        const place = this.measure(), y = row * place.rowHeight, room = place.height - AXIS_HEIGHT - place.rowHeight;
        scroller.scrollTop = Math.min(Math.max(scroller.scrollTop, y - room), y);
    }

    enter() {
        if (rangeOf(this.store, this.app.selection))
            this.openFlame();
        else
            this.onlyChosen();
    }

    openFlame() {
        if (this.store.head.tick_ns > 0)
            this.app.set({ view: "flame" });
    }

    onlyChosen() {
        const chosen = chosenCoro(this.store, this.app.selection);
        if (chosen >= 0)
            this.app.set({ coro: String(chosen) });
    }

    clearRange() {
        this.dragged = null;
        this.app.set({ from: "", to: "" });
    }

    escape() {
        if (this.dragged || rangeOf(this.store, this.app.selection))
            return this.clearRange();
        this.focus.pinned = null;
        this.app.set({ row: "" });
    }
}

VIEWS.push((app) => new TimelineView(app));
