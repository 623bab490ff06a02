// SPDX-License-Identifier: MIT
// The rows of the timeline: which there are, in what order. A row is a thread, a coroutine or the head of a group.
"use strict";

const ROW = { head: 0, thread: 1, coro: 2 };

/**
 * Sort keys of coroutines: by the value in the selection, ascending.
 * @type {Record<string, (store: Store, coro: number) => number>}
 */
const TIMELINE_SORTS = {
    "Start": (store, coro) => activitiesOf(store).birthOf(coro),
    "CPU": (store, coro) => store.coro.cpu[coro],
    "Ready": (store, coro) => store.coro.ready[coro],
    "Parked": (store, coro) => store.coro.parked[coro] + store.coro.waiting[coro],
    "Longest slice": (store, coro) => store.coro.longest[coro],
};
const TIMELINE_GROUPS = { "": "not grouped", spawner: "by spawner", endpoint: "by endpoint" };

class TimelineRows {
    /** @param {Store} store */
    constructor(store) {
        this.store = store;
        /** @type {number[]} */
        this.kind = [];
        /** Number of the thread, the coroutine or the text. @type {number[]} */
        this.number = [];
        /** How far it is indented. @type {number[]} */
        this.depth = [];
        /** @type {string[]} */
        this.texts = [];
        /** Row of each coroutine; -1: it has none. */
        this.ofCoro = new Int32Array(store.coroCount).fill(-1);
        /** Coroutines that are not shown as nothing is known of when they ran. */
        this.silent = 0;
        this.coros = 0;
        this.threads = 0;
    }

    get count() {
        return this.kind.length;
    }

    /** @param {number} kind @param {number} number @param {number} depth */
    add(kind, number, depth) {
        if (kind === ROW.coro) {
            this.ofCoro[number] = this.kind.length;
            this.coros++;
        } else if (kind === ROW.thread) {
            this.threads++;
        }
        this.kind.push(kind);
        this.number.push(number);
        this.depth.push(depth);
    }

    /** @param {string} text */
    head(text) {
        this.add(ROW.head, this.texts.push(text) - 1, 0);
    }

    /** @param {number} row */
    textOf(row) {
        const { store } = this, number = this.number[row];
        return this.kind[row] === ROW.head ? this.texts[number]
            : this.kind[row] === ROW.thread ? `thread ${store.head.threads[number] || "without a name"}` : store.coroText(number);
    }
}

/** Coroutines that the filters take, one byte each. @param {Store} store @param {Selection} selection */
function timelineCoros(store, selection) {
    const all = [takenCoros, corosOfTrace, corosOfThread, corosOfRequests].map((marksOf) => marksOf(store, selection));
    return Uint8Array.from(store.coro.name, (_, coro) => Number(all.every((marks) => marks === null || marks[coro])));
}

/** @param {Store} store @param {Selection} selection @returns {Uint8Array | null} null: it asks for no trace */
function corosOfTrace(store, selection) {
    if (selection.trace === "")
        return null;
    const wanted = store.head.traces.indexOf(selection.trace) + 1, marks = new Uint8Array(store.coroCount);
    if (wanted === 0)
        return marks;
    for (const [table, plus] of /** @type {[Columns, number][]} */ ([[store.activity, 0], [store.label, 1], [store.span, 1]]))
        for (let i = 0; i < table.coro.length; i++)
            if (table.trace[i] === wanted && table.coro[i] >= plus)
                marks[table.coro[i] - plus] = 1;
    return marks;
}

/** @param {Store} store @param {Selection} selection @returns {Uint8Array | null} null: it asks for no thread */
function corosOfThread(store, selection) {
    if (selection.thread === "")
        return null;
    const wanted = store.head.threads.indexOf(selection.thread) + 1, marks = new Uint8Array(store.coroCount), { activity } = store;
    for (let i = 0; i < activity.coro.length && wanted > 0; i++)
        if (activity.thread[i] === wanted)
            marks[activity.coro[i]] = 1;
    return marks;
}

/**
 * Coroutines that worked for the chosen requests, endpoint or latencies, or for their traces.
 * @param {Store} store @param {Selection} selection @returns {Uint8Array | null} null: it asks for none
 */
function corosOfRequests(store, selection) {
    const { request, label, span, segment, activity, head } = store, marks = new Uint8Array(store.coroCount);
    const requested = requestTest(store, selection);
    if (!requested)
        return null;
    const wanted = numbersOf(selection.request), lasted = latencyTest(store, selection), traces = new Uint8Array(head.traces.length + 1);
    const takes = Uint8Array.from(request.endpoint, (endpoint, i) =>
        Number((!wanted || wanted.has(i)) && (selection.endpoint === "" || head.endpoints[endpoint].text === selection.endpoint) && lasted(i)));
    /** @type {(coro: number) => void} +1; 0: not known */
    const mark = (coro) => {
        if (coro > 0)
            marks[coro - 1] = 1;
    };
    takes.forEach((takesIt, i) => {
        if (takesIt) {
            mark(request.coro[i]);
            traces[request.trace[i]] = Number(request.trace[i] > 0);
        }
    });
    for (let i = 0; i < label.coro.length; i++)
        if (requested(i))
            mark(label.coro[i]);
    for (let i = 0; i < span.coro.length; i++)
        if (span.request[i] > 0 && takes[span.request[i] - 1])
            mark(span.coro[i]);
    for (let i = 0; i < segment.request.length; i++)
        if (takes[segment.request[i]])
            mark(segment.coro[i] + 1);
    for (let i = 0; i < activity.coro.length; i++)
        if (traces[activity.trace[i]])
            mark(activity.coro[i] + 1);
    return marks;
}

/** Endpoint of each coroutine, of the first request that it worked for, +1. @param {Store} store */
function endpointOfCoros(store) {
    const { request, label, span } = store, found = new Uint32Array(store.coroCount);
    for (const table of [span, label])
        for (let i = 0; i < table.request.length; i++)
            if (table.request[i] > 0 && table.coro[i] > 0)
                found[table.coro[i] - 1] ||= request.endpoint[table.request[i] - 1] + 1;
    for (let i = 0; i < request.coro.length; i++)
        if (request.coro[i] > 0)
            found[request.coro[i] - 1] ||= request.endpoint[i] + 1;
    return found;
}

/** The number of the one request that is chosen; -1: none, or several. @param {Store} store @param {Selection} selection */
function chosenRequest(store, selection) {
    const number = /^\d+$/.test(selection.request) ? Number(selection.request) : -1;
    return number < store.requestCount ? number : -1;
}

/** Segments of a request's critical path, in order of time. @param {Store} store @param {number} request @returns {number[]} */
function segmentsOf(store, request) {
    const { segment } = store, found = [];
    for (let i = 0; i < segment.request.length && request >= 0; i++)
        if (segment.request[i] === request)
            found.push(i);
    return found.sort((a, b) => segment.from[a] - segment.from[b]);
}

/**
 * All rows of a selection.
 * @param {Store} store @param {Selection} selection
 * @param {{from: number, to: number} | null} seen only coroutines that were there in this part of the time, ns
 * @returns {TimelineRows}
 */
function timelineRows(store, selection, seen) {
    const rows = new TimelineRows(store), request = chosenRequest(store, selection), taken = timelineCoros(store, selection);
    const path = [...new Set(segmentsOf(store, request).map((i) => store.segment.coro[i]))];
    if (path.length > 0)
        rows.head(`Critical path of request ${request + 1}`);
    for (const coro of path)
        rows.add(ROW.coro, coro, 0);
    addThreads(rows, selection, taken);
    const shown = [];
    for (const coro of sortedCoros(store, selection.sort)) {
        if (!taken[coro] || rows.ofCoro[coro] >= 0)
            continue;
        if (!hasHistory(store, coro))
            rows.silent++;
        else if (!seen || isThere(store, coro, seen.from, seen.to))
            shown.push(coro);
    }
    addCoros(rows, shown, selection.nest);
    return rows;
}

/** Whether there is anything to draw in a coroutine's row. @param {Store} store @param {number} coro */
function hasHistory(store, coro) {
    const index = activitiesOf(store);
    return index.first[coro] < index.last[coro] || index.spans.first[coro] < index.spans.first[coro + 1];
}

/** Whether a coroutine has an activity in a part of the time. @param {Store} store @param {number} coro @param {number} from @param {number} to ns */
function isThere(store, coro, from, to) {
    const index = activitiesOf(store), i = index.seek(coro, from);
    return i < index.last[coro] && store.activity.start[i] < to;
}

/**
 * Coroutines in the order of a sort key of TIMELINE_SORTS, "-" before it: descending.
 * @param {Store} store @param {string} sort @returns {Uint32Array}
 */
function sortedCoros(store, sort) {
    const down = sort.startsWith("-"), value = TIMELINE_SORTS[sort.replace(/^-/, "")] ?? TIMELINE_SORTS.Start;
    const values = Float64Array.from({ length: store.coroCount }, (_, coro) => value(store, coro) + 1);
    const order = orderOf(values);
    return down ? order.reverse() : order;
}

/** Add threads that a taken coroutine ran on. @param {TimelineRows} rows @param {Selection} selection @param {Uint8Array} taken */
function addThreads(rows, selection, taken) {
    const { store } = rows, { first, list } = activitiesOf(store).threads, shown = [];
    for (let thread = 0; thread + 1 < first.length; thread++) {
        if (selection.thread !== "" && store.head.threads[thread] !== selection.thread)
            continue;
        for (let i = first[thread]; i < first[thread + 1]; i++) {
            if (!taken[store.activity.coro[list[i]]])
                continue;
            shown.push(thread);
            break;
        }
    }
    if (shown.length > 0)
        rows.head(`Threads (${countText(shown.length)}): which coroutine ran there`);
    for (const thread of shown)
        rows.add(ROW.thread, thread, 0);
}

/** @param {TimelineRows} rows @param {number[]} coros in order @param {string} group */
function addCoros(rows, coros, group) {
    if (group === "endpoint")
        return addByEndpoint(rows, coros);
    if (coros.length > 0)
        rows.head(`Coroutines (${countText(coros.length)})`);
    if (group === "spawner")
        return addBySpawner(rows, coros);
    for (const coro of coros)
        rows.add(ROW.coro, coro, 0);
}

/** @param {TimelineRows} rows @param {number[]} coros */
function addByEndpoint(rows, coros) {
    const endpoints = endpointOfCoros(rows.store);
    /** @type {Map<number, number[]>} */
    const groups = new Map();
    for (const coro of coros) {
        const members = groups.get(endpoints[coro]);
        if (members)
            members.push(coro);
        else
            groups.set(endpoints[coro], [coro]);
    }
    for (const [endpoint, members] of [...groups].sort((a, b) => Number(a[0] === 0) - Number(b[0] === 0))) {
        rows.head(`${endpoint > 0 ? rows.store.head.endpoints[endpoint - 1].text : "of no request"} (${countText(members.length)})`);
        for (const coro of members)
            rows.add(ROW.coro, coro, 0);
    }
}

/** Each coroutine below the one that spawned it. @param {TimelineRows} rows @param {number[]} coros */
function addBySpawner(rows, coros) {
    const { parent } = rows.store.coro, shown = new Uint8Array(rows.store.coroCount), wants = new Uint32Array(coros.length);
    for (const coro of coros)
        shown[coro] = 1;
    coros.forEach((coro, i) => {
        wants[i] = parent[coro] > 0 && shown[parent[coro] - 1] && parent[coro] - 1 !== coro ? parent[coro] : 0;
    });
    const below = groupsOf(wants, rows.store.coroCount);
    const todo = coros.map((coro, i) => ({ coro, depth: 0, root: wants[i] === 0 })).filter((one) => one.root).reverse();
    for (let one = todo.pop(); one; one = todo.pop()) {
        rows.add(ROW.coro, one.coro, one.depth);
        for (let i = below.first[one.coro + 1] - 1; i >= below.first[one.coro]; i--)
            todo.push({ coro: coros[below.list[i]], depth: one.depth + 1, root: false });
    }
}
