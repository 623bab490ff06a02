// SPDX-License-Identifier: MIT
// The table of functions: self and total time as `greenprof report` has them. A function is told by its name, file and line (of a diff by
// name and file, for lines move), and counts once a stack, however often recursion puts it there.
"use strict";

/**
 * @typedef {object} FunctionRow
 * @property {string} name
 * @property {string} place
 * @property {number} self ns
 * @property {number} total ns
 * @property {number} samples with all below it
 * @property {Compared | null} compared of a diff
 */

/**
 * @typedef {{title: string, text: (row: FunctionRow) => string, value: (row: FunctionRow) => number | string, left?: boolean,
 *            help?: string}} FunctionColumn
 */

/**
 * Both sides of a function: base, then file.
 * @typedef {object} Compared
 * @property {[Sum, Sum]} total @property {[Sum, Sum]} own
 * @property {Change} change of the total @property {Change} ownChange
 */

class FlameFunctions {
    /** @param {FlameView} view */
    constructor(view) {
        this.view = view;
        this.app = view.app;
        this.element = el("div", { class: "flame-side" });
        /** @type {WeakMap<Tree, Uint8Array>} by node: 1 = no caller is the same function */
        this.outermost = new WeakMap();
        /** @type {WeakMap<Weights, FunctionRow[]>} */
        this.kept = new WeakMap();
        this.made = "";
        /** @type {ReturnType<typeof setTimeout> | undefined} */
        this.waiting = undefined;
        /** @type {Weights | undefined} that the table was made from */
        this.from = undefined;
        /** @type {{key: string, weights: Weights} | undefined} where the graph is of other shapes */
        this.whole = undefined;
    }

    /** By frame: number of its function. @returns {Uint32Array} */
    functionsOf() {
        if (!this.of) {
            const { frame, head } = this.app.store, two = head.sides.length > 1;
            /** @type {Map<string, number>} */
            const numbers = new Map();
            this.first = /** @type {number[]} */ ([]);
            this.of = Uint32Array.from(frame.name, (name, i) => {
                const file = two ? head.files[frame.file[i]].replace(/.*\//, "") : String(frame.file[i]);
                const key = `${name} ${file}` + (two ? "" : ` ${frame.line[i]}`);
                let number = numbers.get(key);
                if (number === undefined) {
                    numbers.set(key, number = numbers.size);
                    this.first?.push(i);
                }
                return number;
            });
        }
        return this.of;
    }

    /** Where each function stands for the first time on its stack. @param {Tree} tree @param {Uint32Array} of */
    outermostOf(tree, of) {
        let outer = this.outermost.get(tree);
        if (outer)
            return outer;
        outer = new Uint8Array(tree.count);
        const links = TreeLinks.of(tree), on = new Uint32Array(of.length), { frame, parent } = tree;
        let node = links.first[0];
        while (node > 0) {
            const number = of[frame[node]]; // undefined: a frame of the tree's own, which has no function
            if (number !== undefined && on[number]++ === 0)
                outer[node] = 1;
            let next = links.first[node];
            for (let up = node; next === 0 && up > 0; up = parent[up]) {
                const left = of[frame[up]];
                if (left !== undefined)
                    on[left]--;
                next = links.next[up];
                if (next === 0 && parent[up] === 0)
                    next = -1;
            }
            node = next;
        }
        this.outermost.set(tree, outer);
        return outer;
    }

    /** Weights of whole stacks, callers above callees: what a table is made of. @returns {Weights} */
    weights() {
        const { app } = this, { selection } = app;
        if (selection.invert + selection.sandwich + selection.root === "")
            return app.weights();
        const { view, zoom, lens, search, sight, sort, row, icicle, norm, invert, sandwich, root, ...rest } = selection, key = JSON.stringify(rest);
        if (this.whole?.key !== key) {
            const plain = { ...selection, invert: "", sandwich: "", root: "" };
            const tree = app.trees.tree(plain);
            this.whole = { key, weights: app.trees.weigh(tree, filterOf(app.store, plain), app.store.factsOf(app.weight)) };
        }
        return this.whole.weights;
    }

    /** "handlers.c:51", "libc.so.6". @param {number} frame */
    placeOf(frame) {
        const { store } = this.app;
        return (store.placeOf(frame) || store.head.modules[store.frame.module[frame]]).replace(/.*\//, "");
    }

    /** @param {Weights} weights @returns {FunctionRow[]} */
    rowsOf(weights) {
        const kept = this.kept.get(weights);
        if (kept)
            return kept;
        const of = this.functionsOf(), first = /** @type {number[]} */ (this.first), { tree } = weights, outer = this.outermostOf(tree, of);
        /** @type {FunctionRow[]} */
        const rows = first.map((frame) => ({ name: this.app.store.nameOf(frame), place: this.placeOf(frame), self: 0, total: 0, samples: 0,
                                             compared: null }));
        for (let i = 1; i < tree.count; i++) {
            const row = rows[of[tree.frame[i]]];
            if (!row)
                continue;
            row.self += weights.self[i];
            if (!outer[i])
                continue;
            row.total += weights.total[i];
            row.samples += weights.samples[i];
        }
        if (weights.base.length > 0)
            this.addSides(rows, weights, of, outer);
        const found = rows.filter((row) => row.total > 0 || (row.compared && row.compared.total[0].ns > 0));
        this.kept.set(weights, found);
        return found;
    }

    /** Sums of both sides. @param {FunctionRow[]} rows @param {Weights} weights @param {Uint32Array} of @param {Uint8Array} outer */
    addSides(rows, weights, of, outer) {
        const { tree } = weights;
        const sides = [[weights.base, weights.baseSamples, weights.baseSquares], [weights.total, weights.samples, weights.squares]];
        const owns = sides.map((columns) => columns.map((column) => FlameFunctions.ownOf(tree, column)));
        const nothing = () => ({ ns: 0, samples: 0, squares: 0 }), none = { base: 0, file: 0, difference: 0, error: 0, sure: false };
        for (const row of rows)
            row.compared = { total: [nothing(), nothing()], own: [nothing(), nothing()], change: none, ownChange: none };
        const add = (/** @type {Sum} */ sum, /** @type {Float64Array[]} */ [ns, samples, squares], /** @type {number} */ node) => {
            sum.ns += ns[node];
            sum.samples += samples[node];
            sum.squares += squares[node];
        };
        for (let i = 1; i < tree.count; i++) {
            const compared = rows[of[tree.frame[i]]]?.compared;
            for (let side = 0; compared && side < 2; side++) {
                add(compared.own[side], owns[side], i);
                if (outer[i])
                    add(compared.total[side], sides[side], i);
            }
        }
    }

    /** The part of each node's sum that is not its children's. @param {Tree} tree @param {Float64Array} sums */
    static ownOf(tree, sums) {
        const own = sums.slice();
        for (let i = 1; i < tree.count; i++)
            own[tree.parent[i]] -= sums[i];
        return own.map((sum, i) => sum > 1e-9 * sums[i] ? sum : 0); // less than that is rounding
    }

    /** Where there is much to be summed up, the graph is shown first. */
    drawSoon() {
        clearTimeout(this.waiting);
        this.waiting = undefined;
        if (this.app.store.nodeCount < 20000)
            return this.draw();
        this.waiting = setTimeout(() => {
            this.waiting = undefined;
            this.draw();
        }, 60);
    }

    draw() {
        const { app } = this, { selection } = app, weights = this.weights(), diff = this.view.diffOf(weights);
        const key = JSON.stringify([selection.sort, selection.search, selection.sandwich, selection.norm, this.app.weight]);
        if (key === this.made && weights === this.from)
            return;
        this.made = key;
        this.from = weights;
        const wanted = regexOf(selection.search), all = this.rowsOf(weights);
        const rows = wanted ? all.filter((row) => wanted.test(row.name)) : all;
        const columns = diff ? this.diffColumns(rows, diff) : this.columns(weights.sum);
        const sort = columns.some((column) => column.title === selection.sort.replace(/^-/, "")) ? selection.sort : diff ? "-Change" : "-Self";
        const focused = this.element.contains(document.activeElement) ? document.activeElement?.textContent : null;
        this.element.replaceChildren(sortedTable(columns, rows, sort, (next) => app.set({ sort: next }), {
            limit: 200,
            caption: `${countText(rows.length)} functions` + (wanted ? " that match" : "") +
                (diff ? `, ${diff.unit ? `times${diff.unit}, ` : ""}* = more than chance explains` : "") +
                ": choose one to see its callers and callees",
            chosen: (row) => row.name === selection.sandwich,
            onChoose: (row) => app.set({ sandwich: row.name === selection.sandwich ? "" : row.name, zoom: "" }),
        }));
        if (focused) // the table is new: the focus goes to what was the same
            /** @type {HTMLElement | undefined} */ ([...this.element.querySelectorAll("button, tr")].find((one) =>
                one.textContent?.replace(/ [▾▴]$/, "") === focused.replace(/ [▾▴]$/, "")))?.focus();
    }

    /** @param {number} sum @returns {FunctionColumn[]} */
    columns(sum) {
        const samples = this.app.weight === "delay" ? "Delays" : "Samples";
        return [
            { title: "Function", text: (row) => row.name + (row.place ? `  ${row.place}` : ""), value: (row) => row.name, left: true },
            { title: "Self", text: (row) => timeText(row.self), value: (row) => row.self, help: "time in the function itself" },
            { title: "Self %", text: (row) => percentText(row.self, sum), value: (row) => row.self },
            { title: "Total", text: (row) => timeText(row.total), value: (row) => row.total,
              help: "with what it called; once a stack, also where it called itself" },
            { title: "Total %", text: (row) => percentText(row.total, sum), value: (row) => row.total },
            { title: samples, text: (row) => countText(row.samples), value: (row) => row.samples },
        ];
    }

    /** @param {FunctionRow[]} rows @param {DiffRule} diff @returns {FunctionColumn[]} */
    diffColumns(rows, diff) {
        const of = (/** @type {FunctionRow} */ row) => /** @type {Compared} */ (row.compared);
        for (const row of rows)
            Object.assign(of(row), { change: diff.change(...of(row).total), ownChange: diff.change(...of(row).own) });
        return [
            { title: "Function", text: (row) => row.name + (row.place ? `  ${row.place}` : ""), value: (row) => row.name, left: true },
            { title: "Self change", text: (row) => diff.changeText(of(row).ownChange) + (of(row).ownChange.sure ? " *" : ""),
              value: (row) => Math.abs(of(row).ownChange.difference),
              help: "of the function itself, with the error that chance in sampling gives, 95 %; * = chance does not explain it" },
            { title: "Base", text: (row) => diff.text(of(row).change.base), value: (row) => of(row).change.base, help: "with what it called" },
            { title: "File", text: (row) => diff.text(of(row).change.file), value: (row) => of(row).change.file, help: "with what it called" },
            { title: "Change", text: (row) => diff.changeText(of(row).change) + (of(row).change.sure ? " *" : ""),
              value: (row) => Math.abs(of(row).change.difference),
              help: "with the error that chance in sampling gives, 95 %; * = chance does not explain it, 95 % sure of all together" },
        ];
    }
}
