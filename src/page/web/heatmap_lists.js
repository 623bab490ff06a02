// SPDX-License-Identifier: MIT
// Beside the heatmap: what had to wait longest in a part of the time, and the requests, or traces, that were running then.
"use strict";

/** @typedef {{coro: number, times: number, longest: number, sum: number}} HeatDelay */

/**
 * Coroutines that began to run in a part of the time, after a delay.
 * @param {Store} store @param {number} from @param {number} to ns @returns {HeatDelay[]}
 */
function delaysIn(store, from, to) {
    const index = activitiesOf(store), { activity } = store;
    /** @type {Map<number, HeatDelay>} */
    const found = new Map();
    for (let i = 0; i < index.count; i++) {
        const end = index.end[i];
        if (end < from || end >= to)
            continue;
        const ready = index.readyAt(i), coro = activity.coro[i], delay = end - ready;
        if (ready < 0)
            continue;
        const one = found.get(coro) ?? { coro, times: 0, longest: 0, sum: 0 };
        one.times++;
        one.longest = Math.max(one.longest, delay);
        one.sum += delay;
        found.set(coro, one);
    }
    return [...found.values()].sort((a, b) => b.longest - a.longest);
}

/** Requests that were running in a part of the time. @param {Store} store @param {number} from @param {number} to ns @returns {number[]} */
function requestsIn(store, from, to) {
    const { start, latency } = store.request, found = [];
    for (let i = 0; i < store.requestCount; i++)
        if (start[i] < to && start[i] + latency[i] > from)
            found.push(i);
    return found.sort((a, b) => latency[b] - latency[a]);
}

/**
 * Traces of what was active or waiting in a part of the time, and of how many coroutines.
 * @param {Store} store @param {number} from @param {number} to ns
 */
function tracesIn(store, from, to) {
    const index = activitiesOf(store), { activity } = store;
    /** @type {Map<number, Set<number>>} */
    const found = new Map();
    for (let i = 0; i < index.count; i++) {
        if (activity.trace[i] === 0 || activity.start[i] >= to || index.end[i] <= from)
            continue;
        const coros = found.get(activity.trace[i]);
        if (coros)
            coros.add(activity.coro[i]);
        else
            found.set(activity.trace[i], new Set([activity.coro[i]]));
    }
    return [...found].map(([trace, coros]) => ({ trace: trace - 1, coros: coros.size })).sort((a, b) => b.coros - a.coros);
}

class HeatLists {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.element = el("div", {});
        this.sorts = { delays: "", requests: "", traces: "" };
        this.key = "";
    }

    /** @param {number} from @param {number} to ns */
    show(from, to) {
        const key = JSON.stringify([from, to, this.sorts]);
        if (key === this.key)
            return;
        this.key = key;
        const when = `from ${timeText(from)} to ${timeText(to)}`, requests = requestsIn(this.app.store, from, to);
        this.element.replaceChildren(this.delayTable(delaysIn(this.app.store, from, to), when),
            requests.length > 0 ? this.requestTable(requests, when) : this.traceTable(tracesIn(this.app.store, from, to), when));
        this.again = () => this.show(from, to);
    }

    /** @param {"delays" | "requests" | "traces"} table */
    sorter(table) {
        return (/** @type {string} */ sort) => {
            this.sorts[table] = sort;
            this.again?.();
        };
    }

    /** @param {HeatDelay[]} rows @param {string} when */
    delayTable(rows, when) {
        const { store } = this.app;
        return sortedTable([
            { title: "Coroutine", left: true, text: (row) => store.coroText(row.coro), value: (row) => store.coroText(row.coro) },
            { title: "Longest", text: (row) => timeText(row.longest), value: (row) => row.longest, help: "its longest delay" },
            { title: "Sum", text: (row) => timeText(row.sum), value: (row) => row.sum, help: "of all its delays" },
            { title: "Times", text: (row) => countText(row.times), value: (row) => row.times },
        ], rows, this.sorts.delays, this.sorter("delays"), {
            caption: rows.length > 0 ? `Coroutines that began to run ${when}, by how long they had been ready. A click shows one in the timeline.`
                : `This file has no delay of a coroutine that began to run ${when}: short ones are counted, but not kept one by one.`,
            limit: 20, onChoose: (row) => this.app.set({ view: "timeline", row: `coro:${row.coro}` }) });
    }

    /** @param {number[]} rows @param {string} when */
    requestTable(rows, when) {
        const { request, head } = this.app.store;
        const endpointOf = (/** @type {number} */ i) => head.endpoints[request.endpoint[i]].text;
        const traceOf = (/** @type {number} */ i) => request.trace[i] > 0 ? head.traces[request.trace[i] - 1].slice(0, 8) : "";
        return sortedTable([
            { title: "Request", left: true, text: endpointOf, value: endpointOf },
            { title: "Latency", text: (i) => timeText(request.latency[i]), value: (i) => request.latency[i] },
            { title: "Ready", text: (i) => timeText(request.ready[i]), value: (i) => request.ready[i], help: "sum over its coroutines" },
            { title: "Trace", left: true, text: traceOf, value: traceOf },
        ], rows, this.sorts.requests, this.sorter("requests"), {
            caption: `Requests that were running ${when}. A click shows one in the timeline.`, limit: 20,
            onChoose: (i) => this.app.set({ view: "timeline", request: String(i) }) });
    }

    /** @param {{trace: number, coros: number}[]} rows @param {string} when */
    traceTable(rows, when) {
        const { head } = this.app.store;
        return sortedTable([
            { title: "Trace", left: true, text: (row) => head.traces[row.trace], value: (row) => head.traces[row.trace] },
            { title: "Coroutines", text: (row) => countText(row.coros), value: (row) => row.coros },
        ], rows, this.sorts.traces, this.sorter("traces"), {
            caption: rows.length > 0 ? `Traces that were there ${when}. A click shows one in the timeline.`
                : `No request and no trace was there ${when}.`,
            limit: 20,
            onChoose: (row) => this.app.set({ view: "timeline", trace: head.traces[row.trace] }) });
    }
}
