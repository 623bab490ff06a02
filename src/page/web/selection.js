// SPDX-License-Identifier: MIT
// The selected part of the data: the weight, the filters and how stacks are put together. The URL's hash holds it, so that a link reopens
// the view.
"use strict";

/**
 * @typedef {object} Weight
 * @property {string} name
 * @property {string} text
 * @property {string} what one sentence
 * @property {number[]} states
 */

/** @type {Record<string, Weight>} */
const WEIGHTS = {
    cpu: { name: "cpu", text: "CPU", what: "time on the CPU", states: [STATE.running] },
    wall: { name: "wall", text: "Wall", what: "wall clock time: on the CPU, ready, parked and blocked",
            states: [0, 1, 2, 3, 4, 5, 6, 7, 8] },
    parked: { name: "parked", text: "Parked", what: "time parked: waiting for something to happen", states: [STATE.parked, STATE.waiting] },
    ready: { name: "ready", text: "Ready", what: "time ready to run, but not running, also in the queue of a pool of threads",
             states: [STATE.ready, STATE.preempted, STATE.queued] },
    blocked: { name: "blocked", text: "Blocked", what: "time for which a coroutine held its thread asleep, or at the interpreter's lock",
               states: [STATE.blocked, STATE.gil, STATE.lock] },
    delay: { name: "delay", text: "Victims' time", what: "time for which others were ready and had to wait, at the stacks that kept them waiting",
             states: [0, 1, 2, 3, 4, 5, 6, 7, 8] },
    path: { name: "path", text: "Critical path", what: "latency of requests, each nanosecond at the stack that it was spent in",
            states: [0, 1, 2, 3, 4, 5, 6, 7, 8] },
};

/** How each key of a selection stands in the URL's hash. */
const SELECTION_DEFAULTS = {
    view: "flame",     // which tab
    weight: "",        // a key of WEIGHTS; "" = the file's
    coro: "",          // numbers of coroutines in the table, "3,7"
    name: "",          // name of coroutines
    entry: "",         // first function of coroutines
    spawn: "",         // "file:line function" at which coroutines were spawned
    trace: "",         // 32 hex digits
    endpoint: "",      // text of an endpoint
    request: "",       // numbers of requests in the table, "3,7"
    thread: "",        // name of a thread
    state: "",         // numbers, "2,3"
    from: "", to: "",  // ns: a part of the time, in whole ticks
    latency: "",       // ns, "FIRST,END": requests that took that long
    search: "",        // regular expression
    focus: "",         // regular expression: stacks with such a frame
    hide: "",          // regular expression: frames taken out
    hideModule: "",    // text: frames of this library taken out
    native: "",        // "fold": native frames below a language's frames are left out
    collapse: "",      // "1": recursion is one frame
    root: "",          // "coroutine", "entry", "trace", "thread", "endpoint"
    stitch: "",        // "1": stacks stand below the stack that spawned their coroutine
    invert: "",        // "1": callers below callees
    icicle: "",        // "1": root at the top
    sandwich: "",      // name of a function
    zoom: "",          // names of the frames from the root, JSON
    lens: "",          // FROM,TO: the part of the zoomed box's width that the flame graph shows; "" = all
    side: "",          // of a diff: "", "base", "file", "both"
    norm: "",          // of a diff: "1" = both sides as shares of their totals
    sight: "",         // ns, "FROM,TO": the part of the time that the timeline shows; "" = all
    lanes: "",         // of the stack chart: "" = coroutines, "thread"
    nest: "",          // rows of the timeline below their "spawner", or their "endpoint"
    sort: "",          // column of the view's table, "-" before it: descending
    row: "",           // what is chosen in the view's table
    tail: "",          // which requests are the slowest: per cent, "" = 1
    group: "",         // what blame is summed up by: "" = names of coroutines, "coroutine", "endpoint"
};

/** @typedef {typeof SELECTION_DEFAULTS} Selection */

/** Names of the frames from the root to the zoomed one, each perhaps with its place behind a tab. @param {Selection} selection @returns {string[]} */
function zoomNames({ zoom }) {
    try {
        const names = zoom === "" ? [] : JSON.parse(zoom);
        return Array.isArray(names) ? names.map(String) : [];
    } catch {
        return [];
    }
}

/** @param {string} hash @returns {Selection} */
function selectionFromHash(hash) {
    const selection = { ...SELECTION_DEFAULTS };
    for (const [key, value] of new URLSearchParams(hash.replace(/^#/, "")))
        if (key in selection)
            /** @type {any} */ (selection)[key] = value;
    if (!(selection.weight in WEIGHTS))
        selection.weight = "";
    return selection;
}

/** @param {Selection} selection @returns {string} */
function selectionToHash(selection) {
    const entries = Object.entries(selection).filter(([key, value]) => value !== /** @type {any} */ (SELECTION_DEFAULTS)[key]);
    return entries.length > 0 ? "#" + new URLSearchParams(entries).toString() : "";
}

/** "3,7" as a set; null where it is empty. @param {string} text @returns {Set<number> | null} */
function numbersOf(text) {
    return text === "" ? null : new Set(text.split(",").map(Number));
}

/** A regular expression of the user's; null where there is none, false where it is wrong. @param {string} text */
function regexOf(text) {
    if (text === "")
        return null;
    try {
        return new RegExp(text, "i");
    } catch {
        return false;
    }
}

/**
 * The rows of a selection: one byte a label, one a state, and a range of ticks.
 * @typedef {object} Filter
 * @property {Uint8Array} labels by label: 1 = taken
 * @property {Uint8Array} states by state
 * @property {number} firstTick first tick that is taken, +1 as in the rows
 * @property {number} lastTick last one
 * @property {boolean} timed whether ticks matter
 */

/** "file:line function" of the frame that spawned a coroutine; "" where it is not known. @param {Store} store @param {number} coro */
function spawnSiteOf(store, coro) {
    const node = store.coro.spawn[coro];
    if (node === 0)
        return "";
    const frame = store.node.frame[node - 1];
    return `${store.nameOf(frame)} ${store.placeOf(frame)}`.trim();
}

/** Coroutines that a selection takes, one byte each; null: all of them. @param {Store} store @param {Selection} selection */
function takenCoros(store, selection) {
    const { coro, head } = store, coros = numbersOf(selection.coro);
    if (!coros && selection.name === "" && selection.entry === "" && selection.spawn === "")
        return null;
    const taken = new Uint8Array(store.coroCount);
    for (let i = 0; i < store.coroCount; i++)
        taken[i] = Number((!coros || coros.has(i)) && (selection.name === "" || head.coroutines[coro.name[i]] === selection.name) &&
            (selection.entry === "" || (coro.entry[i] > 0 && store.names[coro.entry[i] - 1] === selection.entry)) &&
            (selection.spawn === "" || spawnSiteOf(store, i) === selection.spawn));
    return taken;
}

/** Whether a request took as long as a selection says. @param {Store} store @param {Selection} selection @returns {(request: number) => boolean} */
function latencyTest(store, selection) {
    const [first, end] = selection.latency.split(",").map(Number), { latency } = store.request;
    return selection.latency === "" ? () => true : (request) => latency[request] >= first && latency[request] < end;
}

/**
 * Whether what a label stands for is of a request that a selection takes; null: no request is chosen. Rows of critical paths know
 * their request; of others, their trace tells: they are taken if any request of it is.
 * @param {Store} store @param {Selection} selection @returns {((label: number) => boolean) | null}
 */
function requestTest(store, selection) {
    const { request, label, head } = store, requests = numbersOf(selection.request), lasted = latencyTest(store, selection);
    if (!requests && selection.endpoint === "" && selection.latency === "")
        return null;
    const endpoint = head.endpoints.findIndex((one) => one.text === selection.endpoint);
    const taken = new Uint8Array(store.requestCount), traces = new Uint8Array(head.traces.length + 1);
    for (let i = 0; i < taken.length; i++)
        if ((!requests || requests.has(i)) && (selection.endpoint === "" || request.endpoint[i] === endpoint) && lasted(i))
            taken[i] = traces[request.trace[i]] = 1;
    traces[0] = 0;
    return (i) => label.request[i] > 0 ? taken[label.request[i] - 1] === 1 : traces[label.trace[i]] === 1;
}

/** @param {Store} store @param {Selection} selection @param {string} [weight] @returns {Filter} */
function filterOf(store, selection, weight = selection.weight || store.head.weight) {
    const { label, head } = store, count = label.coro.length;
    const coroTaken = takenCoros(store, selection), requested = requestTest(store, selection);
    const trace = selection.trace === "" ? -1 : head.traces.indexOf(selection.trace) + 1;
    const thread = selection.thread === "" ? -1 : head.threads.indexOf(selection.thread) + 1;
    const labels = new Uint8Array(count);
    for (let i = 0; i < count; i++) {
        if (coroTaken && (label.coro[i] === 0 || !coroTaken[label.coro[i] - 1]))
            continue;
        if ((trace >= 0 && (trace === 0 || label.trace[i] !== trace)) || (thread >= 0 && (thread === 0 || label.thread[i] !== thread)))
            continue;
        labels[i] = Number(!requested || requested(i));
    }
    const states = new Uint8Array(head.states.length), chosen = numbersOf(selection.state);
    for (const state of WEIGHTS[weight].states)
        states[state] = Number(!chosen || chosen.has(state));
    const timed = head.tick_ns > 0 && (selection.from !== "" || selection.to !== "");
    return {
        labels, states, timed,
        firstTick: timed ? Math.floor(Number(selection.from || 0) / head.tick_ns) + 1 : 0,
        lastTick: timed && selection.to !== "" ? Math.max(Math.ceil(Number(selection.to) / head.tick_ns), 1) : 0xffffffff,
    };
}
