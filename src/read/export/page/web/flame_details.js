// SPDX-License-Identifier: MIT
// The line of details: what a box is, its numbers, and how its time divides into states.
"use strict";

/** @typedef {{by: (Float64Array | null)[], major: Uint8Array}} NodeStates by state: totals by node; and the state that most of each node's time was spent in */

class FlameDetails {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.element = el("p", { class: "details", id: "flame-details", role: "status", "aria-live": "polite" });
        /** @type {WeakMap<Weights, NodeStates>} */
        this.kept = new WeakMap();
    }

    /** @param {Weights} weights @returns {NodeStates} */
    statesOf(weights) {
        let states = this.kept.get(weights);
        if (!states)
            this.kept.set(weights, states = this.divide(weights));
        return states;
    }

    /** Totals of each node by state: one pass over the rows, one over the nodes a state. @param {Weights} weights @returns {NodeStates} */
    divide(weights) {
        const { app } = this, { tree } = weights, filter = filterOf(app.store, app.selection), facts = app.store.factsOf(app.weight);
        /** @type {(Float64Array | null)[]} */
        const by = app.store.head.states.map(() => null);
        const major = new Uint8Array(tree.count), { rowNode, parent } = tree;
        const there = app.store.head.states.map((_, state) => filter.states[state] ? app.chrome?.sums.of(app.weight).states[state] ?? 1 : 0);
        if (there.filter((ns) => ns > 0).length < 2)
            return { by, major: major.fill(Math.max(there.findIndex((ns) => ns > 0), 0)) };
        for (let i = 0; i < facts.count; i++) {
            const state = facts.state[i];
            if (rowNode[i] !== 0xffffffff && filter.labels[facts.label[i]] && filter.states[state] &&
                !(filter.timed && (facts.tick[i] < filter.firstTick || facts.tick[i] > filter.lastTick)))
                (by[state] ??= new Float64Array(tree.count))[rowNode[i]] += facts.weight[i];
        }
        const most = new Float64Array(tree.count);
        by.forEach((sums, state) => {
            if (!sums)
                return;
            for (let i = tree.count - 1; i >= 0; i--) {
                if (sums[i] > most[i]) {
                    most[i] = sums[i];
                    major[i] = state;
                }
                if (i > 0)
                    sums[parent[i]] += sums[i];
            }
        });
        return { by, major };
    }

    /** @param {FlamePane} pane @param {number} node -1 = none */
    show(pane, node) {
        if (node < 0 || !pane.content)
            return this.element.replaceChildren(el("span", { class: "muted", text: "Point at a box, or go to it with the arrow keys: its numbers stand here." }));
        const { store } = this.app, frame = pane.tree.frame[node], own = frame >= 0 && frame < store.frame.name.length;
        const parts = [el("b", { text: pane.nameOf(node) })];
        if (own)
            parts.push(...[store.placeOf(frame), store.head.modules[store.frame.module[frame]]].filter((text) => text !== "").map((text) => el("span", { text })));
        parts.push(...(pane.shown.diff ? this.compared(pane, node, pane.shown.diff) : this.numbers(pane.shown.weights, node)).map((text) => el("span", { text })));
        const kinds = ["native", store.head.names.length ? "language" : "", ""];
        if (own && kinds[store.frame.kind[frame]] !== "")
            parts.push(el("span", { class: "muted", text: FlameDetails.kindText(store, frame) }));
        this.element.replaceChildren(...parts);
    }

    /** "native", "Python". @param {Store} store @param {number} frame */
    static kindText(store, frame) {
        const file = store.head.files[store.frame.file[frame]];
        if (store.frame.kind[frame] !== FRAME.language)
            return "native";
        return /\.py$/.test(file) ? "Python" : /\.lua$/.test(file) ? "Lua" : /\.rb$/.test(file) ? "Ruby" : /\.php$/.test(file) ? "PHP"
            : /\.(js|mjs)$/.test(file) ? "JavaScript" : "language";
    }

    /** @param {Weights} weights @param {number} node */
    numbers(weights, node) {
        const { total, self, samples, sum } = weights;
        const texts = [`total ${timeText(total[node])} ${percentText(total[node], sum)}`, `self ${timeText(self[node])} ${percentText(self[node], sum)}`,
                       `${countText(samples[node])} ${this.app.weight === "delay" ? "delays" : "samples"}`];
        const { by } = this.statesOf(weights);
        const split = by.map((sums, state) => sums && sums[node] > 0 ? `${this.app.store.head.states[state]} ${percentText(sums[node], total[node])}` : "");
        return [...texts, split.filter((text) => text !== "").join(", ")];
    }

    /** @param {FlamePane} pane @param {number} node @param {DiffRule} diff */
    compared(pane, node, diff) {
        const change = diff.ofNode(pane.shown.weights, node);
        return [`base ${diff.text(change.base)}`, `file ${diff.text(change.file)}`, `change ${diff.changeText(change)}`,
                change.sure ? "more than chance" : "chance may explain it"];
    }
}
