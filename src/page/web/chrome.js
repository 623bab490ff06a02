// SPDX-License-Identifier: MIT
// The frame around the views: title, totals, tabs, weights and states. Filters, help and menus have files of their own.
"use strict";

/** Why a weight cannot be chosen. @type {Record<string, string>} */
const WEIGHT_MISSING = {
    cpu: "no sample of this file was taken on the CPU",
    wall: "this file has no samples",
    parked: "no waiting was recorded: nothing parked, or the runtime's switches are not known",
    ready: "nothing waited while it could have run, or the runtime does not say when something becomes ready",
    blocked: "nothing was seen asleep in the kernel",
    delay: "no slice was so long that others had to wait for it",
    path: "there are no requests: the program began no root span",
};

/** The findings of explain, the first one open. @param {Header["verdict"]} verdict @returns {HTMLElement[]} */
function verdictElements(verdict) {
    if (!verdict)
        return [];
    const first = verdict.find(({ rank }) => rank === "finding" || rank === "machine");
    const rest = verdict.filter((one) => one !== first);
    const entry = (/** @type {NonNullable<Header["verdict"]>[number]} */ { sentence, hurt, sure, command }) =>
        el("li", {}, el("span", { text: sentence }), ...(hurt ? [` Hurt: ${hurt}.`] : []), ...(sure ? [` Sure: ${sure}.`] : []), " ",
           el("code", { text: command }));
    const more = el("details", {}, el("summary", { text: rest.length === 0 ? "How it is known" : `${rest.length} more, and how it is known` }),
                    el("ul", {}, ...(first ? [first, ...rest] : rest).map(entry)));
    return [el("section", { class: "findings", "aria-label": "verdict" },
               el("p", { text: first ? first.sentence : "Nothing stands out in the program." }), ...(verdict.length > 0 ? [more] : []))];
}

class Chrome {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.help = new Help(app);
        this.filters = new FilterBar(app);
        this.sums = new WeightSums(app);
        /** @type {Record<string, string>} what each part was made from: what is the same stays */
        this.made = {};
        this.totals = el("span", { class: "totals", "aria-live": "polite",
                                   title: "added up over all coroutines and threads: more than has passed, where several ran or waited at once" });
        this.tabs = el("nav", { class: "tabs", "aria-label": "views" });
        this.weights = el("span", { class: "group", role: "group", "aria-label": "weight" });
        this.states = el("span", { class: "legend", role: "group", "aria-label": "states" });
        this.sentence = el("p", { class: "sentence" });
        this.empty = el("p", { class: "empty", role: "status", hidden: true });
        const main = el("main", {}, el("div", { class: "toolbar" }, this.weights, this.states, ...this.filters.elements), this.sentence, this.empty,
                        ...app.views.map((view) => view.element));
        app.root.replaceChildren(this.header(), ...verdictElements(app.store.head.verdict ?? null), this.tabs, main);
        /** @type {Record<string, [string, () => void]>} */
        this.keys = this.makeKeys();
    }

    header() {
        const { app } = this, { counters, not_known } = app.store.head, losses = counters.filter((counter) => counter[3]).length + not_known.length;
        const button = (/** @type {string} */ text, /** @type {string} */ key, /** @type {string} */ help, /** @type {() => void} */ run) =>
            el("button", { type: "button", title: help, onclick: run }, text, ...(key ? [el("kbd", { text: key })] : []));
        this.undo = button("undo", "u", "take back the last change", () => app.undo());
        const badge = el("button", { type: "button", class: "badge", title: "what this profile does not know: opens the tab that tells it",
                                     text: `${losses} ${losses === 1 ? "loss" : "losses"}`, onclick: () => app.set({ view: "about" }) });
        this.theme = button("", "d", "colours: as the system says, dark, light", () => this.help.nextTheme());
        return el("header", {}, el("div", { class: "top" },
            el("h1", { text: app.store.head.title }), this.totals, ...(losses > 0 ? [badge] : []), el("span", { class: "spacer" }),
            el("span", { class: "toolbar" }, this.undo, button("reset", "", "take away all filters", () => this.reset()),
               button("copy link", "", "copy the address of exactly this view", () => this.help.copyLink()), this.theme,
               button("help", "?", "all keys", () => this.help.open()))));
    }

    /** @returns {Record<string, [string, () => void]>} */
    makeKeys() {
        const { app } = this;
        /** @type {Record<string, [string, () => void]>} */
        const keys = {};
        for (const view of app.views)
            keys[view.letter] = [`view: ${view.title}`, () => app.set({ view: view.key })];
        return Object.assign(keys, {
            "w": ["next weight", () => this.nextWeight(1)],
            "W": ["weight before", () => this.nextWeight(-1)],
            "p": ["add a filter", () => this.filters.toggle()],
            "u": ["undo", () => app.undo()],
            "d": ["colours: as the system says, dark, light", () => this.help.nextTheme()],
            "?": ["help", () => this.help.open()],
        });
    }

    /** Everything as it was opened, in the same view. */
    reset() {
        this.app.set({ ...SELECTION_DEFAULTS, view: this.app.selection.view });
    }

    /** @param {number} step */
    nextWeight(step) {
        const keys = Object.keys(WEIGHTS).filter((key) => this.sums.of(key).samples > 0), at = keys.indexOf(this.app.weight);
        if (keys.length > 0)
            this.app.set({ weight: keys[(at + step + keys.length) % keys.length] });
    }

    /** Whether a part must be made anew. @param {string} part @param {any[]} from */
    changed(part, ...from) {
        const key = JSON.stringify(from), is = this.made[part] !== key;
        this.made[part] = key;
        return is;
    }

    draw() {
        const { app } = this, { selection } = app;
        if (this.changed("tabs", app.view.key))
            this.drawTabs();
        if (this.changed("weights", app.weight))
            this.drawWeights();
        if (this.changed("states", app.weight, selection.state, app.looks.dark))
            this.drawStates();
        this.theme?.replaceChildren(this.help.themeText(), el("kbd", { text: "d" }));
        this.undo?.toggleAttribute("disabled", app.before.length === 0);
        this.drawTotals();
        this.filters.draw();
        const why = app.view.empty();
        this.empty.hidden = why === null;
        this.empty.textContent = why;
        this.sentence.textContent = why === null ? app.view.sentence() : "";
    }

    drawTabs() {
        const { app } = this;
        this.tabs.replaceChildren(...app.views.map((view) =>
            el("button", { type: "button", "aria-current": view === app.view ? "page" : null, "data-view": view.key,
                           onclick: () => app.set({ view: view.key }) }, view.title, el("kbd", { text: view.letter }))));
    }

    drawWeights() {
        const { app } = this;
        this.weights.replaceChildren(...Object.values(WEIGHTS).map((weight) => {
            const has = this.sums.of(weight.name).samples > 0;
            return el("button", { type: "button", text: weight.text, "aria-pressed": String(weight.name === app.weight), disabled: !has,
                                  title: has ? weight.what : WEIGHT_MISSING[weight.name], "data-weight": weight.name,
                                  onclick: () => app.set({ weight: weight.name }) });
        }));
    }

    /** Chips of the states that the weight is made of: each is taken out and put back by a click. */
    drawStates() {
        const { app } = this, { head } = app.store, sums = this.sums.of(app.weight).states;
        const there = WEIGHTS[app.weight].states.filter((state) => sums[state] > 0);
        const chosen = numbersOf(app.selection.state);
        this.states.replaceChildren(...(there.length < 2 ? [] : there).map((state) => {
            const on = !chosen || chosen.has(state), swatch = el("canvas", { class: "swatch", width: 16, height: 12, "aria-hidden": "true" });
            app.looks.fill(/** @type {CanvasRenderingContext2D} */ (swatch.getContext("2d")), state, "", 0, 0, 16, 12);
            return el("button", { type: "button", class: "chip", "aria-pressed": String(on), "data-state": state,
                                  title: on ? `take ${head.states[state]} out` : `put ${head.states[state]} back`,
                                  onclick: () => this.toggleState(state, there) }, swatch, head.states[state]);
        }));
    }

    /** @param {number} state @param {number[]} there states that have something */
    toggleState(state, there) {
        const now = numbersOf(this.app.selection.state) ?? new Set(there);
        if (!now.delete(state))
            now.add(state);
        const all = there.every((one) => now.has(one)) || now.size === 0;
        this.app.set({ state: all ? "" : [...now].sort().join(",") });
    }

    drawTotals() {
        const { app } = this, { sum, baseSum, count } = app.weights(), all = this.sums.of(app.weight);
        const text = WEIGHTS[app.weight].text, two = app.store.head.sides.length > 1;
        if (!this.changed("totals", sum, baseSum, count, text))
            return;
        const sampled = app.weight === "delay" ? "delays" : "samples";
        this.totals.replaceChildren(el("strong", { text: `${secondsText(sum)} s` }), ` ${text}`,
            ...(two ? [`, base ${secondsText(baseSum)} s`] : []), `, ${percentText(sum + baseSum, all.ns)} of all, ${countText(count)} ${sampled}`);
    }
}

/** The sum of each weight over the whole file. */
class WeightSums {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        /** @type {Map<string, {ns: number, samples: number, states: Float64Array}>} */
        this.kept = new Map();
        /** @type {Map<Facts, {states: Float64Array, rows: Float64Array}>} */
        this.rows = new Map();
    }

    /** Sum without filters. @param {string} weight */
    of(weight) {
        let found = this.kept.get(weight);
        if (!found) {
            const { states, rows } = this.statesOf(this.app.store.factsOf(weight)), wanted = WEIGHTS[weight].states;
            const sum = (/** @type {Float64Array} */ values) => wanted.reduce((all, state) => all + values[state], 0);
            found = { ns: sum(states), samples: sum(rows), states };
            this.kept.set(weight, found);
        }
        return found;
    }

    /** By state: ns and how many rows. Several weights are of the same rows. @param {Facts} facts */
    statesOf(facts) {
        let found = this.rows.get(facts);
        if (!found) {
            const count = this.app.store.head.states.length, states = new Float64Array(count), rows = new Float64Array(count);
            for (let i = 0; i < facts.count; i++) {
                states[facts.state[i]] += facts.weight[i];
                rows[facts.state[i]]++;
            }
            this.rows.set(facts, found = { states, rows });
        }
        return found;
    }
}
