// SPDX-License-Identifier: MIT
// The knowledge of this profile, and its gaps: the command, sampled against exact time, losses, and what each weight means.
"use strict";

/** Frames that stand where something is not known. @type {[string, string][]} */
const UNKNOWN_FRAMES = [
    ["[switching]", "inside a switch between stacks: the coroutine is known, the stack is not"],
    ["[truncated]", "deeper than what a sample holds: the frames nearest to the root are missing"],
    ["[incomplete]", "the walk of the stack gave up early"],
    ["[lost function]", "the function's name is not known"],
    ["[signal blocked]", "the program blocked the sampling signal without the C library: where the time went is not known"],
    ["[not sampled]", "time that passed, but that no sample tells the stack of"],
    ["[no samples]", "time of what was never sampled"],
    ["[tree full]", "stacks that there was no room for"],
    ["[other functions]", "functions of a language that were too many to be named"],
];

class AboutView {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.key = "about";
        this.title = "Truth";
        this.letter = "a";
        this.element = el("section", { class: "view about", "aria-label": this.title });
        /** @type {Record<string, [string, () => void]>} */
        this.keys = {};
        this.made = false;
    }

    sentence() {
        return "How this profile was made, how far its numbers can be trusted, and what is missing from it.";
    }

    empty() {
        return null;
    }

    draw() {
        if (this.made)
            return;
        this.made = true;
        this.element.replaceChildren(...this.origin(), ...this.accuracy(), ...this.losses(), ...this.unknown(), ...this.weights(), ...this.notes());
    }

    /** @param {[string, string][]} rows @param {string} caption */
    table(rows, caption) {
        return el("table", {}, el("caption", { class: "offscreen", text: caption }), el("tbody", {}, ...rows.map(([key, value]) =>
            el("tr", {}, el("th", { class: "left", scope: "row", text: key }), el("td", { class: "left", text: value })))));
    }

    origin() {
        const { head } = this.app.store, start = Number(BigInt(head.start_realtime_ns) / 1000000n);
        const began = start > 0 ? new Date(start).toISOString().replace("T", " ").replace("Z", " UTC") : "not recorded";
        /** @type {[string, string][]} */
        const rows = [["program", head.title], ["began", began], ["duration", timeText(head.duration_ns)],
                      ["sampling frequency", head.frequency_hz > 0 ? `${head.frequency_hz} Hz` : "not recorded"],
                      ["resolution in time", head.tick_ns > 0 ? timeText(head.tick_ns) : "none: when samples were taken is not in this file"],
                      ["made by", head.made_by]];
        head.sides.forEach((side, i) => rows.push([head.sides.length < 2 ? "capture" : i === 0 ? "base" : "file",
            `${side.file}: ${secondsText(side.total_ns)} s in ${countText(side.samples)} samples, ${timeText(side.duration_ns)} long`]));
        return [el("h2", { text: "How it was made" }), el("p", { text: "The exact command that wrote this file:" }),
                el("pre", { class: "code", text: head.command }), this.table(rows, "how it was made")];
    }

    /** Sampled against exact time, in words. */
    accuracy() {
        const { totals } = this.app.store.head, { cpu_ns: exact, sampled_ns: sampled } = totals, error = totals.error_ns;
        /** @type {[string, string][]} */
        const rows = [["CPU time, exact",
                       exact > 0 ? `${secondsText(exact)} s, as the kernel and the switches of the coroutines give it` : "not known"],
                      ["CPU time, by the samples", `${secondsText(sampled)} s`],
                      ["what chance gives", error > 0 ? `± ${secondsText(error)} s, 95 % sure` : "not known"],
                      ["samples", this.samples(totals.samples)]];
        return [el("h2", { text: "Sampled against exact" }),
                el("p", { class: "verdict", text: this.verdict(exact, sampled, error) }), el("p", { text: this.basis(totals) }),
                this.table(rows, "sampled against exact")];
    }

    /** As reports by CPU time and `info` count them. @param {number} all */
    samples(all) {
        const { rows } = this.app.store;
        let onCpu = 0;
        for (let i = 0; i < rows.count; i++)
            onCpu += rows.state[i] === STATE.running ? rows.samples[i] : 0;
        return onCpu < all ? `${countText(onCpu)} on the CPU, ${countText(all - onCpu)} of what waited` : countText(all);
    }

    /** @param {number} exact @param {number} sampled @param {number} error all ns */
    verdict(exact, sampled, error) {
        if (exact <= 0)
            return "The exact CPU time of what is shown is not known: the samples stand alone.";
        const off = Math.abs(sampled - exact), percent = (100 * (sampled - exact) / exact).toFixed(2);
        const shown = `${sampled >= exact ? "+" : ""}${percent} %`;
        const ratio = `The samples add up to ${(100 * sampled / exact).toFixed(2)} % of the exact CPU time (${shown})`;
        if (error <= 0)
            return `${ratio}.`;
        const chance = (100 * error / exact).toFixed(2);
        return off <= error ? `${ratio}. Chance alone gives ± ${chance} %: the two agree.`
            : `${ratio}. Chance alone gives ± ${chance} %: the difference is larger than that: ` +
              "something was missed or counted twice. See the losses below.";
    }

    /** @param {Header["totals"]} totals */
    basis(totals) {
        const calls = totals.exact_calls ? " Every call was counted: numbers of calls are exact." : "";
        return (totals.basis === "exact" ? "All weights are scaled so that they add up to the exact time: samples only say where it was spent."
            : totals.basis === "estimated" ? "Weights are those of the samples: of the part that is shown, only the samples tell the time."
            : "Weights are those of the samples: no exact time is known of this.") + calls;
    }

    /** @param {number} ppm of the program's CPU time */
    ownCost(ppm) {
        const { counters } = this.app.store.head;
        const count = (/** @type {string} */ wanted) => counters.find(([name]) => name === wanted)?.[1] ?? 0;
        const arrival = count("signals") > 0 ? count("delivery_ns") / count("signals") : 0;
        return `greenprof itself took ${(ppm / 10000).toFixed(2)} % of the program's CPU time besides: its threads, its handler, its hooks` +
            (arrival > 0 ? `, its signals, ${(arrival / 1000).toFixed(0)} us each here.`
                : "; without what signals take to arrive, which was not measured.");
    }

    losses() {
        const { counters, not_known, totals } = this.app.store.head, sorted = [...counters].sort((a, b) => Number(b[3]) - Number(a[3]));
        const losses = counters.filter((one) => one[3]).length, none = not_known.length === 0 ? "Nothing was lost: no" : "No";
        const rows = sorted.map(([name, value, meaning, isLoss]) =>
            el("tr", {}, el("td", { class: isLoss ? "left warn key" : "left key", text: (isLoss ? "loss: " : "") + name }),
               el("td", { text: countText(value) }),
               el("td", { class: "left", text: meaning })));
        return [el("h2", { text: "Losses and counters" }),
                ...not_known.map((text) => el("p", { class: "warn", text: `Not known: ${text}.` })),
                el("p", { class: "losses", text: losses === 0 ? `${none} counter of losses is above 0.`
                    : `${losses} counter${losses === 1 ? "" : "s"} of losses above 0. They are of the whole capture.` }),
                ...(totals.own_ppm > 0 ? [el("p", { class: "own", text: this.ownCost(totals.own_ppm) })] : []),
                ...(rows.length === 0 ? [] : [el("table", {}, el("caption", { class: "offscreen", text: "counters" }), el("thead", {}, el("tr", {},
                    ...["counter", "value", "what it means"].map((text) => el("th", { scope: "col", class: "left", text })))),
                    el("tbody", {}, ...rows))])];
    }

    /** Shares of the time that end in a frame for what is not known. */
    unknown() {
        const { store } = this.app, { rows, node, frame } = store;
        /** @type {Map<string, number>} */
        const sums = new Map(UNKNOWN_FRAMES.map(([name]) => [name, 0]));
        const wanted = Uint8Array.from(frame.name, (name) => Number(sums.has(store.names[name])));
        let all = 0;
        for (let i = 0; i < rows.count; i++) {
            all += rows.weight[i];
            for (let at = rows.node[i]; at > 0; at = store.parent[at])
                if (wanted[node.frame[at]]) {
                    const name = store.nameOf(node.frame[at]);
                    sums.set(name, (sums.get(name) ?? 0) + rows.weight[i]);
                    break;
                }
        }
        const nameless = this.nameless();
        const found = UNKNOWN_FRAMES.filter(([name]) => (sums.get(name) ?? 0) > 0);
        const text = (/** @type {string} */ name) => `${name} ${percentText(sums.get(name) ?? 0, all)}`;
        /** @type {[string, string][]} */
        const known = found.map(([name, what]) => [text(name), `${timeText(sums.get(name) ?? 0)}: ${what}`]);
        return [el("h2", { text: "What the stacks do not tell" }), found.length === 0 && nameless.length === 0
            ? el("p", { text: "Every sample has its whole stack, with names." })
            : this.table([...nameless, ...known], "unknown frames")];
    }

    /** Time of what is shown first in code that no symbol names, as `report` has it: by the function on top. @returns {[string, string][]} */
    nameless() {
        const { store } = this.app, { rows, node, frame, head } = store, weight = WEIGHTS[/** @type {"cpu"} */ (head.weight)] ?? WEIGHTS.wall;
        const wanted = Uint8Array.from(frame.name, (_, at) => Number(this.isNameless(at)));
        /** @type {Map<number, number>} */
        const modules = new Map();
        let all = 0, sum = 0;
        for (let i = 0; i < rows.count; i++) {
            if (!weight.states.includes(rows.state[i]))
                continue;
            let at = rows.node[i];
            while (at > 0 && frame.kind[node.frame[at]] === 2)
                at = store.parent[at];
            all += rows.weight[i];
            if (wanted[node.frame[at]] === 0)
                continue;
            sum += rows.weight[i];
            modules.set(frame.module[node.frame[at]], (modules.get(frame.module[node.frame[at]]) ?? 0) + rows.weight[i]);
        }
        const [widest] = [...modules].sort((a, b) => b[1] - a[1]);
        return widest === undefined ? [] : [[`no names ${percentText(sum, all)}`,
            `${timeText(sum)}: code that no symbol names, most in ${head.modules[widest[0]]}; greenprof report says what would name it`]];
    }

    /** "libz.so.1+0x1234", of libz.so.1. @param {number} number of a frame */
    isNameless(number) {
        const { store } = this.app, { frame } = store, module = store.head.modules[frame.module[number]] ?? "";
        const start = `${module.slice(module.lastIndexOf("/") + 1)}+0x`;
        return frame.kind[number] !== 2 && module.startsWith("/") && store.nameOf(number).startsWith(start);
    }

    weights() {
        const { app } = this, { head } = app.store;
        return [el("h2", { text: "What each weight means" }), this.table(Object.values(WEIGHTS).map((weight) => {
            const sums = app.chrome?.sums.of(weight.name), none = !sums || sums.samples === 0;
            const states = weight.name === "delay" || weight.name === "path" ? ""
                : ` (${weight.states.map((state) => head.states[state]).join(", ")})`;
            const here = none ? `None here: ${WEIGHT_MISSING[weight.name]}.` : `${secondsText(sums.ns)} s in this file.`;
            return [weight.text, `${weight.what}${states}. ${here}`];
        }), "weights")];
    }

    notes() {
        const { notes } = this.app.store.head;
        return notes.length === 0 ? []
            : [el("h2", { text: "Left out or folded, to keep the file small" }), el("ul", {}, ...notes.map((text) => el("li", { text })))];
    }
}

VIEWS.push((app) => new AboutView(app));
