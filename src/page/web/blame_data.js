// SPDX-License-Identifier: MIT
// Causes of waits, as data: delays by long slices, waits by their wakers, waits that nothing ended.
"use strict";

/**
 * from, to: groups; ns. ran: what kept the thread, a node for each function
 * @typedef {{from: number, to: number, total: number, longest: number, count: number, ran: Map<number, {node: number, ns: number}>}} DelayPair
 */
/** @typedef {{from: number, to: number, count: number, parked: number, ready: number, longest: number, unknown: number}} WakePair unknown: waits */
/** @typedef {{coro: number, since: number, wait: number, state: string}} LastWait ns */

/** Coroutines, their names or the endpoints that they worked for, as numbers with texts. */
class BlameGroups {
    /** @param {Store} store @param {string} kind selection.group */
    constructor(store, kind) {
        const { coro, head } = store;
        this.store = store;
        this.kind = kind;
        this.none = head.endpoints.length;
        this.byTrace = groupRows(head.traces.length, store.requestCount, (row) => store.request.trace[row] - 1);
        this.texts = kind === "endpoint" ? [...head.endpoints.map((one) => one.text), "no request"] : kind === "coroutine" ? [] : head.coroutines;
        this.names = coro.name;
    }

    /**
     * Group of a coroutine that works for a trace at a moment.
     * @param {number} coro @param {number} trace +1 @param {number} at ns
     */
    of(coro, trace, at) {
        if (this.kind === "endpoint")
            return this.endpointOf(trace, at);
        return this.kind === "coroutine" ? coro : this.names[coro];
    }

    /** @param {number} group */
    text(group) {
        return this.kind === "coroutine" ? this.store.coroText(group) : this.texts[group] || "no name";
    }

    /**
     * Endpoint of the trace's request that was open then, else of its first one.
     * @param {number} trace +1 @param {number} at ns
     */
    endpointOf(trace, at) {
        const { request } = this.store, { first, rows } = this.byTrace;
        const own = trace > 0 ? [...rows.subarray(first[trace - 1], first[trace])] : [];
        const found = own.find((i) => request.start[i] <= at && at < request.start[i] + request.latency[i]) ?? own[0];
        return found === undefined ? this.none : request.endpoint[found];
    }
}

/** The code that a coroutine held its thread in, by samples in the order of time; where others waited for it, by those waits. */
class RanCode {
    /** @param {Store} store */
    constructor(store) {
        const held = [STATE.running, STATE.preempted, STATE.blocked, STATE.gil, STATE.lock];
        this.store = store;
        this.sides = [store.delays, store.rows].map((facts) => ({ facts, by: groupsOf(
            Uint32Array.from(facts.label, (label, i) => facts === store.delays || held.includes(facts.state[i]) ? store.label.coro[label] : 0),
            store.coroCount, orderOf(Float64Array.from(facts.tick))) }));
    }

    /** @param {Store} store @returns {RanCode} */
    static of(store) {
        let found = RanCode.kept.get(store);
        if (!found)
            RanCode.kept.set(store, found = new RanCode(store));
        return found;
    }

    /** Where it was most of a time, a function's node; 0 = no sample tells. @param {number} coro @param {number} from @param {number} to ns */
    node(coro, from, to) {
        const { store } = this, tick = store.head.tick_ns, whole = from <= 0 && to === Infinity;
        for (const { facts, by } of coro >= 0 && (whole || tick > 0) ? this.sides : []) {
            /** @type {Map<number, {node: number, ns: number}>} by function */
            const sums = new Map(), last = by.first[coro + 1];
            const first = whole ? by.first[coro] : firstAbove((i) => facts.tick[by.list[i]] * tick, by.first[coro], last, from);
            for (let i = first; i < last && (whole || (facts.tick[by.list[i]] - 1) * tick < to); i++) {
                const node = store.functionNode(facts.node[by.list[i]]);
                if (node > 0)
                    addTo(sums, store.functionOf[store.node.frame[node]], node, facts.weight[by.list[i]]);
            }
            if (sums.size > 0)
                return mostIn(sums);
        }
        return 0;
    }
}

/** @type {WeakMap<Store, RanCode>} */
RanCode.kept = new WeakMap();

/** @param {Map<number, {node: number, ns: number}>} sums @param {number} key @param {number} node @param {number} ns */
function addTo(sums, key, node, ns) {
    const sum = sums.get(key);
    if (sum)
        sum.ns += ns;
    else
        sums.set(key, { node, ns });
}

/** The node with the largest sum. @param {Map<number, {node: number, ns: number}>} sums */
function mostIn(sums) {
    return [...sums.values()].reduce((most, one) => one.ns > most.ns ? one : most, { node: 0, ns: -1 }).node;
}

class Blame {
    /** @param {Store} store */
    constructor(store) {
        const { activity, victim, hog } = store;
        this.store = store;
        this.victims = groupRows(hog.coro.length, victim.hog.length, (row) => victim.hog[row]);
        this.activities = groupRows(store.coroCount, activity.coro.length, (row) => activity.coro[row]);
        /** By long slice: node of what it ran, see ranIn(). @type {number[]} */
        this.ran = [];
        this.end = store.head.duration_ns;
        for (let i = 0; i < activity.coro.length; i++)
            this.end = Math.max(this.end, activity.start[i] + activity.active[i] + activity.wait[i]);
    }

    /** The function that a long slice ran most of its time: its node, 0 = not known. @param {number} i */
    ranIn(i) {
        const { hog } = this.store;
        return this.ran[i] ??= RanCode.of(this.store).node(hog.coro[i], hog.start[i], hog.start[i] + hog.length[i]);
    }

    /**
     * Whether a selection takes what a coroutine does for a trace at a time: by coroutine, trace, request and endpoint.
     * @param {Selection} selection @returns {(coro: number, trace: number, from: number, to: number) => boolean} trace: +1
     */
    test(selection) {
        const { head, request } = this.store, coros = takenCoros(this.store, selection), requests = numbersOf(selection.request);
        const trace = selection.trace === "" ? -1 : head.traces.indexOf(selection.trace) + 1 || -2;
        const endpoint = selection.endpoint === "" ? -1 : head.endpoints.findIndex((one) => one.text === selection.endpoint);
        const lasted = latencyTest(this.store, selection), byRequest = requests !== null || selection.endpoint !== "" || selection.latency !== "";
        const groups = byRequest ? groupRows(head.traces.length, this.store.requestCount, (row) => request.trace[row] - 1) : null;
        const takes = (/** @type {number} */ i, /** @type {number} */ from, /** @type {number} */ to) =>
            request.start[i] < to && request.start[i] + request.latency[i] > from && (!requests || requests.has(i)) &&
            (selection.endpoint === "" || request.endpoint[i] === endpoint) && lasted(i);
        return (coro, of, from, to) => (!coros || coros[coro] === 1) && (trace === -1 || of === trace) &&
            (!groups || (of > 0 && groups.rows.subarray(groups.first[of - 1], groups.first[of]).some((i) => takes(i, from, to))));
    }

    /**
     * Whether a selection takes a time, also in part.
     * @param {Selection} selection @returns {(from: number, to: number) => boolean}
     */
    during(selection) {
        const first = Number(selection.from || 0), end = selection.to === "" ? Infinity : Number(selection.to);
        return (from, to) => from < end && to >= first;
    }

    /**
     * Long slices that a selection takes, each with its victims: where it takes the slice's own coroutine, all of them.
     * @param {Selection} selection @returns {{hog: number, victims: number[]}[]}
     */
    slices(selection) {
        const { hog, victim, head } = this.store, { first, rows } = this.victims, found = [];
        const takes = this.test(selection), during = this.during(selection);
        const thread = selection.thread === "" ? -1 : head.threads.indexOf(selection.thread) + 1 || -2;
        for (let i = 0; i < hog.coro.length; i++) {
            const from = hog.start[i], to = from + hog.length[i];
            if (!during(from, to) || (thread !== -1 && hog.thread[i] !== thread))
                continue;
            const own = takes(hog.coro[i], hog.trace[i], from, to);
            const victims = [...rows.subarray(first[i], first[i + 1])].filter((row) => own || takes(victim.coro[row], victim.trace[row], from, to));
            if (own || victims.length > 0)
                found.push({ hog: i, victims });
        }
        return found;
    }

    /**
     * Delays by what kept the thread and what had to wait, the longest sum first.
     * @param {{hog: number, victims: number[]}[]} slices @param {BlameGroups} groups @returns {DelayPair[]}
     */
    pairs(slices, groups) {
        const { hog, victim } = this.store;
        /** @type {Map<number, DelayPair>} */
        const pairs = new Map();
        for (const slice of slices) {
            const at = hog.start[slice.hog], from = groups.of(hog.coro[slice.hog], hog.trace[slice.hog], at);
            const ran = this.ranIn(slice.hog);
            for (const row of slice.victims) {
                const to = groups.of(victim.coro[row], victim.trace[row], at), key = from * 0x400000 + to, delay = victim.delay[row];
                const pair = pairs.get(key) ?? { from, to, total: 0, longest: 0, count: 0, ran: new Map() };
                pair.total += delay;
                pair.longest = Math.max(pair.longest, delay);
                pair.count++;
                addTo(pair.ran, this.store.functionOf[this.store.node.frame[ran]], ran, delay);
                pairs.set(key, pair);
            }
        }
        return [...pairs.values()].sort((a, b) => b.total - a.total);
    }

    /**
     * Trace that a coroutine worked for at a moment, +1.
     * @param {number} coro @param {number} at ns
     */
    traceAt(coro, at) {
        const { activity } = this.store, { first, rows } = this.activities;
        const next = firstAbove((i) => activity.start[rows[i]], first[coro], first[coro + 1], at);
        return next > first[coro] ? activity.trace[rows[next - 1]] : 0;
    }

    /**
     * Waits by what ended them, the longest sum first.
     * @param {Selection} selection @param {BlameGroups} groups @returns {WakePair[]}
     */
    wakes(selection, groups) {
        const { activity } = this.store, takes = this.test(selection), during = this.during(selection);
        /** @type {Map<number, WakePair>} */
        const pairs = new Map();
        for (let i = 0; i < activity.coro.length; i++) {
            const waker = activity.waker[i] - 1, coro = activity.coro[i], left = activity.start[i] + activity.active[i], wait = activity.wait[i];
            if (waker < 0 || wait === 0 || !during(left, left + wait))
                continue;
            const known = activity.ready[i] > 0, ready = known ? activity.start[i] + activity.ready[i] - 1 : left + wait;
            const wakerTrace = this.traceAt(waker, ready);
            if (!takes(coro, activity.trace[i], left, left + wait) && !takes(waker, wakerTrace, left, left + wait))
                continue;
            const from = groups.of(waker, wakerTrace, ready), to = groups.of(coro, activity.trace[i], left), key = from * 0x400000 + to;
            const pair = pairs.get(key) ?? { from, to, count: 0, parked: 0, ready: 0, longest: 0, unknown: 0 };
            pair.count++;
            pair.parked += ready - left;
            pair.ready += left + wait - ready;
            pair.longest = Math.max(pair.longest, ready - left);
            pair.unknown += Number(!known);
            pairs.set(key, pair);
        }
        return [...pairs.values()].sort((a, b) => b.parked - a.parked);
    }

    /**
     * Coroutines that waited when the capture ended, the longest wait first.
     * @param {Selection} selection @returns {LastWait[]}
     */
    unresumed(selection) {
        const { activity, coro: table } = this.store, { first, rows } = this.activities, found = [];
        const takes = this.test(selection), during = this.during(selection);
        const close = Math.max(this.end / 1000, 1e6); // coroutines are not all looked at in the same moment
        for (let coro = 0; coro < this.store.coroCount; coro++) {
            const row = first[coro + 1] > first[coro] ? rows[first[coro + 1] - 1] : -1;
            if (row < 0 || !(activity.flags[row] & 1) || activity.wait[row] === 0 || table.flags[coro] & CORO.thread)
                continue;
            const since = activity.start[row] + activity.active[row], end = since + activity.wait[row];
            if (end >= this.end - close && during(since, end) && takes(coro, activity.trace[row], since, end))
                found.push({ coro, since, wait: activity.wait[row], state: activity.ready[row] > 0 ? "ready" : "parked" });
        }
        return found.sort((a, b) => b.wait - a.wait);
    }

    /**
     * Where each coroutine was parked for most of the time: node of the store, 0 = not known.
     * @returns {Uint32Array}
     */
    parkedAt() {
        const { rows, label, coroCount } = this.store, nodes = new Uint32Array(coroCount), most = new Float64Array(coroCount);
        for (let i = 0; i < rows.count; i++) {
            const coro = label.coro[rows.label[i]] - 1, state = rows.state[i];
            if (coro >= 0 && (state === STATE.parked || state === STATE.waiting) && rows.weight[i] > most[coro]) {
                most[coro] = rows.weight[i];
                nodes[coro] = rows.node[i];
            }
        }
        return nodes;
    }
}
