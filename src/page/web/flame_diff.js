// SPDX-License-Identifier: MIT
// The difference of two sides' samples, and whether chance may explain it: the rule of `greenprof diff`.
"use strict";

/**
 * @typedef {object} Change
 * @property {number} base ns, or percent
 * @property {number} file
 * @property {number} difference
 * @property {number} error standard error
 * @property {boolean} sure chance does not explain it
 */

/**
 * @typedef {object} Sum of a side's rows
 * @property {number} ns
 * @property {number} samples
 * @property {number} squares of the samples' weights, ns²
 */

const SAMPLES_MIN = 10; // of both sides together: with fewer the normal distribution is wrong

/** Complementary error function, relative error below 1.2e-7 (Numerical Recipes, erfcc). @param {number} x */
function erfc(x) {
    const t = 1 / (1 + Math.abs(x) / 2);
    const factors = [1.00002368, 0.37409196, 0.09678418, -0.18628806, 0.27886807, -1.13520398, 1.48851587, -0.82215223, 0.17087277];
    const value = t * Math.exp(-x * x - 1.26551223 + factors.reduceRight((sum, factor) => (sum + factor) * t, 0));
    return x >= 0 ? value : 2 - value;
}

/** The z that one of `count` independent standard normal values exceeds with probability 0.05 (Sidak). @param {number} count */
function criticalZ(count) {
    const each = -Math.expm1(Math.log1p(-0.05) / Math.max(count, 1));
    let low = 0, high = 40;
    for (let i = 0; i < 100; i++) {
        const middle = (low + high) / 2;
        if (erfc(middle / Math.SQRT2) > each)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/** Compares the two sides of weights. */
class DiffRule {
    /** @param {Store} store @param {Weights} weights @param {boolean} shares whether values are percent of each side's total */
    constructor(store, weights, shares) {
        this.shares = shares;
        this.whole = [weights.baseSum, weights.sum];
        this.squares = [weights.baseSquares[0] ?? 0, weights.squares[0] ?? 0];
        this.factor = this.whole.map((sum, side) => shares ? (sum > 0 ? 100 / sum : 0) : DiffRule.perOf(store, side));
        this.unit = shares || store.head.unit === "%" ? "" : (store.head.unit ?? "").replace(/^ms/, "");
        this.known = shares || store.head.totals.basis === "exact";
        /** @type {string | undefined} of `sizes` */
        this.side = undefined;
        this.sizes = new Float64Array(0);
        this.critical = criticalZ(2 * DiffRule.functionsOf(store));
    }

    /** The factor of a side's times: --per second, --per trace. @param {Store} store @param {number} side @returns {number} */
    static perOf(store, side) {
        const [of, by] = store.head.sides[side]?.per ?? [0, 0];
        return of > 0 ? by / of : 1;
    }

    /** How many functions are compared. @param {Store} store @returns {number} */
    static functionsOf(store) {
        let count = DiffRule.counted.get(store);
        if (count === undefined) {
            const seen = new Set(Array.from(store.frame.name, (name, i) => name * 0x400000 + store.frame.file[i]));
            DiffRule.counted.set(store, count = seen.size);
        }
        return count;
    }

    /** @param {number} side @param {Sum} sum */
    variance(side, { ns, squares: within }) {
        const whole = this.whole[side], p = whole > 0 ? ns / whole : 0, outside = Math.max(this.squares[side] - within, 0);
        const sum = this.known ? (1 - p) * (1 - p) * within + p * p * outside : within;
        return sum * this.factor[side] * this.factor[side];
    }

    /** @param {Sum} base @param {Sum} file @returns {Change} */
    change(base, file) {
        const error = Math.sqrt(this.variance(0, base) + this.variance(1, file));
        const values = [base.ns * this.factor[0], file.ns * this.factor[1]], difference = values[1] - values[0];
        const z = error > 0 ? Math.abs(difference) / error : Math.abs(difference) > 1e-9 * values[0] ? Infinity : 0;
        return { base: values[0], file: values[1], difference, error, sure: z >= this.critical && base.samples + file.samples >= SAMPLES_MIN };
    }

    /** @param {Weights} weights @param {number} node */
    ofNode(weights, node) {
        return this.change({ ns: weights.base[node], samples: weights.baseSamples[node], squares: weights.baseSquares[node] },
                           { ns: weights.total[node], samples: weights.samples[node], squares: weights.squares[node] });
    }

    /** Widths of the boxes: of a side, or of both together. @param {Weights} weights @param {string} side @returns {Float64Array} */
    sizesOf(weights, side) {
        if (this.side !== side) {
            const [a, b] = [side === "file" || side === "" ? 0 : this.factor[0], side === "base" ? 0 : this.factor[1]];
            this.sizes = weights.total.map((file, node) => file * b + weights.base[node] * a);
            this.side = side;
        }
        return this.sizes;
    }

    /** @param {number} value ns or percent */
    text(value) {
        return this.shares ? `${value.toFixed(2)} %` : timeText(value);
    }

    /** "+1.2 ms ± 300.000 µs": with the error that chance gives, 95 %. @param {Change} change */
    changeText(change) {
        if (change.difference === 0 && change.error === 0)
            return "0";
        return `${change.difference < 0 ? "−" : "+"}${this.text(Math.abs(change.difference))} ± ${this.text(1.96 * change.error)}`;
    }
}

/** @type {WeakMap<Store, number>} */
DiffRule.counted = new WeakMap();
