// SPDX-License-Identifier: MIT
// Stacks in the order of time, as data: for the heaviest coroutines, or threads, what was on the stack in each tick.
"use strict";

/**
 * @typedef {object} Lane of a coroutine or a thread
 * @property {number} owner
 * @property {string} text
 * @property {number} sum ns
 * @property {number} base rows that are the same all the time, and are not drawn
 * @property {number} rows
 * @property {LaneBox[]} boxes
 */
/** @typedef {{node: number, row: number, from: number, to: number}} LaneBox ns; node of the tree */

class StackLanes {
    /** @param {App} app @param {boolean} byThread @param {number} most lanes @param {number} first coroutine that is told first, -1 = none */
    constructor(app, byThread, most, first) {
        this.app = app;
        const { store } = app, facts = store.factsOf(app.weight), filter = filterOf(store, app.selection), { rowNode } = app.weights().tree;
        const of = byThread ? store.label.thread : store.label.coro;
        const sums = new Float64Array(1 + Math.max(store.coroCount, store.head.threads.length));
        const rows = /** @type {number[][]} by owner */ ([]);
        for (let i = 0; i < facts.count; i++)
            if (rowNode[i] !== NONE && facts.tick[i] > 0 && filter.labels[facts.label[i]] && filter.states[facts.state[i]] &&
                (!filter.timed || (facts.tick[i] >= filter.firstTick && facts.tick[i] <= filter.lastTick))) {
                const owner = of[facts.label[i]];
                sums[owner] += facts.weight[i];
                (rows[owner] ??= []).push(i);
            }
        const owners = [...rows.keys()].filter((owner) => owner > 0 && rows[owner]);
        owners.sort((a, b) => Number(!byThread && b - 1 === first) - Number(!byThread && a - 1 === first) || sums[b] - sums[a]);
        this.count = owners.length;
        this.lanes = owners.slice(0, most).map((owner) => this.lane(facts, rows[owner], owner - 1, sums[owner],
            byThread ? `thread ${store.head.threads[owner - 1]}` : store.coroText(owner - 1)));
    }

    /** @param {Facts} facts @param {number[]} rows @param {number} owner @param {number} sum @param {string} text @returns {Lane} */
    lane(facts, rows, owner, sum, text) {
        const { tree } = this.app.weights(), tick = this.app.store.head.tick_ns, { rowNode } = tree;
        rows.sort((a, b) => facts.tick[a] - facts.tick[b] || rowNode[a] - rowNode[b]);
        /** @type {LaneBox[]} the innermost ones */
        const pieces = [];
        for (let i = 0, end; i < rows.length; i = end) {
            let all = 0;
            for (end = i; end < rows.length && facts.tick[rows[end]] === facts.tick[rows[i]]; end++)
                all += facts.weight[rows[end]];
            const scale = tick / Math.max(all, tick); // of several that are put together there may be more than fits
            for (let k = i, at = (facts.tick[rows[i]] - 1) * tick; k < end; k++) {
                const node = rowNode[rows[k]], from = at;
                pieces.push({ node, row: tree.depth[node], from, to: at += facts.weight[rows[k]] * scale });
            }
        }
        return { owner, text, sum, ...StackLanes.boxes(tree, pieces) };
    }

    /** Boxes of all frames; those of one frame that follow upon one another are one. @param {Tree} tree @param {LaneBox[]} pieces */
    static boxes(tree, pieces) {
        let common = pieces[0]?.node ?? 0;
        for (const { node } of pieces)
            for (let other = node; other !== common;)
                if (tree.depth[other] > tree.depth[common])
                    other = tree.parent[other];
                else
                    common = tree.parent[common];
        const base = Math.max(tree.depth[common] - 1, 0), /** @type {LaneBox[]} */ boxes = [], /** @type {LaneBox[]} */ last = [];
        let rows = 0;
        for (const { node: leaf, from, to } of pieces)
            for (let node = leaf; node > 0 && tree.depth[node] > base; node = tree.parent[node]) {
                const row = tree.depth[node] - base - 1, before = last[row];
                rows = Math.max(rows, row + 1);
                if (before?.node === node && from - before.to < 1)
                    before.to = to;
                else
                    boxes.push(last[row] = { node, row, from, to });
            }
        return { base, rows, boxes };
    }
}
