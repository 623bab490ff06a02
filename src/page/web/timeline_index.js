// SPDX-License-Identifier: MIT
// Activities by coroutine and by thread: binary search finds the one of a moment, the difference of two running sums all within a pixel, so
// that a million activities cost no more than the pixels they are drawn on.
"use strict";

/**
 * Numbers 0 ... count-1 in the order of their values: a radix sort, as the bits of numbers that are not negative are in their order.
 * @param {Float64Array} values not negative @returns {Uint32Array}
 */
function orderOf(values) {
    const count = values.length, halves = new Uint32Array(values.buffer, values.byteOffset, 2 * count);
    let order = new Uint32Array(count), other = new Uint32Array(count);
    for (let i = 0; i < count; i++)
        order[i] = i;
    for (let pass = 0; pass < 4; pass++) {
        const half = pass >> 1, shift = 16 * (pass & 1), starts = new Uint32Array(65537);
        for (let i = 0; i < count; i++)
            starts[((halves[2 * i + half] >>> shift) & 0xffff) + 1]++;
        if (starts.includes(count)) // all the same
            continue;
        for (let i = 0; i < 65536; i++)
            starts[i + 1] += starts[i];
        for (let i = 0; i < count; i++)
            other[starts[(halves[2 * order[i] + half] >>> shift) & 0xffff]++] = order[i];
        [order, other] = [other, order];
    }
    return order;
}

/**
 * Items by group, in the order that they come in: those of group g are list[first[g]] ... list[first[g + 1] - 1].
 * @typedef {object} Groups
 * @property {Uint32Array} first
 * @property {Uint32Array} list
 */

/**
 * @param {Uint32Array | Float64Array} group +1 of each item; 0: of none @param {number} groups how many @param {Uint32Array} [order] of the items
 * @returns {Groups}
 */
function groupsOf(group, groups, order) {
    const first = new Uint32Array(groups + 2);
    for (let i = 0; i < group.length; i++)
        first[group[i] + 1]++;
    const none = first[1];
    first[1] = 0;
    for (let i = 1; i <= groups + 1; i++)
        first[i] += first[i - 1];
    const list = new Uint32Array(group.length - none), at = first.slice();
    for (let i = 0; i < group.length; i++) {
        const item = order ? order[i] : i;
        if (group[item] > 0)
            list[at[group[item]]++] = item;
    }
    return { first: first.subarray(1), list };
}

/**
 * First of [low, high) with a value above a limit; the values ascend.
 * @param {(i: number) => number} value @param {number} low @param {number} high @param {number} limit
 */
function firstAbove(value, low, high, limit) {
    while (low < high) {
        const middle = (low + high) >>> 1;
        if (value(middle) > limit)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

/** States of which activities tell when they were. */
const TOLD = [STATE.running, STATE.ready, STATE.parked, STATE.waiting];
const SHORT_WAITS_NS = 1000, SHORT_WAITS_PART = 100; // of an activity that still counts as one slice

class ActivityIndex {
    /** @param {Store} store */
    constructor(store) {
        const { activity } = store, count = activity.start.length, coros = store.coroCount;
        this.store = store;
        this.count = count;
        this.first = new Uint32Array(coros);
        this.last = new Uint32Array(coros);
        this.end = new Float64Array(count);
        this.until = store.head.duration_ns;
        /** By state: how much of it was in all activities before this one. @type {Record<number, Float64Array>} */
        this.sums = {};
        for (const state of TOLD)
            this.sums[state] = new Float64Array(count + 1);
        this.sumUp();
        const starts = orderOf(new Float64Array(activity.start));
        this.threads = groupsOf(activity.thread, store.head.threads.length, starts);
        /** Along the threads' list: the latest end of a thread so far, so that what covers a moment is found. */
        this.threadEnd = new Float64Array(this.threads.list.length);
        /** Along the threads' list: how much ran before. */
        this.threadRan = new Float64Array(this.threads.list.length + 1);
        this.sumUpThreads();
        this.hogs = groupsOf(store.hog.thread, store.head.threads.length, orderOf(new Float64Array(store.hog.start)));
        this.spans = groupsOf(store.span.coro, coros, orderOf(new Float64Array(store.span.start)));
        this.children = groupsOf(store.coro.parent, coros);
        /** @type {Groups | null} */
        this.keptWoken = null;
    }

    sumUp() {
        const { coro, start, active, slice, wait, ready } = this.store.activity, { first, last, end } = this;
        const [ran, able, parked, waited] = TOLD.map((state) => this.sums[state]);
        for (let i = 0; i < this.count; i++) {
            const one = coro[i], shown = this.waitOf(i), until = shown > 0 && ready[i] > 0 ? ready[i] - 1 - active[i] : 0;
            if (i === 0 || coro[i - 1] !== one)
                first[one] = i;
            last[one] = i + 1;
            end[i] = start[i] + active[i] + wait[i];
            ran[i + 1] = ran[i] + slice[i];
            parked[i + 1] = parked[i] + until;
            able[i + 1] = able[i] + (ready[i] > 0 ? shown - until : 0);
            waited[i + 1] = waited[i] + active[i] - slice[i] + (ready[i] > 0 ? 0 : shown);
        }
        for (let i = 0; i < this.count; i++)
            this.until = Math.max(this.until, end[i]);
    }

    sumUpThreads() {
        const { first, list } = this.threads, { activity } = this.store;
        for (let thread = 0; thread + 1 < first.length; thread++) {
            for (let i = first[thread], end = 0; i < first[thread + 1]; i++) {
                this.threadEnd[i] = end = Math.max(end, activity.start[list[i]] + activity.active[list[i]]);
                this.threadRan[i + 1] = this.threadRan[i] + activity.slice[list[i]];
            }
        }
    }

    /** Time that is shown after its active part: while a thread's own stack waits, its coroutines run. @param {number} i */
    waitOf(i) {
        const { activity, coro } = this.store;
        return coro.flags[activity.coro[i]] & CORO.thread ? 0 : activity.wait[i];
    }

    /** Whether all of its active time was one slice, or nearly. @param {number} i */
    isWhole(i) {
        const { activity } = this.store, active = activity.active[i];
        return active - activity.slice[i] <= SHORT_WAITS_NS + active / SHORT_WAITS_PART;
    }

    /** Moment at which it became ready, ns; -1: not known. @param {number} i */
    readyAt(i) {
        const { activity } = this.store;
        return activity.ready[i] > 0 && !(activity.flags[i] & 1) ? activity.start[i] + activity.ready[i] - 1 : -1;
    }

    /**
     * The states of an activity, in order of time. `share`: the part of a running state in which it really ran.
     * @param {number} i @returns {{state: number, from: number, to: number, share: number}[]}
     */
    partsOf(i) {
        const { activity } = this.store, start = activity.start[i], left = start + activity.active[i], parts = [];
        if (activity.active[i] > 0)
            parts.push({ state: STATE.running, from: start, to: left, share: this.isWhole(i) ? 1 : activity.slice[i] / activity.active[i] });
        const end = left + this.waitOf(i), ready = activity.ready[i] > 0 ? start + activity.ready[i] - 1 : -1;
        if (ready < 0 && end > left)
            parts.push({ state: STATE.waiting, from: left, to: end, share: 1 });
        if (ready > left && end > left)
            parts.push({ state: STATE.parked, from: left, to: Math.min(ready, end), share: 1 });
        if (ready >= left && end > ready)
            parts.push({ state: STATE.ready, from: ready, to: end, share: 1 });
        return parts;
    }

    /** First activity of a coroutine that ends after a moment. @param {number} coro @param {number} ns */
    seek(coro, ns) {
        return firstAbove((i) => this.end[i], this.first[coro], this.last[coro], ns);
    }

    /** Activity of a coroutine at a moment; -1 where there is none. @param {number} coro @param {number} ns */
    at(coro, ns) {
        const i = this.seek(coro, ns);
        return i < this.last[coro] && this.store.activity.start[i] <= ns ? i : -1;
    }

    /** Place in a thread's list of the first activity that may end after a moment. @param {number} thread @param {number} ns */
    seekThread(thread, ns) {
        const { first } = this.threads;
        return firstAbove((i) => this.threadEnd[i], first[thread], first[thread + 1], ns);
    }

    /** Whether nothing else ran meanwhile. @param {number} thread @param {number} at place in its list */
    isAlone(thread, at) {
        const { first, list } = this.threads, { activity } = this.store, i = list[at];
        return (at === first[thread] || this.threadEnd[at - 1] <= activity.start[i]) &&
            (at + 1 === first[thread + 1] || activity.start[list[at + 1]] >= activity.start[i] + activity.active[i]);
    }

    /** A thread's activity at a moment: the last to begin; -1 where there is none. @param {number} thread @param {number} ns */
    onThread(thread, ns) {
        const { activity } = this.store, { first, list } = this.threads;
        let found = -1;
        for (let i = this.seekThread(thread, ns); i < first[thread + 1] && activity.start[list[i]] <= ns; i++)
            if (activity.start[list[i]] + activity.active[list[i]] > ns)
                found = list[i];
        return found;
    }

    /** First moment of a coroutine, ns; -1: not known. @param {number} coro */
    birthOf(coro) {
        return this.first[coro] < this.last[coro] ? this.store.activity.start[this.first[coro]] : -1;
    }

    /** Activities by the coroutine that ended their wait. @returns {Groups} */
    get woken() {
        return this.keptWoken ??= groupsOf(this.store.activity.waker, this.store.coroCount);
    }
}

/** The index of a store is made once, by the first view that asks for it. @type {WeakMap<Store, ActivityIndex>} */
const ACTIVITY_INDEXES = new WeakMap();

/** @param {Store} store @returns {ActivityIndex} */
function activitiesOf(store) {
    let index = ACTIVITY_INDEXES.get(store);
    if (!index) {
        index = new ActivityIndex(store);
        ACTIVITY_INDEXES.set(store, index);
    }
    return index;
}
