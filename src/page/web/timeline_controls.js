// SPDX-License-Identifier: MIT
// Above the timeline: how rows are sorted and grouped, zoom, the legend, and the range with what can be done with it.
"use strict";

/**
 * A part of the time as the selection holds it: of whole ticks, where rows have such.
 * @param {Store} store @param {number} from @param {number} to ns @returns {{from: string, to: string}}
 */
function roundRange(store, from, to) {
    const step = store.head.tick_ns || 1, until = activitiesOf(store).until;
    const first = Math.floor(Math.max(0, Math.min(from, to)) / step) * step, last = Math.ceil(Math.min(until, Math.max(from, to)) / step) * step;
    return { from: String(first), to: String(Math.max(last, first + step)) };
}

/** The selected part of the time, ns; null where there is none. @param {Store} store @param {Selection} selection */
function rangeOf(store, selection) {
    return selection.from === "" && selection.to === "" ? null
        : { from: Number(selection.from || 0), to: selection.to === "" ? activitiesOf(store).until : Number(selection.to) };
}

/** Additions to the names of states. @type {Record<number, string>} */
const LEGEND_NOTES = { [STATE.running]: ", or asleep in the kernel: it held its thread", [STATE.waiting]: ": ready or parked, which is not known" };

class TimelineControls {
    /** @param {TimelineView} view */
    constructor(view) {
        const { app } = view;
        this.view = view;
        this.sort = el("select", { "aria-label": "sort by", onchange: () => app.set({ sort: this.sort.value }) },
            ...Object.keys(TIMELINE_SORTS).flatMap((title) => [el("option", { value: title, text: `by ${title}` }),
                                                               el("option", { value: "-" + title, text: `by ${title}, most first` })]));
        this.nest = el("select", { "aria-label": "group by", onchange: () => app.set({ nest: this.nest.value }) },
            ...Object.entries(TIMELINE_GROUPS).map(([value, text]) => el("option", { value, text })));
        this.seen = TimelineControls.button("only what is in sight", "o", "coroutines that are there in this part of the time",
                                            () => view.toggleSeen());
        this.flame = TimelineControls.button("flame graph of this range", "Enter", "what was sampled in this range", () => view.openFlame());
        this.clear = TimelineControls.button("clear", "Esc", "take the range away", () => view.clearRange());
        this.range = el("span", { class: "muted", role: "status" });
        this.legend = el("span", { class: "legend", role: "img", "aria-label": "colours of the states" });
        this.element = el("div", { class: "toolbar" }, this.sort, this.nest, this.seen,
            TimelineControls.button("zoom in", "+", "half of the time", () => view.zoom(.5)),
            TimelineControls.button("zoom out", "-", "twice the time", () => view.zoom(2)),
            TimelineControls.button("all", "0", "all of the time", () => view.showAll()), this.legend, this.flame, this.clear, this.range);
        /** @type {Looks | null} */
        this.looks = null;
    }

    /** @param {string} text @param {string} key @param {string} help @param {() => void} run */
    static button(text, key, help, run) {
        return el("button", { type: "button", title: help, onclick: run }, text, el("kbd", { text: key }));
    }

    draw() {
        const { app, store } = this.view, { selection } = app, range = rangeOf(store, selection), timed = store.head.tick_ns > 0;
        this.sort.value = selection.sort.replace(/^-/, "") in TIMELINE_SORTS ? selection.sort : "Start";
        this.nest.value = selection.nest in TIMELINE_GROUPS ? selection.nest : "";
        this.seen.setAttribute("aria-pressed", String(this.view.onlySeen));
        this.flame.hidden = this.clear.hidden = !range;
        this.flame.disabled = !timed;
        this.range.textContent = !range ? "" : periodText(range.from, range.to) +
            (timed ? "" : ": samples have no time in this file, flame graphs show all of it");
        if (this.looks !== app.looks)
            this.drawLegend(app.looks);
    }

    /** @param {Looks} looks */
    drawLegend(looks) {
        this.looks = looks;
        this.legend.replaceChildren(...TOLD.map((state) => {
            const swatch = el("canvas", { class: "swatch", width: 16, height: 12, "aria-hidden": "true" });
            looks.fill(/** @type {CanvasRenderingContext2D} */ (swatch.getContext("2d")), state, "", 0, 0, 16, 12);
            return el("span", {}, swatch, this.view.store.head.states[state] + (LEGEND_NOTES[state] ?? ""));
        }));
    }
}
