// SPDX-License-Identifier: MIT
// The filters: a pill for each active one, and a control that adds one from the values in the data, heaviest first.
"use strict";

/**
 * Something that the data is filtered by.
 * @typedef {object} Dimension
 * @property {keyof Selection} key of the selection
 * @property {string} title
 * @property {boolean} [many] holds several numbers
 * @property {(app: App, row: number, facts: Facts) => number} [groupOf] the value of a row, -1 = none
 * @property {(app: App, value: number) => string} [textOf] what is shown of a value
 * @property {(app: App, value: number) => string} [keyOf] what the selection holds of it; absent: the text
 * @property {boolean} [typed] a regular expression that is typed in
 */

/** @param {number[] | string[]} texts numbers of equal texts @returns {Int32Array} */
function firstOfEach(texts) {
    /** @type {Map<any, number>} */
    const first = new Map();
    return Int32Array.from(/** @type {any[]} */ (texts), (text, i) => {
        if (text === "")
            return -1;
        if (!first.has(text))
            first.set(text, i);
        return /** @type {number} */ (first.get(text));
    });
}

/** "/orders 12.345 ms". @param {Store} store @param {number} request */
function requestText(store, request) {
    const { endpoint, latency, trace } = store.request, id = trace[request] > 0 ? " " + store.head.traces[trace[request] - 1].slice(0, 8) : "";
    return `${store.head.endpoints[endpoint[request]]?.text ?? "request"} ${timeText(latency[request])}${id}`;
}

/** @type {Dimension[]} */
const DIMENSIONS = [
    { key: "coro", title: "coroutine", many: true, groupOf: (app, row, facts) => app.store.label.coro[facts.label[row]] - 1,
      textOf: (app, value) => app.store.coroText(value), keyOf: (_, value) => String(value) },
    { key: "name", title: "name", groupOf: (app, row, facts) => ofCoro(app, facts.label[row], (coro) => app.store.coro.name[coro]),
      textOf: (app, value) => app.store.head.coroutines[value] },
    { key: "entry", title: "entry function", groupOf: (app, row, facts) => ofCoro(app, facts.label[row], (coro) => app.store.coro.entry[coro] - 1),
      textOf: (app, value) => app.store.names[value] },
    { key: "spawn", title: "spawn site", groupOf: (app, row, facts) => ofCoro(app, facts.label[row], (coro) => spawnGroups(app)[coro]),
      textOf: (app, value) => spawnSiteOf(app.store, value) },
    { key: "trace", title: "trace", groupOf: (app, row, facts) => app.store.label.trace[facts.label[row]] - 1,
      textOf: (app, value) => app.store.head.traces[value] },
    { key: "endpoint", title: "endpoint", groupOf: (app, row, facts) => {
        const request = app.store.label.request[facts.label[row]];
        return request > 0 ? app.store.request.endpoint[request - 1] : -1;
    }, textOf: (app, value) => app.store.head.endpoints[value].text },
    { key: "request", title: "request", many: true, groupOf: (app, row, facts) => app.store.label.request[facts.label[row]] - 1,
      textOf: (app, value) => requestText(app.store, value), keyOf: (_, value) => String(value) },
    { key: "thread", title: "thread", groupOf: (app, row, facts) => app.store.label.thread[facts.label[row]] - 1,
      textOf: (app, value) => app.store.head.threads[value] },
    { key: "state", title: "state", many: true, groupOf: (_, row, facts) => facts.state[row],
      textOf: (app, value) => app.store.head.states[value], keyOf: (_, value) => String(value) },
    { key: "focus", title: "stacks with", typed: true },
    { key: "hide", title: "without frames", typed: true },
    { key: "hideModule", title: "without library", groupOf: (app, row, facts) => moduleGroups(app)[app.store.node.frame[facts.node[row]]],
      textOf: (app, value) => app.store.head.modules[app.store.frame.module[value]] },
];

/** @param {App} app @param {number} label @param {(coro: number) => number} what */
function ofCoro(app, label, what) {
    const coro = app.store.label.coro[label];
    return coro > 0 ? what(coro - 1) : -1;
}

/** @type {WeakMap<Store, {spawn?: Int32Array, modules?: Int32Array}>} */
const filterGroups = new WeakMap();

/** By coroutine: the first coroutine that was spawned at the same place. @param {App} app */
function spawnGroups(app) {
    const kept = filterGroups.get(app.store) ?? {};
    filterGroups.set(app.store, kept);
    return kept.spawn ??= firstOfEach(Array.from({ length: app.store.coroCount }, (_, i) => spawnSiteOf(app.store, i)));
}

/** By frame: the first frame of the same library. @param {App} app */
function moduleGroups(app) {
    const { store } = app, kept = filterGroups.get(store) ?? {};
    filterGroups.set(store, kept);
    return kept.modules ??= firstOfEach(Array.from(store.frame.module, (module) => store.head.modules[module]));
}

class FilterBar {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.made = "";
        this.adder = new FilterAdder(app);
        this.pills = el("span", { class: "toolbar filters", role: "group", "aria-label": "filters" });
        this.add = el("button", { type: "button", class: "add-filter", "aria-haspopup": "dialog", onclick: () => this.toggle() },
                      "filter", el("kbd", { text: "p" }));
        this.elements = [this.add, this.pills];
    }

    toggle() {
        this.adder.toggle(this.add);
    }

    draw() {
        const active = this.active(), key = JSON.stringify(active);
        if (key === this.made)
            return;
        this.made = key;
        const buttons = [...this.pills.children], at = buttons.indexOf(/** @type {Element} */ (document.activeElement));
        this.pills.replaceChildren(...active.map((filter) => this.pill(filter)));
        if (at >= 0)
            /** @type {HTMLElement} */ (this.pills.children[Math.min(at, active.length - 1)] ?? this.add).focus();
        this.adder.refresh();
    }

    /** @returns {{key: string, text: string, patch: Record<string, string>}[]} */
    active() {
        const { selection, store } = this.app, found = [];
        for (const dimension of DIMENSIONS) {
            const value = selection[dimension.key];
            if (value !== "")
                found.push({ key: dimension.key, text: `${dimension.title}: ${this.valueText(dimension, value)}`, patch: { [dimension.key]: "" } });
        }
        if (selection.from !== "" || selection.to !== "") {
            const to = selection.to === "" ? store.head.duration_ns : Number(selection.to);
            found.push({ key: "time", text: `time: ${timeText(Number(selection.from || 0))} to ${timeText(to)}` +
                         (store.head.tick_ns > 0 ? "" : " (this file does not know when: not used)"), patch: { from: "", to: "" } });
        }
        if (selection.latency !== "")
            found.push({ key: "latency", text: `requests that took ${selection.latency.split(",").map((ns) => timeText(Number(ns))).join(" to ")}`,
                         patch: { latency: "" } });
        return found;
    }

    /** @param {Dimension} dimension @param {string} value */
    valueText(dimension, value) {
        if (!dimension.many)
            return value;
        const numbers = [...(numbersOf(value) ?? [])], shown = numbers.slice(0, 3).map((one) => {
            try {
                return dimension.textOf?.(this.app, one) ?? "?";
            } catch {
                return `${one} (not in this file)`;
            }
        });
        return shown.join(", ") + (numbers.length > 3 ? ` and ${numbers.length - 3} more` : "");
    }

    /** @param {{key: string, text: string, patch: Record<string, string>}} filter */
    pill(filter) {
        const remove = () => this.app.set(filter.patch);
        return el("button", { type: "button", class: "pill", text: filter.text, title: "take this filter away", "data-filter": filter.key,
                              "aria-label": `${filter.text}: take this filter away`, onclick: remove,
                              onkeydown: (/** @type {KeyboardEvent} */ event) => {
                                  if (event.key === "Delete" || event.key === "Backspace") {
                                      event.stopPropagation();
                                      event.preventDefault();
                                      remove();
                                  }
                              } });
    }
}

/** The menu of filters: dimensions, and the values of one with their weights. */
class FilterAdder {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.dimension = DIMENSIONS[0];
        this.search = el("input", { type: "search", "aria-label": "search the values", oninput: () => this.list(),
                                    onkeydown: (/** @type {KeyboardEvent} */ event) => this.typed(event) });
        this.dimensions = el("div", { class: "dimensions", role: "group", "aria-label": "filter by" });
        this.options = el("ul", { class: "options" });
        this.note = el("p", { class: "muted", role: "status" });
        this.element = el("div", { class: "popover", role: "dialog", "aria-label": "add a filter", hidden: true,
                                   onkeydown: (/** @type {KeyboardEvent} */ event) => this.key(event) },
                          this.dimensions, this.search, this.options, this.note);
        document.body.append(this.element);
        addEventListener("pointerdown", (event) => {
            const inside = this.element.contains(/** @type {Node} */ (event.target)) || this.opener?.contains(/** @type {Node} */ (event.target));
            if (!this.element.hidden && !inside)
                this.element.hidden = true;
        }, true);
    }

    /** @param {HTMLElement} opener */
    toggle(opener) {
        this.opener = opener;
        if (!this.element.hidden)
            return this.close();
        this.element.hidden = false;
        const at = opener.getBoundingClientRect(), room = document.documentElement.clientWidth - this.element.offsetWidth - 4;
        this.element.style.left = `${Math.max(0, Math.min(at.left + scrollX, room))}px`;
        this.element.style.top = `${at.bottom + scrollY + 4}px`;
        this.choose(this.dimension);
    }

    close() {
        this.element.hidden = true;
        this.opener?.focus();
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        event.stopPropagation();
        const buttons = [...this.options.querySelectorAll("button")], at = buttons.indexOf(/** @type {any} */ (document.activeElement));
        if (event.key === "Escape")
            this.close();
        else if (event.key === "ArrowDown")
            (buttons[at + 1] ?? buttons[0])?.focus();
        else if (event.key === "ArrowUp")
            (at > 0 ? buttons[at - 1] : this.search).focus();
        else
            return;
        event.preventDefault();
    }

    /** Enter takes the expression, or the first value. @param {KeyboardEvent} event */
    typed(event) {
        if (event.key !== "Enter")
            return;
        if (!this.dimension.typed)
            return this.options.querySelector("button")?.click();
        if (this.search.value !== "" && regexOf(this.search.value)) {
            this.app.set({ [this.dimension.key]: this.search.value });
            this.close();
        }
    }

    /** @param {Dimension} dimension */
    choose(dimension) {
        this.dimension = dimension;
        this.search.value = dimension.typed ? this.app.selection[dimension.key] : "";
        this.search.placeholder = dimension.typed ? "a regular expression, then Enter" : `search: ${dimension.title}`;
        this.refresh();
        this.search.focus();
    }

    /** Weights have changed, or the dimension. */
    refresh() {
        if (this.element.hidden)
            return;
        this.dimensions.replaceChildren(...DIMENSIONS.map((one) =>
            el("button", { type: "button", text: one.title, "aria-pressed": String(one === this.dimension), "data-dimension": one.key,
                           onclick: () => this.choose(one) })));
        this.values = this.dimension.typed ? [] : this.weigh(this.dimension);
        this.list();
    }

    /** Values with their weights under all other filters. @param {Dimension} dimension @returns {{value: number, text: string, weight: number}[]} */
    weigh(dimension) {
        const { app } = this, facts = app.store.factsOf(app.weight), groupOf = /** @type {NonNullable<Dimension["groupOf"]>} */ (dimension.groupOf);
        const filter = filterOf(app.store, { ...app.selection, [dimension.key]: "" });
        /** @type {Map<number, number>} */
        const sums = new Map();
        for (let i = 0; i < facts.count; i++) {
            if (!filter.labels[facts.label[i]] || !filter.states[facts.state[i]] ||
                (filter.timed && (facts.tick[i] < filter.firstTick || facts.tick[i] > filter.lastTick)))
                continue;
            const group = groupOf(app, i, facts);
            if (group >= 0)
                sums.set(group, (sums.get(group) ?? 0) + facts.weight[i]);
        }
        this.whole = app.chrome?.sums.of(app.weight).ns ?? 0;
        return [...sums].map(([value, weight]) => ({ value, weight, text: dimension.textOf?.(app, value) ?? "" }))
            .sort((a, b) => b.weight - a.weight);
    }

    /** The values that match what is typed, 200 at most. */
    list() {
        const { dimension, app } = this, wanted = regexOf(this.search.value);
        this.search.setAttribute("aria-invalid", String(wanted === false));
        const found = (this.values ?? []).filter((one) => !wanted || wanted.test(one.text)), shown = found.slice(0, 200);
        const taken = dimension.many ? numbersOf(app.selection[dimension.key]) : null;
        this.options.replaceChildren(...shown.map((one) => {
            const share = this.whole ? 100 * one.weight / this.whole : 0, key = dimension.keyOf?.(app, one.value) ?? one.text;
            const on = taken ? taken.has(one.value) : app.selection[dimension.key] === key;
            return el("li", {}, el("button", { type: "button", "aria-pressed": String(on), style: `background-size: ${share.toFixed(1)}% 100%`,
                                               onclick: () => this.take(key, on) },
                                   el("span", { text: one.text }),
                                   el("span", { text: `${timeText(one.weight)}  ${percentText(one.weight, this.whole ?? 0)}` })));
        }));
        this.note.textContent = dimension.typed ? "Enter: takes the expression" : found.length === 0 ? "There is nothing of this in what is shown."
            : found.length > 200 ? `${countText(found.length)} found, the heaviest 200 are shown: type to search`
            : `${found.length} found` + (dimension.many ? "; several can be chosen" : "");
    }

    /** @param {string} key @param {boolean} on whether it is in force already */
    take(key, on) {
        const { app, dimension } = this, now = app.selection[dimension.key];
        if (dimension.many) {
            const all = now === "" ? [] : now.split(",");
            app.set({ [dimension.key]: (on ? all.filter((one) => one !== key) : [...all, key]).join(",") });
            return this.search.focus(); // the list is new
        }
        this.close();
        app.set({ [dimension.key]: on ? "" : key });
    }
}
