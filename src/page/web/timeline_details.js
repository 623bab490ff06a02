// SPDX-License-Identifier: MIT
// The timeline's words: on the thing under the pointer or chosen, a long slice's victims, the segments of a critical path.
"use strict";

/**
 * The subject of the details: an activity's part, a span, a long slice or a coroutine.
 * @typedef {{kind: "activity" | "span" | "hog" | "coro", number: number, state: number}} TimelineFocus
 */

/** Moments "from - to (length)". @param {number} from @param {number} to ns */
function periodText(from, to) {
    return `${timeText(from)} to ${timeText(to)} (${timeText(to - from)})`;
}

/**
 * A fact, if there is one: if its value is not 0.
 * @param {number} value @param {string} what @param {(value: number) => string} textOf @returns {[string, string][]}
 */
function factIf(value, what, textOf) {
    return value > 0 ? [[what, textOf(value)]] : [];
}

class TimelineDetails {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.store = app.store;
        this.line = el("div", { class: "details", role: "status" });
        this.more = el("div", {});
        this.said = "";
        /** Column by which each table is sorted; "" is as it comes. */
        this.sorts = { path: "", victims: "" };
        /** Draws the tables anew. */
        this.again = () => {};
    }

    /** @param {"path" | "victims"} table */
    sorter(table) {
        return (/** @type {string} */ sort) => {
            this.sorts[table] = sort;
            this.again();
        };
    }

    /** Facts about a focus: a title, then what and value. @param {TimelineFocus} focus @returns {[string, ...[string, string][]]} */
    factsOf(focus) {
        return focus.kind === "span" ? this.spanFacts(focus.number) : focus.kind === "hog" ? this.hogFacts(focus.number)
            : focus.kind === "coro" ? this.coroFacts(focus.number) : this.activityFacts(focus.number, focus.state);
    }

    /** @param {number} trace +1 @returns {[string, string][]} */
    traceFact(trace) {
        return factIf(trace, "trace", () => this.store.head.traces[trace - 1]);
    }

    /** @param {number} i @param {number} state @returns {[string, ...[string, string][]]} */
    activityFacts(i, state) {
        const { store } = this, { activity, head } = store, index = activitiesOf(store), parts = index.partsOf(i);
        const part = parts.find((one) => one.state === state) ?? parts[0], ready = index.readyAt(i);
        const turns = part && part.share < 1 ? `, in turns with short waits: ${percentText(part.share, 1)} of the time` : "";
        return [store.coroText(activity.coro[i]),
                ...(part ? [/** @type {[string, string]} */ ([head.states[part.state] + turns, periodText(part.from, part.to)])] : []),
                ...factIf(activity.thread[i], "thread", (thread) => head.threads[thread - 1]),
                ...factIf(activity.waker[i], ready >= 0 ? `woken at ${timeText(ready)} by` : "woken by", (waker) => store.coroText(waker - 1)),
                ...this.traceFact(activity.trace[i])];
    }

    /** @param {number} i @returns {[string, ...[string, string][]]} */
    spanFacts(i) {
        const { names, span } = this.store;
        return [`span ${names[span.name[i]]}`, [names[span.kind[i]] || "span", periodText(span.start[i], span.start[i] + span.length[i])],
                ...factIf(span.flags[i] & 1, "it", () => "failed"), ...factIf(span.flags[i] & 2, "it", () => "had not ended"),
                ...["cpu", "ready", "parked", "blocked"].flatMap((key) => factIf(span[key][i], key.replace("cpu", "CPU"), timeText)),
                ...factIf(span.coro[i], "coroutine", (coro) => this.store.coroText(coro - 1)), ...this.traceFact(span.trace[i])];
    }

    /** @param {number} i @returns {[string, ...[string, string][]]} */
    hogFacts(i) {
        const { hog, head } = this.store, code = RanCode.of(this.store);
        const ran = this.store.functionText(code.node(hog.coro[i], hog.start[i], hog.start[i] + hog.length[i]), true);
        return [`long slice of ${this.store.coroText(hog.coro[i])}`, ["", periodText(hog.start[i], hog.start[i] + hog.length[i])],
                ...factIf(ran.length, "ran", () => ran),
                ["others were ready meanwhile for", head.delays_known === false ? "not known" : timeText(hog.delay[i])],
                ...factIf(head.delays_known === false ? 0 : 1, "victims", () => countText(hog.victims[i])),
                ...factIf(hog.thread[i], "thread", (thread) => head.threads[thread - 1]), ...this.traceFact(hog.trace[i])];
    }

    /** @param {number} i @returns {[string, ...[string, string][]]} */
    coroFacts(i) {
        const { coro } = this.store, birth = activitiesOf(this.store).birthOf(i), site = spawnSiteOf(this.store, i);
        return [this.store.coroText(i), ...factIf(birth + 1, "first seen at", () => timeText(birth)),
                ...["cpu", "ready", "parked", "waiting", "blocked"].flatMap((key) => factIf(coro[key][i], key.replace("cpu", "CPU"), timeText)),
                ["longest slice", timeText(coro.longest[i])], ["switches", countText(coro.switches[i])],
                ...factIf(coro.parent[i], "spawned by", (parent) => this.store.coroText(parent - 1)), ...factIf(site.length, "at", () => site)];
    }

    /** @param {TimelineFocus | null} focus */
    show(focus) {
        const [title, ...facts] = focus ? this.factsOf(focus) : ["Point at a row, or choose one with the arrow keys."];
        const said = JSON.stringify([title, facts]);
        if (said === this.said)
            return;
        this.said = said;
        this.line.replaceChildren(el("b", { text: title }), ...facts.map(([what, value]) => el("span", { text: `${what} ${value}`.trim() })));
    }

    /**
     * Tables that stay while something is chosen.
     * @param {number} request -1: none @param {number[]} segments @param {TimelineFocus | null} focus
     */
    showTables(request, segments, focus) {
        this.again = () => this.showTables(request, segments, focus);
        this.more.replaceChildren(...(focus?.kind === "hog" ? [this.victims(focus.number)] : []),
            ...(request >= 0 ? [this.pathTable(request, segments)] : []));
    }

    /** @param {number} number of a long slice */
    victims(number) {
        const { victim, head } = this.store, rows = [];
        for (let i = 0; i < victim.hog.length; i++)
            if (victim.hog[i] === number)
                rows.push(i);
        rows.sort((a, b) => victim.delay[b] - victim.delay[a]);
        return sortedTable([
            { title: "Coroutine", left: true, text: (i) => this.store.coroText(victim.coro[i]), value: (i) => victim.coro[i] },
            { title: "Delay", text: (i) => timeText(victim.delay[i]), value: (i) => victim.delay[i] },
            { title: "Trace", left: true, text: (i) => victim.trace[i] > 0 ? head.traces[victim.trace[i] - 1] : "", value: (i) => victim.trace[i] },
        ], rows, this.sorts.victims, this.sorter("victims"), {
            caption: `What had to wait for this slice: ${countText(rows.length)} of ${countText(this.store.hog.victims[number])} are in this file.`,
            limit: 100, onChoose: (i) => this.app.set({ row: `coro:${victim.coro[i]}` }) });
    }

    /** Innermost frame of a segment's stack. @param {number} i */
    leafOf(i) {
        const { segment, node } = this.store;
        return segment.node[i] > 1 ? this.store.nameOf(node.frame[segment.node[i] - 1]) : "";
    }

    /** "The segments add up to 5 ms, the latency". @param {number} request @param {number[]} segments */
    sumText(request, segments) {
        const sum = segments.reduce((total, i) => total + this.store.segment.length[i], 0), latency = this.store.request.latency[request];
        if (segments.length === 0)
            return "This file has no critical path of it: paths are kept of the slowest requests.";
        const apart = `its latency is ${timeText(latency)}, ${timeText(Math.abs(latency - sum))} ${latency > sum ? "more" : "less"}.`;
        return `${countText(segments.length)} segments, ${timeText(sum)} in all: ${sum === latency ? "exactly its latency." : apart}`;
    }

    /** @param {number} request @param {number[]} segments */
    pathTable(request, segments) {
        const { store, app } = this, { segment, head } = store, start = store.request.start[request];
        const endpoint = head.endpoints[store.request.endpoint[request]]?.text ?? "";
        const caption = `Critical path of request ${request + 1}, ${endpoint}: ${this.sumText(request, segments)}`;
        return sortedTable([
            { title: "From", text: (i) => `+${timeText(segment.from[i] - start)}`, value: (i) => segment.from[i] },
            { title: "Length", text: (i) => timeText(segment.length[i]), value: (i) => segment.length[i] },
            { title: "Share", text: (i) => percentText(segment.length[i], store.request.latency[request]), value: (i) => segment.length[i] },
            { title: "State", left: true, text: (i) => head.states[segment.state[i]], value: (i) => segment.state[i] },
            { title: "Coroutine", left: true, text: (i) => store.coroText(segment.coro[i]), value: (i) => segment.coro[i] },
            { title: "Leaf", left: true, text: (i) => this.leafOf(i), value: (i) => this.leafOf(i) },
        ], segments, this.sorts.path, this.sorter("path"), { caption, limit: 200, onChoose: (i) => app.set({ row: `coro:${segment.coro[i]}` }) });
    }
}
