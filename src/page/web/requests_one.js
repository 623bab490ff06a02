// SPDX-License-Identifier: MIT
// A single request: why it took so long, its resources, its critical path and its spans.
"use strict";

/** @typedef {{span: number, level: number}} SpanLine */

const REQUEST_NOTES = [
    { flag: REQUEST.about, text: "Its beginning and end are about right only: no span was recorded, so that they are the first and the last moment " +
        "at which a coroutine ran for its trace." },
    { flag: REQUEST.cut, text: "It had not ended when the capture did: its latency is what had passed until then." },
    { flag: REQUEST.failed, text: "It failed." },
];

class OneRequest {
    /** @param {App} app @param {Requests} requests */
    constructor(app, requests) {
        this.app = app;
        this.requests = requests;
        this.element = el("section", { class: "panel request", "aria-label": "chosen request" });
        this.bar = new PathStrip(app, "Latency by state.", () => this.timeline());
        this.strip = new PathStrip(app, "Critical path in the order of time: a click opens the timeline.", (box) => this.timeline(box));
        this.shown = "";
    }

    /** @param {number} request -1 = none is chosen */
    draw(request) {
        this.element.hidden = request < 0;
        if (request < 0)
            return;
        const width = this.element.clientWidth - 18;
        const key = `${request} ${width} ${this.app.looks.dark}`;
        if (key === this.shown)
            return;
        const { latency, start } = this.app.store.request, from = start[request], sums = this.requests.states(request);
        if (!this.shown.startsWith(`${request} `)) {
            this.bar.at = this.strip.at = 0;
            this.make(request, sums);
        }
        this.shown = key;
        this.request = request;
        const names = [...this.app.store.head.states, "not known"];
        let at = from;
        const states = [...sums].flatMap((length, state) => {
            at += length;
            return length > 0 ? [{ state, name: names[state], coro: -1, from: at - length, length }] : [];
        });
        this.bar.draw(states, from, latency[request], width);
        this.strip.draw(this.steps(request), from, latency[request], width);
    }

    /**
     * The critical path in the order of time.
     * @param {number} request
     */
    steps(request) {
        const { segment } = this.app.store, { first, rows } = this.requests.segments, { ends } = this.requests;
        return Array.from(rows.subarray(first[request], first[request + 1]), (row) => ({
            state: segment.state[row], coro: segment.coro[row], from: segment.from[row], length: segment.length[row],
            name: ends.texts[ends.number(segment.state[row], Math.max(segment.node[row] - 1, 0))],
        }));
    }

    /** @param {number} request @param {Float64Array} sums by state */
    make(request, sums) {
        const { store } = this.app, { head, request: table } = store, flags = table.flags[request], trace = table.trace[request];
        const coro = table.coro[request] - 1;
        const began = `Began ${timeText(table.start[request])} after the start` + (coro >= 0 ? `, on coroutine ${store.coroText(coro)}` : "") +
            (trace > 0 ? `, trace ${head.traces[trace - 1]}.` : ".");
        const notes = REQUEST_NOTES.filter((note) => flags & note.flag).map((note) => el("p", { class: "warn", text: note.text }));
        this.element.replaceChildren(
            el("h2", { text: `Request ${request + 1}: ${head.endpoints[table.endpoint[request]]?.text ?? ""}` }),
            el("p", { class: "why", text: this.requests.sentence(request) }), el("p", { class: "muted", text: began }), ...notes, this.buttons(),
            el("h3", { text: "Latency: its critical path by state" }), this.bar.canvas,
            el("p", { class: "sums", text: this.sumsText(request, sums) }), this.strip.element,
            ...this.keptWaiting(request), this.partsTable(request),
            el("h3", { text: "Resources: sums over its coroutines" }), el("p", { class: "resources", text: this.resourcesText(request) }),
            el("h3", { text: "Spans" }), this.spansTable(request));
    }

    buttons() {
        const { app } = this;
        const button = (/** @type {string} */ text, /** @type {() => void} */ onclick) => el("button", { type: "button", text, onclick });
        return el("div", { class: "toolbar" },
            button("flame graph of this request", () => app.set({ ...this.only(), weight: "path", view: "flame" })),
            button("timeline of this request", () => this.timeline()), button("close", () => app.set({ request: "", row: "" })));
    }

    /**
     * A selection of this request without any other filter.
     * @returns {Partial<Selection>}
     */
    only() {
        return { coro: "", name: "", entry: "", spawn: "", trace: "", endpoint: "", thread: "", state: "", from: "", to: "", latency: "", zoom: "",
                 request: String(this.request), row: "" };
    }

    /** @param {StripBox} [box] */
    timeline(box) {
        const { start, latency } = this.app.store.request, request = this.request ?? 0;
        this.app.set({ ...this.only(), view: "timeline", from: String(start[request]), to: String(start[request] + latency[request]),
                       row: box && box.coro >= 0 ? `coro:${box.coro}` : "" });
    }

    /** @param {number} request @param {Float64Array} sums by state */
    sumsText(request, sums) {
        const latency = this.app.store.request.latency[request], names = [...this.app.store.head.states, "not known"];
        const parts = [...sums].flatMap((ns, state) => ns > 0 ? [`${names[state]} ${timeText(ns)} (${percentText(ns, latency)})`] : []);
        return `${parts.join(" + ")} = ${timeText(latency)}`;
    }

    /**
     * Coroutines that its thread ran while it was ready.
     * @param {number} request
     */
    keptWaiting(request) {
        const { app } = this, keepers = this.requests.keepers(request), shown = keepers.slice(0, 5);
        if (shown.length === 0)
            return [];
        const blame = (/** @type {number} */ coro) => app.set({ ...this.only(), request: "", view: "blame", coro: String(coro) });
        const { start, latency } = app.store.request, code = RanCode.of(app.store), ran = (/** @type {number} */ coro) => {
            const text = app.store.functionText(code.node(coro, start[request], start[request] + latency[request]));
            return text && `, which ran ${text},`;
        };
        const buttons = shown.map(([coro, ns]) =>
            el("button", { type: "button", onclick: () => blame(coro),
                           text: `${app.store.coroText(coro)}${ran(coro)} ${timeText(Math.round(ns))}` }));
        const more = keepers.length > shown.length ? [el("span", { class: "muted", text: `and ${keepers.length - shown.length} more` })] : [];
        return [el("div", { class: "toolbar keepers" }, el("span", { text: "While it was ready, its thread ran" }), ...buttons, ...more)];
    }

    /** @param {number} request */
    resourcesText(request) {
        const table = this.app.store.request, coros = table.coros[request];
        const sums = ["cpu", "preempted", "ready", "parked", "waiting", "blocked"].flatMap((name) => {
            const text = name === "cpu" ? "CPU" : name;
            return name === "cpu" || table[name][request] > 0 ? [`${text} ${timeText(table[name][request])}`] : [];
        });
        return `${sums.join(", ")}; longest slice ${timeText(table.longest[request])}. ` + (coros === 1 ? "One coroutine worked for it."
            : `${countText(coros)} coroutines worked for it, partly at the same time: these are resources, and do not add up to its latency.`);
    }

    /** @param {number} request */
    partsTable(request) {
        const { store } = this.app, latency = store.request.latency[request], parts = this.requests.parts(request);
        return sortedTable([
            textColumn("why", (part) => part.text + part.above), textColumn("coroutine", (part) => part.coro < 0 ? "" : store.coroText(part.coro)),
            timeColumn("time", (part) => part.ns),
            { title: "of latency", text: (part) => percentText(part.ns, latency), value: (part) => part.ns },
        ], parts.slice(0, 20), "", () => {}, { caption: "What its latency is made of", total: parts.length, limit: 20, fixed: true });
    }

    /**
     * Spans of a request: each below the one that it is in.
     * @param {number} request @returns {SpanLine[]}
     */
    spanLines(request) {
        const { span } = this.app.store, { first, rows } = this.requests.spans, own = rows.subarray(first[request], first[request + 1]);
        /** @type {Map<number, number[]>} */
        const below = new Map();
        const is = new Set(own);
        for (const row of own) {
            const parent = is.has(span.parent[row] - 1) ? span.parent[row] - 1 : -1;
            below.set(parent, [...below.get(parent) ?? [], row]);
        }
        /** @type {SpanLine[]} */
        const lines = [], todo = (below.get(-1) ?? []).map((row) => ({ span: row, level: 0 })).reverse();
        for (let line = todo.pop(); line; line = todo.pop()) {
            const level = line.level + 1;
            lines.push(line);
            todo.push(...(below.get(line.span) ?? []).map((row) => ({ span: row, level })).reverse());
        }
        return lines;
    }

    /** @param {number} request */
    spansTable(request) {
        const { span, names, request: table } = this.app.store, lines = this.spanLines(request);
        if (lines.length === 0)
            return el("p", { class: "muted", text: "None was recorded." });
        const time = (/** @type {string} */ title, /** @type {string} */ column) =>
            timeColumn(title, (/** @type {SpanLine} */ line) => span[column][line.span]);
        const name = (/** @type {SpanLine} */ line) => `${"\u2003".repeat(line.level)}${names[span.kind[line.span]]} ${names[span.name[line.span]]}` +
            `${span.flags[line.span] & 1 ? " (failed)" : ""}${span.flags[line.span] & 2 ? " (had not ended)" : ""}`;
        return sortedTable([
            textColumn("span", name), timeColumn("after", (line) => span.start[line.span] - table.start[request]),
            time("wall", "length"), time("CPU", "cpu"), time("ready", "ready"), time("parked", "parked"), time("blocked", "blocked"),
        ], lines, "", () => {}, { caption: "Each span is below the one that it is in; its times are those of its own coroutine", fixed: true });
    }
}
