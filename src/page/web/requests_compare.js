// SPDX-License-Identifier: MIT
// Slow requests against the others: mean times per request on critical paths, and whether a difference is more than chance.
"use strict";

/**
 * @typedef {object} Sides
 * @property {number[]} slow requests
 * @property {number[]} rest
 */

/**
 * @typedef {object} Tail where slow requests spend more
 * @property {string} text "[parked] in recv"
 * @property {string} above two functions above
 * @property {number} slow mean ns of a slow request
 * @property {number} rest mean ns of one of the rest
 * @property {number} slowShare of latency
 * @property {number} restShare
 */

/**
 * @typedef {object} Measured functions on the critical paths of some requests: by number of the function
 * @property {number} count requests
 * @property {number} latency ns, sum
 * @property {Float64Array} sum ns under the function
 * @property {Float64Array} squares ns², sum over requests
 * @property {Float64Array} self ns in the function itself; not what it was ready for: others had the thread then
 * @property {Float64Array} gain ns, sum over requests of what is under it and was not ready, but at most 1 ms
 * @property {Uint32Array} present requests that have it on their path
 */

/**
 * @typedef {object} Difference of a function
 * @property {string} name
 * @property {number} slow mean ns
 * @property {number} rest mean ns
 * @property {number} difference ns
 * @property {number} t difference over its standard error (Welch); NaN = not known
 */

/**
 * @typedef {object} Lever a function whose shortening shortens requests
 * @property {string} name
 * @property {number} share of latency under it
 * @property {number} self share of latency in it
 * @property {number} present share of requests with it on their path
 * @property {number} gain ns: mean of what 1 ms less in it saves at most
 */

const LESS_NS = 1e6;

/**
 * The difference of two means over its standard error. Where one side is a single request, the other's scatter is taken for both;
 * NaN where the other has none, as with a function that it lacks.
 * @param {number} n @param {number} sum @param {number} squares @param {number} m @param {number} otherSum @param {number} otherSquares
 */
function welch(n, sum, squares, m, otherSum, otherSquares) {
    const spread = (/** @type {number} */ count, /** @type {number} */ s, /** @type {number} */ q) =>
        count > 1 ? Math.max(q - s * s / count, 0) / (count - 1) : NaN;
    const difference = sum / n - otherSum / m, a = spread(n, sum, squares), b = spread(m, otherSum, otherSquares);
    const error = Math.sqrt((Number.isNaN(a) ? b : a) / n + (Number.isNaN(b) ? a : b) / m);
    if (error === 0 && (difference === 0 || n < 2 || m < 2))
        return difference === 0 ? 0 : NaN;
    return difference / error;
}

class Comparison {
    /** @param {Requests} requests */
    constructor(requests) {
        const { store } = requests;
        this.requests = requests;
        this.store = store;
        /** Function of each frame: the same name in the same file is one. */
        this.functions = new Uint32Array(store.frame.name.length);
        /** @type {string[]} */
        this.names = [];
        /** @type {Map<number, number>} */
        const numbers = new Map();
        for (let frame = 0; frame < this.functions.length; frame++) {
            const key = store.frame.name[frame] * 0x400000 + store.frame.file[frame];
            if (!numbers.has(key)) {
                numbers.set(key, this.names.length);
                this.names.push(store.nameOf(frame));
            }
            this.functions[frame] = /** @type {number} */ (numbers.get(key));
        }
        /** @type {Uint32Array | null} by node of the store */
        this.nodeFunctions = null;
    }

    /**
     * The slowest and the rest: so many per cent, one at least; null where there is nothing to compare.
     * @param {number[]} numbers @param {number} percent @param {number} [whole] how many there were: of many the file leaves out fast ones
     * @returns {Sides | null}
     */
    split(numbers, percent, whole = numbers.length) {
        const { latency } = this.store.request, slowest = Math.max(1, Math.floor(whole * percent / 100));
        if (slowest >= numbers.length)
            return null;
        const sorted = [...numbers].sort((a, b) => latency[b] - latency[a] || a - b);
        return { slow: sorted.slice(0, slowest), rest: sorted.slice(slowest) };
    }

    /**
     * The end of stacks that slow requests spend most time more at; null where there is none.
     * @param {Sides} sides @returns {Tail | null}
     */
    tail(sides) {
        const { ends } = this.requests, { latency } = this.store.request;
        /**
         * By end: ns of the slow ones, of the rest, the slow ones' heaviest row and its node.
         * @type {number[][]}
         */
        const [slow, rest, heaviest, nodes] = [[], [], [], []];
        for (const number of sides.slow)
            this.requests.each(number, (ns, node, state) => {
                const end = ends.number(state, node);
                slow[end] = (slow[end] ?? 0) + ns;
                if (!(ns <= heaviest[end]))
                    [heaviest[end], nodes[end]] = [ns, node];
            });
        for (const number of sides.rest)
            this.requests.each(number, (ns, node, state) => {
                const end = ends.number(state, node);
                rest[end] = (rest[end] ?? 0) + ns;
            });
        const whole = (/** @type {number[]} */ numbers) => numbers.reduce((sum, i) => sum + latency[i], 0);
        const slowWhole = whole(sides.slow), restWhole = whole(sides.rest);
        /** @type {Tail | null} */
        let best = null;
        for (let end = 0; end < slow.length; end++) {
            const a = (slow[end] ?? 0) / sides.slow.length, b = (rest[end] ?? 0) / sides.rest.length;
            if (a - b > (best ? best.slow - best.rest : 0))
                best = { text: ends.texts[end], above: ends.above(nodes[end]), slow: a, rest: b, slowShare: slowWhole > 0 ? slow[end] / slowWhole : 0,
                         restShare: restWhole > 0 ? (rest[end] ?? 0) / restWhole : 0 };
        }
        return best;
    }

    /**
     * Functions on the critical paths of requests.
     * @param {number[]} numbers @returns {Measured}
     */
    measure(numbers) {
        const { store, requests } = this, count = this.names.length;
        const functions = this.nodeFunctions ??= Uint32Array.from(store.node.frame, (frame) => this.functions[frame]), { parent } = store;
        const [sum, squares, self, gain, value, own] = Array.from({ length: 6 }, () => new Float64Array(count));
        const present = new Uint32Array(count), seen = new Uint32Array(count), touched = new Uint32Array(count);
        let row = 0, latency = 0;
        for (const number of numbers) {
            let many = 0;
            latency += store.request.latency[number];
            requests.each(number, (ns, node, state) => {
                const inner = requests.store.functionNode(node), worked = state === STATE.ready || state === STATE.preempted ? 0 : ns;
                if (inner > 0)
                    self[functions[inner]] += worked;
                for (row++; node > 0; node = parent[node]) {
                    const one = functions[node];
                    if (seen[one] === row) // of a recursion once
                        continue;
                    seen[one] = row;
                    if (value[one] === 0)
                        touched[many++] = one;
                    value[one] += ns;
                    own[one] += worked;
                }
            });
            for (const one of touched.subarray(0, many)) {
                sum[one] += value[one];
                squares[one] += value[one] * value[one];
                gain[one] += Math.min(own[one], LESS_NS);
                present[one]++;
                value[one] = own[one] = 0;
            }
        }
        return { count: numbers.length, latency, sum, squares, self, gain, present };
    }

    /**
     * Functions, the surest differences between slow requests and the rest first. Functions above all of the latency are left out.
     * @param {Measured} slow @param {Measured} rest @returns {Difference[]}
     */
    differences(slow, rest) {
        const found = [];
        for (let i = 0; i < this.names.length; i++) {
            const everywhere = slow.sum[i] >= .999 * slow.latency && rest.sum[i] >= .999 * rest.latency;
            if (everywhere || slow.present[i] + rest.present[i] === 0)
                continue;
            const a = slow.sum[i] / slow.count, b = rest.sum[i] / rest.count;
            found.push({ name: this.names[i], slow: a, rest: b, difference: a - b,
                         t: welch(slow.count, slow.sum[i], slow.squares[i], rest.count, rest.sum[i], rest.squares[i]) });
        }
        const single = slow.count < 2 || rest.count < 2; // of which the largest difference says more
        const rank = (/** @type {Difference} */ one) => single || Number.isNaN(one.t) ? 0 : Math.abs(one.t);
        return found.sort((a, b) => (rank(a) === rank(b) ? 0 : rank(b) - rank(a)) || Math.abs(b.difference) - Math.abs(a.difference));
    }

    /**
     * Functions that most of the latency is spent in, of those on the paths of most requests.
     * @param {Measured} slow @param {Measured} rest @returns {Lever[]}
     */
    levers(slow, rest) {
        const count = slow.count + rest.count, latency = slow.latency + rest.latency, found = [];
        for (let i = 0; i < this.names.length; i++) {
            const present = slow.present[i] + rest.present[i], self = slow.self[i] + rest.self[i];
            if (self > 0 && 2 * present > count)
                found.push({ name: this.names[i], share: (slow.sum[i] + rest.sum[i]) / latency, self: self / latency,
                             present: present / count, gain: (slow.gain[i] + rest.gain[i]) / count });
        }
        return found.sort((a, b) => b.self - a.self);
    }

    /**
     * Mean ns per request of each node of the store, with all below it.
     * @param {number[]} numbers @returns {Float64Array}
     */
    nodeMeans(numbers) {
        const { store } = this, total = new Float64Array(store.nodeCount);
        for (const number of numbers)
            this.requests.each(number, (ns, node) => {
                total[node] += ns;
            });
        for (let i = store.nodeCount - 1; i > 0; i--)
            total[store.parent[i]] += total[i];
        return total.map((ns) => ns / numbers.length);
    }
}
