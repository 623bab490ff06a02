// SPDX-License-Identifier: MIT
// Why was this request slow? Endpoints and where their slowest requests differ, latencies, requests, and the chosen one.
"use strict";

/** @typedef {Endpoint & {tail: Tail | null, slow: number}} EndpointLine slow: how many requests are its slowest */

const TAILS = ["1", "5", "10", "25"];

/**
 * "+38 ms", "-2 µs".
 * @param {number} ns
 */
function differenceText(ns) {
    return `${ns > 0 ? "+" : ""}${timeText(Math.round(ns))}`;
}

class RequestsView {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.key = "requests";
        this.title = "Requests";
        this.letter = "r";
        this.requests = new Requests(app.store);
        this.comparison = new Comparison(this.requests);
        this.one = new OneRequest(app, this.requests);
        this.compared = new ComparedRequests(app, this.comparison);
        this.chart = new LatencyChart(app);
        this.endpoints = el("section", { "aria-label": "endpoints" });
        this.table = el("section", { "aria-label": "requests" });
        this.heading = el("h2", {});
        this.both = el("div", { class: "requests-chosen" }, this.table, this.one.element);
        this.element = el("div", { class: "requests" }, this.endpoints, this.heading, this.chart.element, this.both, this.compared.element);
        this.endpointSort = "-total";
        /** @type {number[]} of the table */
        this.lines = [];
        /** @type {{key: string, wide: string, all: number[], own: number[], shown: number[], ns: Float64Array} | undefined} */
        this.kept = undefined;
        /** @type {Record<string, [string, () => void]>} */
        this.keys = {
            j: ["next request of the table", () => this.step(1)],
            k: ["request before it", () => this.step(-1)],
        };
        /** @type {Record<string, string>} what each part was made from: what is the same stays */
        this.made = {};
    }

    /** Requests that the filters take: all of them, and those of the endpoint, with and without the range of latencies. */
    model() {
        const { trace, coro, name, entry, spawn, endpoint, from, to, latency, tail } = this.app.selection;
        const wide = JSON.stringify([trace, coro, name, entry, spawn, from, to]), key = JSON.stringify([wide, endpoint, latency]);
        if (this.kept?.key !== key) {
            const all = this.requests.taken(this.app.selection, false, false), { endpoint: of } = this.app.store.request;
            const number = this.app.store.head.endpoints.findIndex((one) => one.text === endpoint);
            const own = endpoint === "" ? all : all.filter((i) => of[i] === number), lasted = latencyTest(this.app.store, this.app.selection);
            const ns = Float64Array.from(own, (i) => this.app.store.request.latency[i]).sort();
            this.kept = { key, wide, all, own, ns, shown: latency === "" ? own : own.filter(lasted) };
        }
        return { ...this.kept, percent: Number(tail) > 0 ? Number(tail) : 1 };
    }

    sentence() {
        const { own, shown } = this.model(), { endpoint, latency } = this.app.selection;
        const { p50_ns: half, p99_ns: most } = this.requests.figures(shown);
        const count = countText(shown.length) + (latency === "" ? "" : ` of ${countText(own.length)}`) + (endpoint === "" ? "" : ` of ${endpoint}`);
        return `Requests and their latency, the time between beginning and end: ${count}, half of them within ${timeText(half)}, ` +
            `99 % within ${timeText(most)}. Choose one to see why it took that long.`;
    }

    empty() {
        if (this.app.store.requestCount === 0)
            return "This file has no requests: nothing said where one begins and ends. A root span is a request: prof_span_begin() in C and C++, " +
                "greenprof.span() or greenprof.wsgi.Tracing() in Python. Without them, look at coroutines (flame graph, timeline).";
        return this.model().shown.length > 0 ? null : "No request is left by the filters: take one of them away, or undo it (u).";
    }

    draw() {
        const none = this.app.store.requestCount === 0, width = Math.max(this.element.clientWidth || this.app.root.clientWidth, 220);
        for (const part of [this.endpoints, this.heading, this.chart.element, this.both, this.compared.element])
            part.hidden = none;
        if (none)
            return;
        const model = this.model(), { endpoint } = this.app.selection;
        this.once("endpoints", `${model.wide} ${model.percent} ${endpoint} ${this.endpointSort}`, () => this.drawEndpoints(model));
        this.heading.textContent = `Latencies${endpoint === "" ? "" : `: ${endpoint}`}`;
        this.chart.draw(model.ns, width);
        this.both.classList.toggle("two", this.chosen() >= 0);
        this.one.draw(this.chosen());
        this.once("table", `${model.key} ${this.sort}`, () => this.drawTable(model.shown));
        this.markChosen();
        const focus = this.focus(model.own), everything = model.all.length === this.requests.count;
        const whole = everything ? this.app.store.head.endpoints[focus]?.count : undefined;
        this.compared.draw(model.own, focus, model.percent, width, whole);
    }

    /** @param {string} part @param {string} key @param {() => void} make */
    once(part, key, make) {
        if (this.made[part] !== key)
            make();
        this.made[part] = key;
    }

    /** The chosen request, -1 = none. */
    chosen() {
        const { request, row } = this.app.selection, numbers = numbersOf(request);
        const number = !numbers ? -1 : row !== "" && numbers.has(Number(row)) ? Number(row) : numbers.size === 1 ? Number(request) : -1;
        return Number.isInteger(number) && number < this.requests.count ? Math.max(number, -1) : -1;
    }

    /** @param {number} request */
    choose(request) {
        const text = String(request);
        this.app.set(request < 0 || this.chosen() === request ? { request: "", row: "" } : { request: text, row: text });
        if (this.chosen() >= 0)
            this.one.element.scrollIntoView({ block: "start" }); // else the answer lies below what is in sight
    }

    /** @param {number} step */
    step(step) {
        const lines = this.lines, at = lines.indexOf(this.chosen());
        const next = lines[at < 0 ? 0 : Math.min(Math.max(at + step, 0), lines.length - 1)];
        if (next !== undefined && next !== this.chosen())
            this.choose(next);
    }

    /**
     * Endpoint whose requests are compared: the filter's, the chosen request's, or the one that took most time.
     * @param {number[]} own
     */
    focus(own) {
        const { request, head } = this.app.store, chosen = this.chosen(), sums = new Float64Array(head.endpoints.length);
        if (this.app.selection.endpoint !== "" && own.length > 0)
            return request.endpoint[own[0]];
        if (chosen >= 0)
            return request.endpoint[chosen];
        for (const i of own)
            sums[request.endpoint[i]] += request.latency[i];
        return sums.indexOf(Math.max(...sums));
    }

    /** @param {ReturnType<RequestsView["model"]>} model @returns {EndpointLine[]} */
    endpointLines(model) {
        const { head, request } = this.app.store, everything = model.all.length === this.requests.count;
        const groups = groupRows(head.endpoints.length, model.all.length, (i) => request.endpoint[model.all[i]]);
        return head.endpoints.flatMap((endpoint, i) => {
            const own = Array.from(groups.rows.subarray(groups.first[i], groups.first[i + 1]), (row) => model.all[row]);
            if (own.length === 0 && !everything)
                return [];
            const sides = this.comparison.split(own, model.percent, everything ? endpoint.count : own.length);
            return [{ ...(everything ? endpoint : this.requests.figures(own)), text: endpoint.text, slow: sides?.slow.length ?? 0,
                      tail: sides && this.comparison.tail(sides) }];
        });
    }

    /** @param {EndpointLine} line @param {number} percent */
    tailText(line, percent) {
        const { tail, slow } = line;
        if (!tail)
            return slow > 0 ? "nothing that the slowest spend more time on" : "too few requests to compare";
        return `slowest ${percent} % (${countText(slow)}): ${differenceText(tail.slow - tail.rest)} ${tail.text}${tail.above}: ` +
            `${percentText(tail.slowShare, 1)} of their latency, ${percentText(tail.restShare, 1)} of the rest's`;
    }

    /** @param {ReturnType<RequestsView["model"]>} model */
    drawEndpoints(model) {
        const { app } = this, { percent } = model;
        if (this.linesKey !== `${model.wide} ${percent}`)
            this.endpointRows = this.endpointLines(model);
        this.linesKey = `${model.wide} ${percent}`;
        const rows = this.endpointRows ?? [];
        const table = sortedTable([
            textColumn("endpoint", (line) => line.text), countColumn("count", (line) => line.count), countColumn("failed", (line) => line.failed),
            timeColumn("p50", (line) => line.p50_ns), timeColumn("p90", (line) => line.p90_ns), timeColumn("p99", (line) => line.p99_ns),
            timeColumn("max", (line) => line.max_ns), timeColumn("total", (line) => line.total_ns),
            textColumn("where the tail differs", (line) => this.tailText(line, percent), (line) => line.tail ? line.tail.slow - line.tail.rest : 0),
        ], rows, this.endpointSort, (sort) => {
            this.endpointSort = sort;
            this.draw();
        }, { caption: "Endpoints: a click shows the requests of one only", chosen: (line) => line.text === app.selection.endpoint,
             onChoose: (line) => app.set({ endpoint: line.text === app.selection.endpoint ? "" : line.text }) });
        swapContent(this.endpoints, el("h2", { text: "Endpoints" }), table);
    }

    get sort() {
        const { sort } = this.app.selection;
        return this.columns().some((column) => column.title === sort.replace(/^-/, "")) ? sort : "-latency";
    }

    /** @returns {Column<number>[]} of requests by their numbers */
    columns() {
        const { request, head } = this.app.store, sum = "sum over its coroutines";
        const time = (/** @type {string} */ title, /** @type {string} */ column, /** @type {string} */ help) =>
            timeColumn(title, (/** @type {number} */ i) => request[column][i], help);
        const flags = (/** @type {number} */ i) => [[REQUEST.about, "about"], [REQUEST.cut, "cut"], [REQUEST.failed, "failed"]]
            .flatMap(([flag, text]) => request.flags[i] & Number(flag) ? [text] : []).join(", ");
        const endpoint = (/** @type {number} */ i) => head.endpoints[request.endpoint[i]]?.text ?? "";
        return [
            { title: "request", text: (i) => String(i + 1), value: (i) => i }, textColumn("of endpoint", endpoint),
            time("start", "start", "since the start of the capture"), time("latency", "latency", "time between its beginning and its end"),
            time("CPU", "cpu", sum), time("ready", "ready", sum), time("parked", "parked", sum), time("blocked", "blocked", sum),
            time("longest slice", "longest", "of any of its coroutines"), countColumn("coroutines", (i) => request.coros[i]),
            { ...textColumn("notes", flags), help: "about: its beginning and end are about right only; cut: it had not ended; failed" },
        ];
    }

    /**
     * The first rows in the order of the table.
     * @param {number[]} shown @param {number} limit
     */
    firstRows(shown, limit) {
        const { sort } = this, down = sort.startsWith("-"), column = this.columns().find((one) => one.title === sort.replace(/^-/, ""));
        const value = column?.value ?? ((i) => i);
        let rows = shown;
        if (shown.length > 4 * limit && typeof value(shown[0]) === "number") { // only what can be among the first is put in order
            const values = Float64Array.from(shown, (i) => Number(value(i))), edges = values.slice().sort();
            const edge = down ? edges[edges.length - limit] : edges[limit - 1];
            rows = shown.filter((_, i) => down ? values[i] >= edge : values[i] <= edge);
        }
        return [...rows].sort((a, b) => {
            const x = value(a), y = value(b), order = x < y ? -1 : x > y ? 1 : 0;
            return (down ? -order : order) || a - b;
        }).slice(0, limit);
    }

    /** @param {number[]} shown */
    drawTable(shown) {
        const limit = 200, { app } = this;
        this.lines = this.firstRows(shown, limit);
        const table = sortedTable(this.columns(), this.lines, this.sort, (sort) => app.set({ sort }),
            { limit, total: shown.length, caption: "Latency is that of the request; CPU, ready, parked and blocked are sums over its coroutines",
              onChoose: (i) => this.choose(i) });
        swapContent(this.table, el("h2", { text: "Requests" }), table);
    }

    /** The chosen row; the table is not made anew for it. */
    markChosen() {
        const chosen = this.chosen();
        this.table.querySelectorAll("tbody tr").forEach((row, i) => {
            const is = this.lines[i] === chosen;
            row.classList.toggle("chosen", is);
            row.setAttribute("aria-selected", String(is));
        });
    }
}

VIEWS.push((app) => new RequestsView(app));
