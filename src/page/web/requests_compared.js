// SPDX-License-Identifier: MIT
// The slowest requests of an endpoint against its others, and what would make it faster.
"use strict";

class ComparedRequests {
    /** @param {App} app @param {Comparison} comparison */
    constructor(app, comparison) {
        this.app = app;
        this.comparison = comparison;
        this.graph = new DifferenceGraph(app);
        this.element = el("section", { "aria-label": "slowest requests against the rest" });
        this.sort = "";
        this.order = "";
        this.key = "";
        /**
         * By node, mean ns of the slow ones and of the rest.
         * @type {[Float64Array, Float64Array] | null}
         */
        this.means = null;
    }

    /**
     * Put it together when the rest of the page is drawn: it looks at all stacks of all requests of an endpoint.
     * @param {number[]} own requests that the filters take, of whatever latency
     * @param {number} endpoint @param {number} percent @param {number} width CSS pixels
     * @param {number} [whole] how many requests the endpoint had, if no filter leaves any out
     */
    draw(own, endpoint, percent, width, whole) {
        const { latency } = this.app.selection, key = JSON.stringify([own.length, own[0], own[own.length - 1], endpoint, percent, latency]);
        this.width = width;
        if (key === this.key) {
            if (this.means && (this.drawnWidth !== width || this.drawnDark !== this.app.looks.dark))
                this.paint();
            return;
        }
        this.key = key;
        this.means = null;
        clearTimeout(this.timer);
        this.timer = setTimeout(() => this.compare(own, endpoint, percent, whole), 0);
    }

    /** @param {number[]} own @param {number} endpoint @param {number} percent @param {number} [whole] */
    compare(own, endpoint, percent, whole) {
        const { store, selection } = this.app, numbers = own.filter((i) => store.request.endpoint[i] === endpoint);
        const lasted = latencyTest(store, selection), chosen = selection.latency !== "";
        const sides = chosen ? { slow: numbers.filter((i) => lasted(i)), rest: numbers.filter((i) => !lasted(i)) }
            : this.comparison.split(numbers, percent, whole);
        const which = chosen ? "chosen latencies" : `slowest ${percent} %`;
        const heading = `The ${which} against the rest: ${store.head.endpoints[endpoint]?.text ?? ""}`;
        if (!sides || sides.slow.length === 0 || sides.rest.length === 0) {
            const why = numbers.length === 0 ? "No request is left by the filters."
                : `There is nothing to compare: all ${countText(numbers.length)} requests are on one side.`;
            this.element.replaceChildren(el("h2", { text: heading }), this.tails(percent), el("p", { class: "muted", text: why }));
            return;
        }
        const slow = this.comparison.measure(sides.slow), rest = this.comparison.measure(sides.rest);
        this.differences = this.comparison.differences(slow, rest);
        this.order = slow.count < 2 || rest.count < 2 ? "the largest difference first, as one side is a single request" : "the surest first";
        this.levers = this.comparison.levers(slow, rest);
        this.means = [this.comparison.nodeMeans(sides.slow), this.comparison.nodeMeans(sides.rest)];
        this.table = el("div", {});
        swapContent(this.element, el("h2", { text: heading }), this.tails(percent), el("p", { class: "why", text: this.sentence(sides, slow, rest) }),
                    this.graph.element, this.table, el("h2", { text: "What would make it faster" }),
                    ...this.leverTexts(store.head.endpoints[endpoint].text));
        this.paint();
        this.drawTable();
    }

    paint() {
        const [slow, rest] = this.means ?? [];
        this.drawnWidth = this.width;
        this.drawnDark = this.app.looks.dark;
        if (slow && rest)
            this.graph.draw(slow, rest, this.width ?? 0);
    }

    /** @param {number} percent */
    tails(percent) {
        const none = this.app.selection.latency !== "";
        const group = el("span", { class: "group", role: "group", "aria-label": "how many requests are the slowest" },
            ...TAILS.map((text) => el("button", { type: "button", text: `${text} %`, "aria-pressed": String(Number(text) === percent && !none),
                                                  onclick: () => this.app.set({ tail: text === "1" ? "" : text, latency: "" }) })));
        return el("div", { class: "toolbar" }, el("span", { text: "slowest:" }), group);
    }

    /** @param {Sides} sides @param {Measured} slow @param {Measured} rest */
    sentence(sides, slow, rest) {
        const tail = this.comparison.tail(sides), a = slow.latency / slow.count, b = rest.latency / rest.count;
        const many = (/** @type {number} */ count) => `${countText(count)} ${count === 1 ? "request" : "requests"}`;
        return `${many(slow.count)} of ${timeText(Math.round(a))} in the mean, against ${many(rest.count)} of ${timeText(Math.round(b))}: ` +
            `${differenceText(a - b)}` + (tail ? `, most of all ${differenceText(tail.slow - tail.rest)} ${tail.text}${tail.above}.` : ".");
    }

    drawTable() {
        const t = (/** @type {Difference} */ one) => Number.isNaN(one.t) ? "not known"
            : Math.abs(one.t) === Infinity ? `${one.t > 0 ? "" : "-"}∞` : one.t.toFixed(1);
        const pattern = (/** @type {string} */ name) => `^${name.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&")}$`;
        const table = sortedTable([
            textColumn("function", (one) => one.name), timeColumn("slow", (one) => Math.round(one.slow), "mean per slow request, with all below it"),
            timeColumn("rest", (one) => Math.round(one.rest), "mean per request of the rest"),
            { title: "difference", text: (one) => differenceText(one.difference), value: (one) => one.difference, help: "of the two means" },
            { title: "t", text: t, value: (one) => Number.isNaN(one.t) ? 0 : one.t,
              help: "the difference over its standard error across requests (Welch): beyond 3 it is hardly chance" },
        ], this.differences ?? [], this.sort, (sort) => {
            this.sort = sort;
            this.drawTable();
        }, { limit: 20, onChoose: (one) => this.app.set({ view: "flame", weight: "path", search: pattern(one.name) }),
             caption: `Functions on the critical path whose time differs, ${this.order}; what all of the latency lies under is left out` });
        swapContent(/** @type {HTMLElement} */ (this.table), table);
    }

    /** @param {string} endpoint */
    leverTexts(endpoint) {
        const levers = (this.levers ?? []).slice(0, 5), share = (/** @type {number} */ part) => `${(100 * part).toFixed(1)} %`;
        if (levers.length === 0)
            return [el("p", { class: "muted", text: "No function is on the critical path of most of its requests." })];
        const lines = levers.map((one) => el("li", {
            text: `1 ms less in ${one.name} makes ${endpoint} up to ${timeText(Math.round(one.gain))} faster on average: it is on the critical ` +
                `path of ${share(one.present)} of its requests, ${share(one.share)} of their latency lies under it; in it they worked or waited ` +
                `for ${share(one.self)}.` }));
        const upTo = "Up to: a request is not shortened by more than it spends there, and then something else may be what it waits for.";
        return [el("p", { class: "muted", text: upTo }), el("ol", { class: "levers" }, ...lines)];
    }
}
