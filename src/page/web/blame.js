// SPDX-License-Identifier: MIT
// Causes of waits: long slices and their victims, wakers, coroutines that nothing resumed.
"use strict";

const BLAME_GROUPS = [["", "names"], ["coroutine", "coroutines"], ["endpoint", "endpoints"]];
const MATRIX_SIZE = 8;

/** @typedef {{hog: number, victims: number[]}} Slice victims: rows of the store's */
/**
 * @typedef {object} BlameModel what a selection takes
 * @property {string} key
 * @property {BlameGroups} groups
 * @property {Slice[]} slices
 * @property {DelayPair[]} pairs
 * @property {WakePair[]} wakes
 * @property {LastWait[]} unresumed
 * @property {(coro: number, trace: number, from: number, to: number) => boolean} takes coroutines
 */

class BlameView {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.key = "blame";
        this.title = "Blame";
        this.letter = "b";
        this.blame = new Blame(app.store);
        /** @type {Record<string, string>} how each table but that of slices is sorted */
        this.sorts = {};
        this.parts = Object.fromEntries(["group", "delays", "slices", "wakes", "unresumed", "longest"]
            .map((name) => [name, el("section", { "aria-label": name })]));
        this.element = el("div", { class: "blame" }, ...Object.values(this.parts));
        /** @type {Record<string, [string, () => void]>} */
        this.keys = { g: ["sum up by names, coroutines, endpoints in turn", () => this.nextGroup()] };
        this.made = "";
        /** @type {BlameModel | undefined} */
        this.kept = undefined;
        this.ends = new StackEnds(app.store);
        /** By coroutine: node at which it was parked most of the time. @type {Uint32Array | undefined} */
        this.parked = undefined;
    }

    sentence() {
        const { slices } = this.model(), delay = slices.reduce((sum, slice) => sum + this.delayOf(slice), 0);
        const count = `${countText(slices.length)} long ${slices.length === 1 ? "slice" : "slices"}`;
        const waited = this.knows() ? `others were ready and waited ${timeText(delay)} in all` : "how long others were ready and waited is not known";
        return `What kept others waiting: ${count}, for which ${waited}; what ended waits; and what nothing resumed.`;
    }

    empty() {
        const { hog, activity, coro } = this.app.store;
        return hog.coro.length + activity.coro.length + coro.id.length > 0 ? null
            : "This file has no coroutines: no switch was seen. greenprof run knows the switches of many runtimes; greenprof runtimes lists them.";
    }

    nextGroup() {
        const at = BLAME_GROUPS.findIndex(([key]) => key === this.app.selection.group);
        this.app.set({ group: BLAME_GROUPS[(at + 1) % BLAME_GROUPS.length][0] });
    }

    /**
     * The model of the selection; kept until the selection changes.
     * @returns {BlameModel}
     */
    model() {
        const { selection, store } = this.app, { coro, name, entry, spawn, trace, endpoint, request, latency, thread, from, to, group } = selection;
        const key = JSON.stringify([coro, name, entry, spawn, trace, endpoint, request, latency, thread, from, to, group]);
        if (this.kept?.key !== key) {
            const groups = new BlameGroups(store, group), slices = this.blame.slices(selection);
            this.kept = { key, groups, slices, pairs: this.blame.pairs(slices, groups), wakes: this.blame.wakes(selection, groups),
                          unresumed: this.blame.unresumed(selection),
                          takes: this.blame.test({ ...selection, trace: "", endpoint: "", request: "", latency: "" }) };
        }
        return this.kept;
    }

    draw() {
        const model = this.model(), { sort, row } = this.app.selection, key = JSON.stringify([model.key, sort, row, this.sorts]);
        if (key === this.made)
            return;
        this.made = key;
        swapContent(this.parts.group, this.groupButtons());
        swapContent(this.parts.delays, el("h2", { text: "Kept waiting by long slices" }), ...this.delays(model));
        swapContent(this.parts.slices, el("h2", { text: "Long slices" }), ...this.slices(model));
        swapContent(this.parts.wakes, el("h2", { text: "What ended waits" }), this.wakes(model));
        swapContent(this.parts.unresumed, el("h2", { text: "Not resumed any more" }), this.unresumed(model));
        swapContent(this.parts.longest, el("h2", { text: "Longest slice of each coroutine" }), this.longest(model));
    }

    groupButtons() {
        const buttons = BLAME_GROUPS.map(([group, text]) => el("button", { type: "button", text, onclick: () => this.app.set({ group }),
                                                                           "aria-pressed": String(group === this.app.selection.group) }));
        return el("div", { class: "toolbar" }, el("span", { text: "sum up by" }),
                  el("span", { class: "group", role: "group", "aria-label": "sum up by" }, ...buttons));
    }

    /**
     * @param {string} table @param {string} initially
     * @returns {[string, (sort: string) => void]}
     */
    sorting(table, initially) {
        return [this.sorts[table] ?? initially, (sort) => {
            this.sorts[table] = sort;
            this.draw();
        }];
    }

    /** @param {string} text */
    none(text) {
        return el("p", { class: "muted none", text });
    }

    /** Does anything say which coroutines were ready? */
    knows() {
        return this.app.store.head.delays_known !== false;
    }

    /** Why there are no delays. */
    noDelays() {
        const { hog, victim } = this.app.store;
        return hog.coro.length === 0 ? "No slice was so long that it was recorded: 10 ms, or what GREENPROF_HOG_MS says."
            : !this.knows() ? "Not known: the runtime does not say when a coroutine becomes ready; prof_coro_ready() does."
            : victim.hog.length === 0 ? "Nothing is known to have been ready meanwhile."
            : "None is left by the filters.";
    }

    /** @param {BlameModel} model */
    delays(model) {
        const { pairs, groups } = model, { store } = this.app;
        if (pairs.length === 0)
            return [this.none(this.noDelays())];
        const [sort, onSort] = this.sorting("delays", "-waited in all");
        return [this.matrix(model), sortedTable([
            textColumn("kept its thread", (pair) => groups.text(pair.from)), textColumn("had to wait", (pair) => groups.text(pair.to)),
            textColumn("while it ran, mostly", (pair) => store.functionText(mostIn(pair.ran))),
            timeColumn("waited in all", (pair) => pair.total), timeColumn("longest", (pair) => pair.longest),
            countColumn("times", (pair) => pair.count),
        ], pairs, sort, onSort, {
            limit: 100,
            caption: "Time for which it was ready while a long slice kept the thread, or may have been: its loop looked only afterwards",
        })];
    }

    /** @param {BlameModel} model */
    matrix({ pairs, groups }) {
        const ranked = (/** @type {"from" | "to"} */ side) => {
            /** @type {Map<number, number>} */
            const sums = new Map();
            for (const pair of pairs)
                sums.set(pair[side], (sums.get(pair[side]) ?? 0) + pair.total);
            return [...sums].sort((a, b) => b[1] - a[1]).slice(0, MATRIX_SIZE).map(([group]) => group);
        };
        const to = ranked("to"), most = pairs[0].total, cells = new Map(pairs.map((pair) => [`${pair.from} ${pair.to}`, pair.total]));
        const head = el("tr", {}, el("th", { scope: "col", class: "left", text: "kept its thread" }),
                        ...to.map((group) => el("th", { scope: "col", text: groups.text(group) })));
        const cell = (/** @type {number} */ ns) => ns === 0 ? el("td", {})
            : el("td", { text: timeText(ns), style: `background-size: ${(100 * ns / most).toFixed(1)}% 100%` });
        const rows = ranked("from").map((from) => el("tr", {}, el("th", { scope: "row", class: "left", text: groups.text(from) }),
                                                     ...to.map((group) => cell(cells.get(`${from} ${group}`) ?? 0))));
        return el("div", { class: "table matrix" }, el("table", {}, el("caption", { text: `Had to wait, at most ${MATRIX_SIZE} by ${MATRIX_SIZE}` }),
                                                       el("thead", {}, head), el("tbody", {}, ...rows)));
    }

    /** @param {Slice} slice */
    delayOf(slice) {
        const { hog, victim } = this.app.store, all = this.blame.victims.first;
        return slice.victims.length === all[slice.hog + 1] - all[slice.hog] ? hog.delay[slice.hog]
            : slice.victims.reduce((sum, row) => sum + victim.delay[row], 0);
    }

    /** @param {BlameModel} model */
    slices({ slices }) {
        const { app } = this, { hog, head } = app.store, { sort, row } = app.selection;
        if (slices.length === 0)
            return [this.none(hog.coro.length > 0 ? "None is left by the filters." : this.noDelays())];
        /** @type {Column<Slice>[]} */
        const columns = [
            textColumn("coroutine", (one) => app.store.coroText(hog.coro[one.hog]), (one) => hog.coro[one.hog]),
            timeColumn("start", (one) => hog.start[one.hog]), timeColumn("length", (one) => hog.length[one.hog]),
            textColumn("ran", (one) => app.store.functionText(this.blame.ranIn(one.hog)) + this.ends.above(this.blame.ranIn(one.hog))),
            ...(this.knows() ? [timeColumn("others waited", (/** @type {Slice} */ one) => this.delayOf(one)),
                                countColumn("victims", (/** @type {Slice} */ one) => one.victims.length)] : []),
            textColumn("thread", (one) => head.threads[hog.thread[one.hog] - 1] ?? ""),
        ];
        const known = columns.some((column) => column.title === sort.replace(/^-/, "")), chosen = slices.find((one) => `hog${one.hog}` === row);
        const table = sortedTable(columns, slices, known ? sort : this.knows() ? "-others waited" : "-length", (next) => app.set({ sort: next }),
            { limit: 200, caption: "Each of them: choose one for its victims, its timeline and its flame graph", chosen: (one) => one === chosen,
              onChoose: (one) => app.set({ row: one === chosen ? "" : `hog${one.hog}` }) });
        return chosen ? [table, this.oneSlice(chosen)] : [table];
    }

    /** @param {Slice} slice */
    oneSlice({ hog: number, victims }) {
        const { app } = this, { hog, victim, head } = app.store, coro = hog.coro[number], start = hog.start[number], trace = hog.trace[number];
        const range = { from: String(start), to: String(start + hog.length[number]), row: `coro:${coro}` };
        const thread = hog.thread[number] > 0 ? `thread ${head.threads[hog.thread[number] - 1]}` : "its thread";
        const ran = app.store.functionText(this.blame.ranIn(number), true);
        const text = `${app.store.coroText(coro)}${ran && `, which ran ${ran},`} kept ${thread} for ${timeText(hog.length[number])}, ` +
            `from ${timeText(start)} on` +
            `${trace > 0 ? `, for trace ${head.traces[trace - 1]}` : ""}; ` +
            (this.knows() ? `others waited ${timeText(hog.delay[number])} meanwhile.` : "how long others were ready meanwhile is not known.");
        return el("div", { class: "panel slice" }, el("p", { text }), el("div", { class: "toolbar" },
            el("button", { type: "button", text: "timeline of it", onclick: () => app.set({ view: "timeline", ...range }) }),
            el("button", { type: "button", text: "flame graph: what others waited for", onclick: () => this.choose(coro, "delay") })),
            sortedTable([
                textColumn("had to wait", (row) => app.store.coroText(victim.coro[row])), timeColumn("for", (row) => victim.delay[row]),
                textColumn("trace", (row) => head.traces[victim.trace[row] - 1] ?? ""),
            ], [...victims].sort((a, b) => victim.delay[b] - victim.delay[a]), "", () => {}, { limit: 50, fixed: true, caption: "Its victims" }));
    }

    /** @param {BlameModel} model */
    wakes({ wakes, groups }) {
        const { waker } = this.app.store.activity, [sort, onSort] = this.sorting("wakes", "-was parked");
        if (wakes.length === 0)
            return this.none(waker.some((coro) => coro > 0) ? "None is left by the filters."
                : "What ended waits is not known: no coroutine ended another's, or the runtime does not say which did.");
        return sortedTable([
            textColumn("ended the wait", (pair) => groups.text(pair.from)), textColumn("of", (pair) => groups.text(pair.to)),
            timeColumn("was parked", (pair) => pair.parked, "until it was made ready"), timeColumn("longest", (pair) => pair.longest, "time parked"),
            { title: "then ready", text: (pair) => pair.unknown === pair.count ? "-" : timeText(pair.ready), value: (pair) => pair.ready,
              help: "until it ran; -: not known" },
            countColumn("times", (pair) => pair.count),
        ], wakes, sort, onSort, { limit: 100, caption: "Waits of coroutines that other coroutines ended" });
    }

    /** @param {number} coro @param {string} [weight] of the flame graph */
    choose(coro, weight = "wall") {
        this.app.set({ view: "flame", weight, coro: String(coro), name: "", entry: "", spawn: "", row: "", zoom: "" });
    }

    /** @param {BlameModel} model */
    unresumed({ unresumed }) {
        const { store } = this.app, { coro } = store, [sort, onSort] = this.sorting("unresumed", "-for");
        if (unresumed.length === 0)
            return this.none(store.activity.coro.length === 0 ? "Not known: this file has no timeline of its coroutines."
                : "No coroutine that the filters leave was waiting when the capture ended.");
        this.parked ??= this.blame.parkedAt();
        const { ends, parked } = this, place = (/** @type {LastWait} */ one) => {
            const node = store.functionNode(parked[one.coro]);
            return node > 0 ? store.nameOf(store.node.frame[node]) + ends.above(node) : "";
        };
        return sortedTable([
            textColumn("coroutine", (one) => store.coroText(one.coro), (one) => one.coro), textColumn("state", (one) => one.state),
            timeColumn("since", (one) => one.since), timeColumn("for", (one) => one.wait), textColumn("parked most of the time in", place),
            textColumn("first function", (one) => coro.entry[one.coro] > 0 ? store.names[coro.entry[one.coro] - 1] : ""),
            textColumn("spawned at", (one) => spawnSiteOf(store, one.coro)),
        ], unresumed, sort, onSort, { limit: 100, onChoose: (one) => this.choose(one.coro),
            caption: "They waited when the capture ended: idle ones of a pool, or such as nothing will ever resume (a leak)" });
    }

    /** @param {BlameModel} model */
    longest({ takes }) {
        const { store } = this.app, { coro } = store, [sort, onSort] = this.sorting("longest", "-longest slice");
        const rows = [...coro.longest.keys()].filter((i) => coro.longest[i] > 0 && !(coro.flags[i] & CORO.thread) && takes(i, 0, 0, Infinity));
        if (rows.length === 0)
            return this.none("Not known: no coroutine that the filters leave has a ledger.");
        return sortedTable([
            textColumn("coroutine", (i) => store.coroText(i), (i) => i), timeColumn("longest slice", (i) => coro.longest[i]),
            timeColumn("CPU", (i) => coro.cpu[i]), timeColumn("blocked", (i) => coro.blocked[i]), timeColumn("ready", (i) => coro.ready[i]),
            countColumn("switches", (i) => coro.switches[i]),
        ], rows, sort, onSort, { limit: 50, onChoose: (i) => this.choose(i),
                                 caption: "A slice is the time from a switch to the coroutine to the next switch" });
    }
}

VIEWS.push((app) => new BlameView(app));
