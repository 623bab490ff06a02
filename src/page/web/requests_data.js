// SPDX-License-Identifier: MIT
// Requests and what their latency is made of: rows of critical paths, segments and spans by request, in words.
"use strict";

/**
 * @typedef {object} RowGroups rows by owner: those of owner i are rows[first[i]] to rows[first[i + 1]], in their order
 * @property {Uint32Array} first
 * @property {Uint32Array} rows
 */

/**
 * @typedef {object} Part what a request's latency is made of: one coroutine in one state at one place
 * @property {number} coro -1 = not known
 * @property {number} state
 * @property {number} node of the store
 * @property {string} text "[parked] in recv"
 * @property {string} above " ← query ← handle": two frames above
 * @property {number} ns
 */

/**
 * Rows by owner.
 * @param {number} owners @param {number} count of rows @param {(row: number) => number} ownerOf -1 = none
 * @returns {RowGroups}
 */
function groupRows(owners, count, ownerOf) {
    const first = new Uint32Array(owners + 1), of = new Int32Array(count);
    for (let row = 0; row < count; row++) {
        const owner = of[row] = ownerOf(row);
        if (owner >= 0)
            first[owner + 1]++;
    }
    for (let i = 0; i < owners; i++)
        first[i + 1] += first[i];
    const at = first.slice(), rows = new Uint32Array(first[owners]);
    of.forEach((owner, row) => {
        if (owner >= 0)
            rows[at[owner]++] = row;
    });
    return { first, rows };
}

/**
 * The least number that so many per cent of all are not above (nearest rank).
 * @param {Float64Array} sorted @param {number} percent
 */
function percentileOf(sorted, percent) {
    return sorted.length > 0 ? sorted[Math.max(Math.ceil(sorted.length * percent / 100), 1) - 1] : 0;
}

/** Ends of stacks in words: the state, pseudo-frames and the function; each text has a number. */
class StackEnds {
    /** @param {Store} store */
    constructor(store) {
        this.store = store;
        /** @type {string[]} */
        this.texts = [];
        /** @type {Map<string, number>} */
        this.numbers = new Map();
        /** By node: number of its end without the state, +1; made when it is asked for. */
        this.nodeEnds = new Uint32Array(store.nodeCount);
        /** By function and pseudo-frame: the same. @type {Map<number, number>} */
        this.made = new Map();
        this.count = 0;
        /** By name, made when it is asked for. @type {Map<string, number> | undefined} */
        this.coros = undefined;
        /** By end and state: number of the text. @type {number[]} */
        this.ends = [];
    }

    /** @param {number} state @param {number} node */
    number(state, node) {
        const end = this.nodeEnds[node] ||= this.endOf(node), at = end * 8 + state;
        return this.ends[at] ??= this.numberOf(this.makeText(state, node));
    }

    /**
     * Number of a node's end, +1: those of the same function and the same pseudo-frame are one.
     * @param {number} node
     */
    endOf(node) {
        const { parent, node: { frame } } = this.store, own = this.store.functionNode(node);
        if (node !== own && parent[node] !== own)
            return ++this.count;
        const key = (node === own ? 0 : frame[node] + 1) * 0x400000 + (own === 0 ? 0 : frame[own] + 1), found = this.made.get(key) ?? ++this.count;
        this.made.set(key, found);
        return found;
    }

    /** @param {string} text */
    numberOf(text) {
        const found = this.numbers.get(text) ?? this.texts.length;
        if (found === this.texts.length)
            this.texts.push(text);
        this.numbers.set(text, found);
        return found;
    }

    /** @param {number} state @param {number} node */
    makeText(state, node) {
        const { store } = this, word = store.head.states[state], own = this.store.functionNode(node), said = [];
        for (; node !== own; node = store.parent[node]) {
            const name = store.nameOf(store.node.frame[node]);
            if (name.startsWith("[behind "))
                said.push(`${name.slice(1, -1)}${this.ranBy(name)}; itself`);
            else if (name !== `[${word}]`)
                said.push(name);
        }
        const start = [state === STATE.running ? word : `[${word}]`, ...said.reverse()].join(" ");
        return own > 0 ? `${start} in ${store.functionText(own)}` : start.replace(/; itself$/, "");
    }

    /** The function that a coroutine named as "[behind 12 crunch]" ran most of its time. @param {string} name */
    ranBy(name) {
        const { store } = this, text = name.slice(1, -1).replace(/^behind (coroutine )?/, "");
        const coros = this.coros ??= new Map(Array.from({ length: store.coroCount }, (_, coro) => [store.coroText(coro), coro]));
        const node = RanCode.of(store).node(coros.get(text) ?? -1, 0, Infinity);
        return node > 0 ? `, which ran ${store.functionText(node)}` : "";
    }

    /**
     * Two functions above the innermost one.
     * @param {number} node @returns {string}
     */
    above(node) {
        const { store } = this;
        let text = "";
        node = store.parent[this.store.functionNode(node)];
        for (let left = 2; left > 0 && node > 0; left--, node = store.parent[node])
            text += ` ← ${store.nameOf(store.node.frame[node])}`;
        return text;
    }
}

class Requests {
    /** @param {Store} store */
    constructor(store) {
        const { paths, label, segment, span } = store, count = store.requestCount;
        this.store = store;
        this.count = count;
        this.ends = new StackEnds(store);
        this.paths = groupRows(count, paths.count, (row) => label.request[paths.label[row]] - 1);
        this.segments = groupRows(count, segment.request.length, (row) => segment.request[row]);
        this.spans = groupRows(count, span.request.length, (row) => span.request[row] - 1);
    }

    /**
     * Requests that a selection takes: by trace, by coroutines at work for them, by the part of the time they lie in
     * (also in part), and, if wanted, by endpoint and latency.
     * @param {Selection} selection @param {boolean} [narrow] by endpoint @param {boolean} [lasting] by latency
     * @returns {number[]}
     */
    taken(selection, narrow = true, lasting = true) {
        const { store } = this, { request, head } = store, found = [];
        const endpoint = narrow && selection.endpoint !== "" ? head.endpoints.findIndex((one) => one.text === selection.endpoint) : -1;
        const trace = selection.trace === "" ? -1 : head.traces.indexOf(selection.trace) + 1 || -2;
        const from = Number(selection.from || 0), to = selection.to === "" ? Infinity : Number(selection.to);
        const works = this.workersTest(selection), lasted = lasting ? latencyTest(store, selection) : () => true;
        for (let i = 0; i < this.count; i++)
            if ((!narrow || selection.endpoint === "" || request.endpoint[i] === endpoint) && (trace === -1 || request.trace[i] === trace) &&
                request.start[i] < to && request.start[i] + request.latency[i] >= from && works(i) && lasted(i))
                found.push(i);
        return found;
    }

    /**
     * Whether a coroutine that a selection takes worked for a request.
     * @param {Selection} selection @returns {(request: number) => boolean}
     */
    workersTest(selection) {
        const { label, request } = this.store, coros = takenCoros(this.store, selection);
        if (!coros)
            return () => true;
        const works = Uint8Array.from(request.coro, (coro) => coro > 0 ? coros[coro - 1] : 0);
        for (let i = 0; i < label.coro.length; i++)
            if (label.request[i] > 0 && label.coro[i] > 0 && coros[label.coro[i] - 1])
                works[label.request[i] - 1] = 1;
        return (number) => works[number] === 1;
    }

    /**
     * Figures of some requests.
     * @param {number[]} numbers @returns {Omit<Endpoint, "text">}
     */
    figures(numbers) {
        const { latency, flags } = this.store.request, sorted = Float64Array.from(numbers, (i) => latency[i]).sort();
        return {
            count: numbers.length,
            failed: numbers.reduce((sum, i) => sum + Number((flags[i] & REQUEST.failed) !== 0), 0),
            total_ns: sorted.reduce((sum, ns) => sum + ns, 0),
            p50_ns: percentileOf(sorted, 50), p90_ns: percentileOf(sorted, 90), p99_ns: percentileOf(sorted, 99),
            max_ns: sorted[sorted.length - 1] ?? 0,
        };
    }

    /**
     * Rows of a request's critical path, or, where the file has none, its segments.
     * @param {number} request
     * @param {(ns: number, node: number, state: number, coro: number) => void} take node: 0 = no stack; coro: -1 = not known
     */
    each(request, take) {
        const { paths, label, segment } = this.store, { first, rows } = this.paths;
        for (let i = first[request]; i < first[request + 1]; i++) {
            const row = rows[i];
            take(paths.weight[row], paths.node[row], paths.state[row], label.coro[paths.label[row]] - 1);
        }
        if (first[request] === first[request + 1])
            for (let i = this.segments.first[request]; i < this.segments.first[request + 1]; i++) {
                const row = this.segments.rows[i];
                take(segment.length[row], Math.max(segment.node[row] - 1, 0), segment.state[row], segment.coro[row]);
            }
    }

    /**
     * A request's latency by state; the last number is the unknown rest.
     * @param {number} request @returns {Float64Array}
     */
    states(request) {
        const sums = new Float64Array(this.store.head.states.length + 1), unknown = sums.length - 1;
        sums[unknown] = this.store.request.latency[request];
        this.each(request, (ns, _, state) => {
            sums[state] += ns;
            sums[unknown] -= ns;
        });
        sums[unknown] = Math.max(sums[unknown], 0);
        return sums;
    }

    /**
     * The parts of a request's latency, the longest first.
     * @param {number} request @returns {Part[]}
     */
    parts(request) {
        /** @type {Map<string, Part>} */
        const parts = new Map();
        this.each(request, (ns, node, state, coro) => {
            const text = this.ends.texts[this.ends.number(state, node)], above = this.ends.above(node), key = `${coro}\n${text}\n${above}`;
            const part = parts.get(key);
            if (part)
                part.ns += ns;
            else
                parts.set(key, { coro, state, node, text, above, ns });
        });
        return [...parts.values()].sort((a, b) => b.ns - a.ns);
    }

    /**
     * "GET /x took 123.4 ms: 61 % parked in db_query, 20 % ready behind 12 crunch, which ran work; itself in handle, 19 % other".
     * @param {number} request
     */
    sentence(request) {
        const { head, request: table } = this.store, latency = table.latency[request];
        /** @type {Map<string, number>} */
        const sums = new Map();
        this.each(request, (ns, node, state) => {
            const text = this.ends.texts[this.ends.number(state, node)].replace(/^\[(\w+)\]/, "$1");
            sums.set(text, (sums.get(text) ?? 0) + ns);
        });
        const sorted = [...sums].sort((a, b) => b[1] - a[1]), shown = sorted.slice(0, 4).filter(([, ns]) => ns >= latency / 100);
        const rest = latency - shown.reduce((sum, [, ns]) => sum + ns, 0);
        const share = (/** @type {number} */ ns) => `${Math.round(100 * ns / latency)} %`;
        const said = shown.map(([text, ns]) => `${share(ns)} ${text}`);
        if (said.length > 0 && rest >= latency / 200)
            said.push(`${share(rest)} other`);
        return `${head.endpoints[table.endpoint[request]]?.text ?? "It"} took ${timeText(latency)}` +
            (said.length > 0 ? `: ${said.join(", ")}.` : "; what it spent its time on is not known.");
    }

    /**
     * Coroutines that the thread ran which a request's own was ready for, the longest first.
     * @param {number} request @returns {[number, number][]} coroutines and ns
     */
    keepers(request) {
        const { activity, segment, request: table } = this.store, { first, rows } = this.segments;
        const from = table.start[request], to = from + table.latency[request];
        /** @type {Map<number, number>} */
        const kept = new Map();
        const meanwhile = [...activity.start.keys()].filter((i) => activity.start[i] < to + 1e3 && activity.start[i] + activity.active[i] > from);
        for (const row of rows.subarray(first[request], first[request + 1])) {
            const start = segment.from[row], end = start + segment.length[row], coro = segment.coro[row];
            const next = segment.state[row] !== STATE.ready ? undefined
                : meanwhile.find((i) => activity.coro[i] === coro && Math.abs(activity.start[i] - end) <= 1e3);
            for (const i of next === undefined ? [] : meanwhile) {
                const both = Math.min(activity.start[i] + activity.active[i], end) - Math.max(activity.start[i], start);
                if (both > 0 && activity.coro[i] !== coro && activity.thread[i] === activity.thread[Number(next)])
                    kept.set(activity.coro[i], (kept.get(activity.coro[i]) ?? 0) + both * activity.slice[i] / activity.active[i]);
            }
        }
        return [...kept].sort((a, b) => b[1] - a[1]);
    }
}
