// SPDX-License-Identifier: MIT
// The stack chart: a lane for each coroutine or thread, stacks in the order of time. Within a tick the order is not known: stacks stand side
// by side there. The part of the time in sight is the timeline's.
"use strict";

const LANE_ROW = 15;
const LANES = 6; // at first

class StackChartView {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.key = "stacks";
        this.title = "Stack chart";
        this.letter = "s";
        this.most = LANES;
        this.painter = new FlamePaint(app);
        this.of = el("select", { "aria-label": "a lane for each", onchange: () => app.set({ lanes: this.of.value }) },
                     el("option", { value: "", text: "coroutine" }), el("option", { value: "thread", text: "thread" }));
        this.range = el("span", { class: "muted" });
        this.details = el("p", { class: "details", role: "status" });
        this.map = new Minimap(app, paintBusy, ({ from, to }) => this.look(from * this.until, to * this.until));
        this.axis = el("canvas", { "aria-hidden": "true" });
        this.lanes = el("div", {});
        this.element = el("div", {}, el("div", { class: "toolbar" }, el("label", {}, "a lane for each: ", this.of), this.range),
                          this.map.canvas, this.axis, this.lanes, this.details);
        /** @type {{weights: Weights, key: string, made: StackLanes} | undefined} */
        this.kept = undefined;
        this.keys = this.makeKeys();
    }

    /** @returns {Record<string, [string, () => void]>} */
    makeKeys() {
        return {
            "+": ["half of the time; Ctrl and the wheel: around a point", () => this.zoom(.5)],
            "-": ["twice the time", () => this.zoom(2)],
            "0": ["all of the time", () => this.look(0, this.until)],
            ArrowLeft: ["earlier", () => this.zoom(1, -.2)],
            ArrowRight: ["later", () => this.zoom(1, .2)],
            c: ["a lane for each coroutine, or thread", () => this.app.set({ lanes: this.app.selection.lanes === "" ? "thread" : "" })],
            Enter: ["flame graph of what is in sight", () => this.openFlame()],
        };
    }

    openFlame() {
        const { app, sight } = this;
        app.set({ view: "flame", ...roundRange(app.store, sight.from, sight.to) });
    }

    get until() {
        return Math.max(activitiesOf(this.app.store).until, this.app.store.head.duration_ns, 1);
    }

    /** The part of the time in sight. */
    get sight() {
        const [from, to] = this.app.selection.sight.split(",").map(Number);
        return to > from ? { from, to: Math.min(to, this.until) } : { from: 0, to: this.until };
    }

    sentence() {
        const { store, weight } = this.app;
        return `What was on the stack, in the order of time, of ${WEIGHTS[weight].what}: callers above what they call. ` +
            `Within a tick of ${timeText(store.head.tick_ns)} the order is not known.`;
    }

    empty() {
        return this.app.store.head.tick_ns === 0 ? "The samples of this file have no time: it was made from a profile, which is a sum."
            : this.app.weights().sum > 0 ? null : "Nothing is left under these filters: choose another weight (w), or take a filter away.";
    }

    model() {
        const { app } = this, { lanes } = app.selection, weights = app.weights(), first = chosenCoro(app.store, app.selection);
        const key = `${this.most} ${first} ${lanes}`;
        if (this.kept?.weights !== weights || this.kept.key !== key)
            this.kept = { weights, key, made: new StackLanes(app, lanes === "thread", this.most, first) };
        return this.kept.made;
    }

    draw() {
        if (this.empty() !== null) {
            this.element.hidden = true;
            return;
        }
        const { lanes, count } = this.model(), { app, sight } = this;
        this.of.value = app.selection.lanes;
        this.range.textContent = periodText(Math.round(sight.from), Math.round(sight.to));
        this.details.replaceChildren(el("span", { class: "muted", text: "Point at a box; a click zooms to it." }));
        const more = () => {
            this.most *= 4;
            app.draw();
        };
        this.lanes.replaceChildren(...lanes.flatMap((lane) => this.laneElements(lane)), ...(count > lanes.length
            ? [el("button", { type: "button", text: `${countText(count - lanes.length)} more, which have less`, onclick: more })] : []));
        this.paint();
    }

    /** Width of what is drawn. */
    get width() {
        return Math.max(this.element.clientWidth - 2, 1);
    }

    paint() {
        const { app, width, sight, until } = this, scale = { ...sight, left: 0, width }, context = canvasContext(this.axis, width, AXIS_HEIGHT);
        this.map.draw([app.store], { from: sight.from / until, to: sight.to / until }, width);
        context.font = "11px system-ui, sans-serif";
        for (const tick of ticksOf(scale)) {
            context.fillStyle = app.looks.line;
            context.fillRect(Math.round(tick.x), AXIS_HEIGHT - 5, 1, 5);
            context.fillStyle = app.looks.faint;
            context.fillText(tick.text, Math.round(tick.x) + 3, AXIS_HEIGHT - 8);
        }
        const canvases = [...this.lanes.querySelectorAll("canvas")];
        this.model().lanes.forEach((lane, i) => this.paintLane(lane, canvasContext(canvases[i], width, lane.rows * LANE_ROW)));
    }

    /** @param {Lane} lane @param {CanvasRenderingContext2D} context */
    paintLane(lane, context) {
        const { app, painter, width } = this, { tree } = app.weights(), search = regexOf(app.selection.search);
        const scale = { ...this.sight, left: 0, width };
        const states = app.chrome ? WEIGHTS[app.weight].states : [];
        context.font = FLAME_FONT;
        context.textBaseline = "middle";
        for (const { node, row, from, to } of lane.boxes) {
            const x = Math.max(xOf(scale, from), 0), size = Math.min(xOf(scale, to), width) - x, name = app.trees.nameOf(tree, tree.frame[node]);
            if (to < scale.from || from > scale.to || size < .3)
                continue;
            const state = app.store.head.states.findIndex((one) => name === `[${one}]`), found = search && search.test(name);
            context.globalAlpha = search && !found ? .35 : 1;
            context.fillStyle = found ? app.looks.match : painter.colour(state > 0 ? state : states.length === 1 ? states[0] : 0, name);
            context.fillRect(x, row * LANE_ROW, Math.max(size - (size > 3 ? 1 : 0), .5), LANE_ROW - 1);
            context.globalAlpha = 1;
            context.fillStyle = app.looks.dark ? "#fff" : "#111";
            if (size > 3 * painter.letter + 6)
                context.fillText(cutText(name, Math.floor((size - 6) / painter.letter)), x + 3, row * LANE_ROW + LANE_ROW / 2);
        }
    }

    /** @param {Lane} lane */
    laneElements(lane) {
        const { app } = this, canvas = el("canvas", { tabindex: 0, role: "img", "aria-label": `stacks of ${lane.text} in the order of time` });
        const at = (/** @type {MouseEvent} */ event) => {
            const ns = timeOf({ ...this.sight, left: 0, width: this.width }, event.offsetX), row = Math.floor(event.offsetY / LANE_ROW);
            return lane.boxes.find((box) => box.row === row && box.from <= ns && ns < box.to);
        };
        canvas.addEventListener("mousemove", (event) => this.describe(lane, at(event)));
        canvas.addEventListener("click", (event) => {
            const box = at(event), by = box ? (box.to - box.from) / 10 : 0;
            if (box)
                this.look(box.from - by, box.to + by);
        });
        canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
        const below = lane.base > 0 ? `, below ${countText(lane.base)} frames that all its stacks have` : "";
        return [el("h2", { text: `${lane.text}: ${timeText(Math.round(lane.sum))} ${WEIGHTS[app.weight].text}${below}` }),
                el("div", { class: "lane" }, canvas)];
    }

    /** @param {Lane} lane @param {LaneBox | undefined} box */
    describe(lane, box) {
        const { app } = this, { tree } = app.weights(), frame = box ? tree.frame[box.node] : -1;
        if (!box)
            return;
        const place = frame >= 0 && frame < app.store.frame.name.length ? app.store.placeOf(frame) : "";
        const texts = [place, lane.text, periodText(Math.round(box.from), Math.round(box.to))].filter((text) => text !== "");
        this.details.replaceChildren(el("b", { text: app.trees.nameOf(tree, frame) }), ...texts.map((text) => el("span", { text })));
    }

    /** @param {WheelEvent} event */
    wheel(event) {
        const { from, to } = this.sight;
        if (!event.ctrlKey && !event.metaKey && !isSideways(event))
            return;
        event.preventDefault();
        if (event.ctrlKey || event.metaKey)
            this.zoom(wheelTimes(event), 0, from + event.offsetX / this.width * (to - from));
        else
            this.zoom(1, wheelPixels(event, event.deltaX || event.deltaY) / this.width);
    }

    /** @param {number} times as much of the time @param {number} [by] moved by this part @param {number} [around] ns */
    zoom(times, by = 0, around = (this.sight.from + this.sight.to) / 2) {
        const { from, to } = this.sight, move = by * (to - from);
        this.look(around - (around - from) * times + move, around + (to - around) * times + move);
    }

    /** @param {number} from @param {number} to ns */
    look(from, to) {
        const { until } = this, lens = lensOf(from / until, to / until, Math.min(SHORTEST_NS / until, 1)), whole = lens.to - lens.from >= 1;
        this.app.selection.sight = whole ? "" : `${Math.floor(lens.from * until)},${Math.ceil(lens.to * until)}`;
        this.range.textContent = periodText(Math.round(this.sight.from), Math.round(this.sight.to));
        this.paint();
        clearTimeout(this.noting);
        this.noting = setTimeout(() => this.app.note({}), 200);
    }
}

/** How much ran when. @param {CanvasRenderingContext2D} context @param {number} width @param {number} height @param {App} app */
function paintBusy(context, width, height, { store: { activity, head, rows } }) {
    const wide = Math.ceil(head.tick_ns > 0 ? Math.min(width, head.duration_ns / head.tick_ns) : width);
    const columns = new Float64Array(Math.max(wide, 1)), scale = columns.length / Math.max(head.duration_ns, 1);
    const size = width / columns.length;
    for (let i = 0; i < rows.count; i++)
        if (rows.state[i] === STATE.running && rows.tick[i] > 0)
            columns[Math.min(Math.floor((rows.tick[i] - .5) * head.tick_ns * scale), columns.length - 1)] += rows.weight[i];
    for (let i = 0; head.tick_ns === 0 && i < activity.start.length; i++)
        columns[Math.min(Math.floor(activity.start[i] * scale), columns.length - 1)] += activity.slice[i];
    const most = columns.reduce((one, other) => Math.max(one, other), 1);
    context.fillStyle = stateColour(STATE.running, "", false);
    columns.forEach((ns, x) => context.fillRect(x * size, height - height * ns / most, size, height * ns / most));
}

VIEWS.push((app) => new StackChartView(app));
