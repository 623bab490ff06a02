// SPDX-License-Identifier: MIT
// The heatmap: how long coroutines were ready before they ran, over time. A dark row at the top of a bright picture is one slow coroutine;
// a column that is bright far up is a moment at which everything had to wait.
"use strict";

const HEAT_LEFT = 74;   // CSS pixels of the labels of delays
const HEAT_BOTTOM = 20; // of the axis
const HEAT_CELL = 3;    // width of a cell, at least: narrower columns are drawn together

/** Viridis: its lightness rises evenly. */
const HEAT_COLOURS = [[68, 1, 84], [59, 82, 139], [33, 145, 140], [94, 201, 98], [253, 231, 37]];

/** Colour of a part of the greatest count. @param {number} part 0 ... 1 @param {boolean} dark else great counts are dark */
function heatColour(part, dark) {
    const at = (dark ? part : 1 - part) * (HEAT_COLOURS.length - 1), below = Math.min(Math.floor(at), HEAT_COLOURS.length - 2);
    const mixed = HEAT_COLOURS[below].map((low, i) => Math.round(low + (HEAT_COLOURS[below + 1][i] - low) * (at - below)));
    return `rgb(${mixed.join(" ")})`;
}

/** Nanoseconds with three digits at most: "1.5 ms". @param {number} ns */
function shortTime(ns) {
    const [unit, size] = unitOf(ns);
    return `${Number((ns / size).toPrecision(3))} ${unit}`;
}

/** @typedef {{x: number, y: number, width: number, height: number, name: string, column: number, row: number, count: number}} HeatBox */

class HeatmapView {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.store = app.store;
        this.key = "heatmap";
        this.title = "Heatmap";
        this.letter = "h";
        /** Cell of the keyboard, in drawn columns and rows. */
        this.cursor = { column: -1, row: 0 };
        /** @type {{column: number, row: number} | null} */
        this.hovered = null;
        /** Columns of a drag. @type {{from: number, to: number, moved: boolean} | null} */
        this.drag = null;
        /** The drawn boxes, CSS pixels of the canvas. @type {HeatBox[]} */
        this.boxes = [];
        this.grid = { columns: 0, per: 1, rows: 0, width: 1, height: 1, cell: 1, line: 1, columnNs: 1 };
        this.counts = new Float64Array(0);
        this.most = 1;
        this.lists = new HeatLists(app);
        this.canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": "heatmap" });
        this.line = el("div", { class: "details", role: "status" });
        this.legend = el("span", { class: "legend", role: "img", "aria-label": "colours of the counts" });
        this.flame = el("button", { type: "button", onclick: () => this.openFlame() }, "flame graph of this range", el("kbd", { text: "Enter" }));
        this.clear = el("button", { type: "button", onclick: () => app.set({ from: "", to: "" }) }, "clear", el("kbd", { text: "Esc" }));
        this.listen();
        this.frame = el("div", {}, this.canvas);
        this.element = el("section", { "aria-label": "heatmap" }, el("div", { class: "toolbar" }, this.legend, this.flame, this.clear),
            el("div", { class: "split" }, el("div", {}, this.frame, this.line), this.lists.element));
        this.keys = this.makeKeys();
    }

    /** @returns {Record<string, [string, () => void]>} */
    makeKeys() {
        return {
            "ArrowLeft": ["earlier", () => this.moveCursor(-1, 0)],
            "ArrowRight": ["later", () => this.moveCursor(1, 0)],
            "ArrowUp": ["longer delays", () => this.moveCursor(0, 1)],
            "ArrowDown": ["shorter delays", () => this.moveCursor(0, -1)],
            "[": ["the range begins here", () => this.extend(this.cursor.column, "from")],
            "]": ["the range ends here", () => this.extend(this.cursor.column, "to")],
            "Enter": ["flame graph of the ready time then: of the range, or of this column", () => this.enter()],
            "Escape": ["no range", () => this.app.set({ from: "", to: "" })],
        };
    }

    listen() {
        const { canvas } = this;
        canvas.addEventListener("pointerdown", (event) => this.press(event));
        canvas.addEventListener("pointermove", (event) => this.move(event));
        canvas.addEventListener("pointerup", (event) => this.release(event));
        canvas.addEventListener("pointercancel", () => this.drop());
        canvas.addEventListener("pointerleave", () => this.hover(null));
    }

    empty() {
        const { head, activity, heat } = this.store;
        if (head.heat && heat.count.some((count) => count > 0))
            return null;
        if (head.heat)
            return "No coroutine had to wait before it ran: there is no delay to draw.";
        if (activity.start.length === 0 && head.tick_ns > 0)
            return "No coroutine was seen to be switched in this recording: there are no delays of coroutines.";
        return activity.start.length === 0
            ? "This file does not say when coroutines ran, so that nothing is known of their delays.\n" +
              "Record the program with greenprof run -o FILE PROGRAM."
            : "Nothing said when coroutines became ready, so that nothing is known of their delays.\n" +
              "It is known of eventlet, gevent and asyncio, and of schedulers that call prof_coro_ready().";
    }

    sentence() {
        const { tick_ns } = this.store.head;
        return "How many coroutines began to run when, and after what delay: the time from when they were ready. " +
            "It is of the whole file: filters do not change it. " +
            (tick_ns > 0 ? "A click shows what was ready then as a flame graph, a drag chooses a part of the time."
                : "The samples of this file have no time: a part of it that is chosen here is shown in the timeline, flame graphs show all.");
    }

    draw() {
        this.element.hidden = this.empty() !== null;
        if (this.element.hidden)
            return;
        const timed = this.store.head.tick_ns > 0, range = rangeOf(this.store, this.app.selection);
        this.flame.hidden = this.clear.hidden = !range;
        this.flame.disabled = !timed;
        this.measure();
        this.drawLegend();
        this.paint();
        this.list();
    }

    /** Counts as drawn: several columns are one where there are more columns than pixels. */
    measure() {
        const { heat } = this.store.head, { count } = this.store.heat;
        if (!heat)
            return;
        const width = Math.max(60, this.frame.clientWidth - HEAT_LEFT), per = Math.max(1, Math.ceil(heat.columns * HEAT_CELL / width));
        const columns = Math.ceil(heat.columns / per), rows = heat.edges_ns.length - 1;
        const line = Math.min(26, Math.max(9, Math.floor((innerHeight - 330) / rows)));
        this.grid = { columns, per, rows, line, width, height: rows * line, cell: width / columns, columnNs: heat.column_ns * per };
        this.counts = new Float64Array(columns * rows);
        for (let column = 0; column < heat.columns; column++)
            for (let row = 0; row < rows; row++)
                this.counts[Math.floor(column / per) * rows + row] += count[column * rows + row];
        this.most = this.counts.reduce((most, one) => Math.max(most, one), 1);
        if (this.cursor.column < 0)
            this.cursor = this.worst();
        this.cursor = { column: Math.min(this.cursor.column, columns - 1), row: Math.min(this.cursor.row, rows - 1) };
    }

    /** The cell to look at first: among the longest delays, the one of the most coroutines. */
    worst() {
        const { columns, rows } = this.grid, { counts } = this;
        let cell = { column: 0, row: 0 };
        for (let column = 0; column < columns; column++)
            for (let row = cell.row; row < rows; row++)
                if (counts[column * rows + row] > (row > cell.row ? 0 : counts[cell.column * rows + cell.row]))
                    cell = { column, row };
        return cell;
    }

    /** @param {number} count */
    partOf(count) {
        return Math.log1p(count) / Math.log1p(this.most);
    }

    drawLegend() {
        const { most } = this, { dark } = this.app.looks, steps = new Set([1, Math.round(most ** .33), Math.round(most ** .66), most]);
        this.legend.replaceChildren(...[...steps].map((step) =>
            el("span", {}, el("span", { class: "swatch", style: `background: ${heatColour(this.partOf(step), dark)}` }), countText(step))),
            el("span", { text: "coroutines" }));
    }

    paint() {
        const { grid, canvas } = this, { looks } = this.app, context = canvasContext(canvas, HEAT_LEFT + grid.width, grid.height + HEAT_BOTTOM);
        context.font = "11px system-ui, sans-serif";
        this.boxes = [];
        for (let column = 0; column < grid.columns; column++) {
            const x = Math.round(HEAT_LEFT + column * grid.cell), width = Math.round(HEAT_LEFT + (column + 1) * grid.cell) - x;
            for (let row = 0; row < grid.rows; row++) {
                const count = this.counts[column * grid.rows + row], y = grid.height - (row + 1) * grid.line;
                if (count === 0)
                    continue;
                const part = this.partOf(count);
                context.fillStyle = heatColour(part, looks.dark);
                context.fillRect(x, y, width - (width > 4 ? 1 : 0), grid.line - 1);
                this.boxes.push({ x, y, width, height: grid.line, name: countText(count), column, row, count });
                if (width > 8 * String(count).length && grid.line > 11) {
                    context.fillStyle = (part > .55) === looks.dark ? "#000" : "#fff";
                    context.fillText(String(count), x + 3, y + grid.line / 2 + 4);
                }
            }
        }
        this.drawAxes(context);
        this.drawChosen(context);
        this.say();
    }

    /** @param {CanvasRenderingContext2D} context */
    drawAxes(context) {
        const { grid } = this, { looks } = this.app, { heat } = this.store.head, every = Math.ceil(14 / grid.line);
        context.fillStyle = looks.faint;
        context.textAlign = "right";
        for (let row = 0; heat && row < grid.rows; row += every)
            context.fillText(shortTime(heat.edges_ns[row]), HEAT_LEFT - 6, grid.height - row * grid.line - 1);
        context.textAlign = "left";
        for (const tick of ticksOf({ from: 0, to: grid.columns * grid.columnNs, left: HEAT_LEFT, width: grid.width })) {
            context.fillRect(Math.round(tick.x), grid.height, 1, 4);
            if (tick.x + 7 * tick.text.length < HEAT_LEFT + grid.width)
                context.fillText(tick.text, Math.round(tick.x) + 3, grid.height + 14);
        }
    }

    /** The range, or what is dragged over, and the cursor. @param {CanvasRenderingContext2D} context */
    drawChosen(context) {
        const { grid, cursor } = this, { looks } = this.app, range = this.chosenColumns();
        context.strokeStyle = looks.ink;
        if (range) {
            context.globalAlpha = .16;
            context.fillStyle = looks.ink;
            context.fillRect(HEAT_LEFT + range.from * grid.cell, 0, (range.to - range.from + 1) * grid.cell, grid.height);
            context.globalAlpha = 1;
            context.lineWidth = 1;
            context.strokeRect(HEAT_LEFT + range.from * grid.cell + .5, .5, (range.to - range.from + 1) * grid.cell - 1, grid.height - 1);
        }
        context.strokeStyle = looks.match;
        context.lineWidth = 2;
        context.strokeRect(HEAT_LEFT + cursor.column * grid.cell - 1, grid.height - (cursor.row + 1) * grid.line - 1, grid.cell + 1, grid.line + 1);
    }

    /** Drawn columns of the range, both included; null where there is none. */
    chosenColumns() {
        const { drag, grid } = this, range = rangeOf(this.store, this.app.selection);
        if (drag?.moved)
            return { from: Math.min(drag.from, drag.to), to: Math.max(drag.from, drag.to) };
        const clamp = (/** @type {number} */ column) => Math.min(Math.max(0, column), grid.columns - 1);
        return range ? { from: clamp(Math.floor(range.from / grid.columnNs)), to: clamp(Math.ceil(range.to / grid.columnNs) - 1) } : null;
    }

    /** The counts of a cell, in words. */
    say() {
        const { heat } = this.store.head, { grid } = this, cell = this.hovered ?? this.cursor;
        if (!heat)
            return;
        const count = this.counts[cell.column * grid.rows + cell.row], from = cell.column * grid.columnNs;
        const all = this.counts.subarray(cell.column * grid.rows, (cell.column + 1) * grid.rows).reduce((sum, one) => sum + one, 0);
        this.line.replaceChildren(el("b", { text: `${countText(count)} ${count === 1 ? "coroutine" : "coroutines"}` }),
            el("span", { text: `began to run from ${timeText(from)} to ${timeText(from + grid.columnNs)}` }),
            el("span", { text: `after a delay of ${this.delayText(heat.edges_ns[cell.row], heat.edges_ns[cell.row + 1])}` }),
            el("span", { text: `of ${countText(all)} then` }));
    }

    /** The last row has all that is longer. @param {number} from @param {number} to ns */
    delayText(from, to) {
        return to > 1e13 ? `${shortTime(from)} or more` : `${shortTime(from)} to ${shortTime(to)}`;
    }

    /** The lists beside the map: of the range, else of the cursor's column. */
    list() {
        const { grid, cursor } = this, range = rangeOf(this.store, this.app.selection);
        this.lists.show(range?.from ?? cursor.column * grid.columnNs, range?.to ?? (cursor.column + 1) * grid.columnNs);
    }

    /** @param {MouseEvent} event @returns {{column: number, row: number} | null} */
    cellAt(event) {
        const box = this.canvas.getBoundingClientRect(), { grid } = this;
        const column = Math.floor((event.clientX - box.left - HEAT_LEFT) / grid.cell);
        const row = Math.floor((grid.height - (event.clientY - box.top)) / grid.line);
        return column >= 0 && column < grid.columns && row >= 0 && row < grid.rows ? { column, row } : null;
    }

    /** @param {PointerEvent} event */
    press(event) {
        const cell = this.cellAt(event);
        if (!cell || event.button !== 0)
            return;
        this.canvas.setPointerCapture(event.pointerId);
        if (event.shiftKey)
            return this.extend(cell.column);
        this.drag = { from: cell.column, to: cell.column, moved: false };
    }

    /** @param {PointerEvent} event */
    move(event) {
        const cell = this.cellAt(event), { drag } = this;
        if (drag && cell && cell.column !== drag.to) {
            drag.to = cell.column;
            drag.moved = true;
            this.paint();
        }
        this.hover(cell);
    }

    /** @param {PointerEvent} event */
    release(event) {
        const { drag } = this, cell = this.cellAt(event);
        this.drop();
        if (drag?.moved)
            this.choose(drag.from, drag.to, {});
        else if (drag && cell)
            this.openColumn(cell);
    }

    drop() {
        this.drag = null;
        this.paint();
    }

    /** @param {{column: number, row: number} | null} cell */
    hover(cell) {
        if (cell?.column === this.hovered?.column && cell?.row === this.hovered?.row)
            return;
        this.hovered = cell;
        this.say();
    }

    /** Columns become the range. @param {number} from @param {number} to both included @param {Partial<Selection>} patch */
    choose(from, to, patch) {
        const { columnNs } = this.grid;
        this.app.set({ ...roundRange(this.store, Math.min(from, to) * columnNs, (Math.max(from, to) + 1) * columnNs), ...patch });
    }

    /** The range, or the cursor's column, goes on to another column. @param {number} column @param {"from" | "to"} [end] only that end is moved */
    extend(column, end) {
        const now = this.chosenColumns() ?? { from: this.cursor.column, to: this.cursor.column };
        const from = end === "from" ? column : end === "to" ? Math.min(now.from, column) : Math.min(now.from, column);
        this.choose(from, end === "to" ? column : Math.max(now.to, column), {});
    }

    /** @param {{column: number, row: number}} cell */
    openColumn(cell) {
        this.cursor = cell;
        this.choose(cell.column, cell.column, this.store.head.tick_ns > 0 ? { view: "flame", weight: "ready" } : {});
    }

    openFlame() {
        if (this.store.head.tick_ns > 0)
            this.app.set({ view: "flame", weight: "ready" });
    }

    enter() {
        const range = this.chosenColumns();
        if (range && this.cursor.column >= range.from && this.cursor.column <= range.to)
            this.openFlame();
        else
            this.openColumn(this.cursor);
    }

    /** @param {number} columns @param {number} rows */
    moveCursor(columns, rows) {
        const { grid, cursor } = this;
        const within = (/** @type {number} */ at, /** @type {number} */ count) => Math.min(Math.max(0, at), count - 1);
        this.cursor = { column: within(cursor.column + columns, grid.columns), row: within(cursor.row + rows, grid.rows) };
        this.hovered = null;
        this.paint();
        this.list();
    }
}

VIEWS.push((app) => new HeatmapView(app));
