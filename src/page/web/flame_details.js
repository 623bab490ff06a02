// SPDX-License-Identifier: MIT
// The line of details: what a box is, its numbers, and how its time divides into states.
"use strict";

/**
 * How the time of each node divides into states.
 * @typedef {object} NodeStates
 * @property {number[]} there the states in the data
 * @property {Float64Array} sums ns by node, and for each by `there`; empty where there is one state
 * @property {Uint8Array} major by node: the state of most of its time
 */

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

    /** Totals of each node by state: one pass over the rows, one over the nodes. @param {Weights} weights @returns {NodeStates} */
    divide(weights) {
        const { app } = this, { tree } = weights, filter = filterOf(app.store, app.selection), facts = app.store.factsOf(app.weight);
        const whole = app.chrome?.sums.of(app.weight).states ?? [], count = tree.count, { rowNode, parent } = tree;
        const there = [...filter.states.keys()].filter((state) => filter.states[state] && whole[state] > 0), width = there.length;
        const major = new Uint8Array(count).fill(there[0] ?? 0), sums = new Float64Array(width < 2 ? 0 : count * width);
        const column = filter.states.map((_, state) => Math.max(there.indexOf(state), 0));
        for (let i = 0; i < facts.count && width > 1; i++)
            if (rowNode[i] !== NONE && filter.labels[facts.label[i]] && filter.states[facts.state[i]] &&
                !(filter.timed && (facts.tick[i] < filter.firstTick || facts.tick[i] > filter.lastTick)))
                sums[rowNode[i] * width + column[facts.state[i]]] += facts.weight[i];
        for (let i = count - 1; i >= 0 && width > 1; i--) {
            let most = 0;
            for (let k = 0; k < width; k++) {
                const own = sums[i * width + k];
                if (own > most) {
                    most = own;
                    major[i] = there[k];
                }
                if (i > 0)
                    sums[parent[i] * width + k] += own;
            }
        }
        return { there, sums, major };
    }

    /** @param {FlamePane} pane @param {number} node -1 = none */
    show(pane, node) {
        if (node < 0 || !pane.content)
            return this.element.replaceChildren(el("span", { class: "muted",
                text: "Point at a box, or go to it with the arrow keys: its numbers stand here." }));
        const { store } = this.app, frame = pane.tree.frame[node], own = frame >= 0 && frame < store.frame.name.length;
        const texts = [];
        if (own)
            texts.push(store.placeOf(frame), store.head.modules[store.frame.module[frame]]);
        texts.push(...(pane.shown.diff ? this.compared(pane, node, pane.shown.diff) : this.numbers(pane.shown.weights, node)));
        const parts = [el("b", { text: pane.nameOf(node) }), ...texts.filter((text) => text !== "").map((text) => el("span", { text }))];
        if (own && store.frame.kind[frame] !== FRAME.pseudo)
            parts.push(el("span", { class: "tag", text: FlameDetails.kindText(store, frame) }));
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
        const texts = [`total ${timeText(total[node])} ${percentText(total[node], sum)}`,
                       `self ${timeText(self[node])} ${percentText(self[node], sum)}`,
                       `${countText(samples[node])} ${this.app.weight === "delay" ? "delays" : "samples"}`];
        const { there, sums } = this.statesOf(weights), { states } = this.app.store.head;
        const split = there.map((state, k) => sums[node * there.length + k] > 0
            ? `${states[state]} ${percentText(sums[node * there.length + k], total[node])}` : "");
        return [...texts, split.filter((text) => text !== "").join(", ")];
    }

    /** @param {FlamePane} pane @param {number} node @param {DiffRule} diff */
    compared(pane, node, diff) {
        const change = diff.ofNode(pane.shown.weights, node);
        return [`base ${diff.text(change.base)}${diff.unit}`, `file ${diff.text(change.file)}${diff.unit}`,
                `change ${diff.changeText(change)}${diff.unit}`,
                change.sure ? "more than chance" : "chance may explain it"];
    }
}
