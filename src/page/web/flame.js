// SPDX-License-Identifier: MIT
// The flame graph: which stacks took the time. Here its parts are put together: panes, search, table, details, keys and menus.
"use strict";

/** Kinds of frames at the root. @type {[string, string][]} */
const FLAME_ROOTS = [["", "nothing"], ["coroutine", "coroutine"], ["entry", "entry function"], ["trace", "trace"],
                     ["thread", "thread"], ["endpoint", "endpoint"]];

/** @param {string} text that a regular expression is to find whole */
function exactly(text) {
    return `^${text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")}$`;
}

class FlameView {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.key = "flame";
        this.title = "Flame graph";
        this.letter = "f";
        this.painter = new FlamePaint(app);
        this.search = new FlameSearch(app);
        this.details = new FlameDetails(app);
        this.functions = new FlameFunctions(this);
        this.source = new FlameSource(this);
        this.controls = new FlameControls(this);
        this.main = new FlamePane(this, "", "flame graph");
        this.callers = new FlamePane(this, "callers", "callers");
        this.callees = new FlamePane(this, "callees", "callees");
        this.pane = this.main; // that the keys move in
        this.table = innerWidth > 1100;
        this.map = new Minimap(app, (context, width, height) => this.paintMap(context, width, height), ({ from, to }) => this.main.look(from, to));
        /** @type {ReturnType<typeof setTimeout> | undefined} until the URL, and the map, are up to date */
        this.noting = this.mapping = undefined;
        this.panes = el("div", { class: "flame-panes" }, this.map.canvas, this.main.element, this.callers.element, this.callees.element);
        this.split = el("div", { class: "split" }, this.panes, this.functions.element);
        this.element = el("section", { class: "view", "aria-label": this.title },
                          this.controls.element, this.details.element, this.split, this.source.element);
        /** @type {Record<string, [string, () => void]>} */
        this.keys = this.makeKeys();
        /** @type {WeakMap<Weights, DiffRule>} of times */
        this.rules = new WeakMap();
        /** @type {WeakMap<Weights, DiffRule>} of shares */
        this.shares = new WeakMap();
        /** @type {{key: string, callers: Weights, callees: Weights} | undefined} of a sandwich */
        this.halves = undefined;
        this.details.show(this.main, -1);
        addEventListener("keydown", (event) => { // the first Ctrl-F is this search, the next one the browser's
            if ((event.ctrlKey || event.metaKey) && event.key === "f" && !this.element.hidden && document.activeElement !== this.controls.input) {
                event.preventDefault();
                this.controls.focusSearch();
            }
        });
    }

    /** @returns {FlameBox[]} what is drawn, of all panes */
    get boxes() {
        return this.visible().flatMap((pane) => pane.boxes);
    }

    visible() {
        return this.app.selection.sandwich !== "" ? [this.callers, this.callees] : [this.main];
    }

    sentence() {
        const { selection, weight } = this.app, { sum, baseSum } = this.app.weights(), what = WEIGHTS[weight].what;
        const order = selection.sandwich !== "" ? `callers of ${selection.sandwich} above, what it calls below`
            : selection.invert === "1" ? "what took the time at the root, its callers beyond it" : "callers at the root, what they call beyond them";
        const both = this.app.store.head.sides.length > 1
            ? ` in the file, ${secondsText(baseSum)} s in the base; red is more, blue is less, grey may be chance`
            : "";
        return `${what[0].toUpperCase()}${what.slice(1)}, by stack: ${order}. The width of a box is its share of ${secondsText(sum)} s${both}.`;
    }

    empty() {
        const { app } = this, { sum, baseSum } = app.weights();
        if (sum + baseSum > 0)
            return null;
        const all = app.chrome ? app.chrome.sums.of(app.weight) : { samples: 1 };
        return all.samples === 0 ? `There is no ${WEIGHTS[app.weight].text} in this file: ${WEIGHT_MISSING[app.weight]}. Choose another weight (w).`
            : "Nothing is left under these filters. Take one away with a click on it, undo (u), or reset.";
    }

    /** How the sides of a diff are compared. @param {Weights} weights @returns {DiffRule | null} */
    diffOf(weights) {
        if (this.app.store.head.sides.length < 2)
            return null;
        const rules = this.app.selection.norm === "1" ? this.shares : this.rules;
        let rule = rules.get(weights);
        if (!rule)
            rules.set(weights, rule = new DiffRule(this.app.store, weights, rules === this.shares));
        return rule;
    }

    draw() {
        const { selection } = this.app, none = this.empty() !== null;
        this.split.hidden = this.details.element.hidden = none;
        this.controls.draw();
        this.main.element.hidden = this.map.canvas.hidden = selection.sandwich !== "";
        this.callers.element.hidden = this.callees.element.hidden = selection.sandwich === "";
        if (!this.visible().includes(this.pane))
            this.pane = this.visible()[0];
        if (none)
            return this.clear();
        this.functions.element.hidden = !this.table;
        this.split.classList.toggle("one", !this.table);
        const top = this.panes.getBoundingClientRect().top + scrollY, room = Math.max(200, innerHeight - top - 16);
        clearTimeout(this.mapping);
        if (selection.sandwich === "") {
            this.show(this.main, this.app.weights(), room, selection.icicle === "1");
            this.mapping = setTimeout(() => this.main.content && this.drawMap(), 30); // the graph comes first
        } else
            this.drawSandwich(room / 2);
        if (this.table)
            this.functions.drawSoon();
        this.controls.drawMatches();
        this.describe(this.pane, this.pane.focus);
    }

    /** There is nothing to be drawn. */
    clear() {
        for (const pane of [this.main, this.callers, this.callees])
            pane.content = undefined;
    }

    /** @param {number} room */
    drawSandwich(room) {
        const { app } = this, other = { root: "", search: "", zoom: "", lens: "", view: "", sight: "", sort: "", row: "", icicle: "", norm: "" };
        const plain = { ...app.selection, ...other, side: "" }, key = JSON.stringify(plain);
        if (this.halves?.key !== key) {
            const [callers, callees] = ["1", ""].map((invert) => {
                const shape = { ...plain, invert };
                return app.trees.weigh(app.trees.tree(shape), filterOf(app.store, shape), app.store.factsOf(app.weight));
            });
            this.halves = { key, callers, callees };
        }
        this.show(this.callers, this.halves.callers, room, false);
        this.show(this.callees, this.halves.callees, room, true);
    }

    /** @param {FlamePane} pane @param {Weights} weights @param {number} room CSS pixels @param {boolean} down */
    show(pane, weights, room, down) {
        const { tree } = weights, diff = this.diffOf(weights), links = TreeLinks.of(tree);
        const sizes = diff ? diff.sizesOf(weights, this.app.selection.side) : weights.total;
        const root = this.app.selection.sandwich !== "" && links.first[0] > 0 && links.next[links.first[0]] === 0 ? links.first[0] : 0;
        const zoom = Math.max(this.zoomedNode(pane, tree, sizes), root);
        const [from, to] = this.app.selection.lens.split(",").map(Number);
        const lens = pane === this.main && to > from ? lensOf(from, to, 1e-4) : WHOLE;
        pane.show({ weights, sizes, root, zoom, down, diff, room, lens, matches: this.search.find(tree, sizes, zoom) });
    }

    /** Another part of the width has come into sight; the URL follows a little later: a wheel turns often. @param {Lens} lens */
    noteLens({ from, to }) {
        this.app.selection.lens = to - from >= 1 ? "" : `${from.toFixed(5)},${to.toFixed(5)}`;
        this.drawMap();
        clearTimeout(this.noting);
        this.noting = setTimeout(() => this.app.note({}), 200);
    }

    drawMap() {
        const { main } = this, { weights, sizes, zoom } = main.shown;
        this.map.draw([weights, sizes, zoom], main.lens, main.width);
    }

    /** @param {CanvasRenderingContext2D} context @param {number} width @param {number} height */
    paintMap(context, width, height) {
        const { main, painter } = this, layout = new FlameLayout(), { weights, sizes, zoom } = main.shown;
        layout.make(weights.tree, sizes, zoom, zoom, width);
        for (let row = 1; row < layout.rowCount; row++)
            for (let box = layout.rows[row], size = Math.max(height / (layout.rowCount - 1), 1); box < layout.rows[row + 1]; box++) {
                const node = layout.node[box], change = main.changeOf(node);
                context.fillStyle = change ? painter.changeColour(change) : painter.colour(main.stateOf(node), main.nameOf(node));
                context.fillRect(layout.x[box], height - row * size, layout.width[box], size);
            }
    }

    /** A child's name in the hash: with its place, where another child has the same name. @param {Tree} tree @param {number} node */
    linkName(tree, node) {
        const { store, trees } = this.app, links = TreeLinks.of(tree), frame = tree.frame[node], name = trees.nameOf(tree, frame);
        for (let other = links.first[tree.parent[node]]; other > 0; other = links.next[other])
            if (other !== node && trees.nameOf(tree, tree.frame[other]) === name)
                return `${name}\t` +
                    (frame < store.frame.name.length ? `${store.placeOf(frame)} ${store.head.modules[store.frame.module[frame]]}` : "");
        return name;
    }

    /** @param {Tree} tree @param {number} node @param {string} link */
    isCalled(tree, node, link) {
        return this.app.trees.nameOf(tree, tree.frame[node]) === link.replace(/\t.*/, "") && this.linkName(tree, node) === link;
    }

    /**
     * The node that the hash zooms to; where its stack ends earlier under these filters, the last one.
     * @param {FlamePane} pane @param {Tree} tree @param {Float64Array} sizes
     */
    zoomedNode(pane, tree, sizes) {
        const names = zoomNames(this.app.selection), links = TreeLinks.of(tree);
        let node = 0;
        if (pane.name !== "" && names.shift() !== pane.name)
            return node;
        for (const name of names) {
            let child = links.first[node];
            while (child > 0 && (sizes[child] === 0 || !this.isCalled(tree, child, name)))
                child = links.next[child];
            if (child === 0)
                break;
            node = child;
        }
        return node;
    }

    /** @param {FlamePane} pane @param {number} node */
    zoomTo(pane, node) {
        const names = [], { tree } = pane;
        for (let up = node; up > 0; up = tree.parent[up])
            names.unshift(this.linkName(tree, up));
        this.pane = pane;
        pane.focus = node;
        this.app.set({ zoom: node === pane.shown.root ? "" : JSON.stringify(pane.name === "" ? names : [pane.name, ...names]) });
    }

    /** @param {FlamePane} pane @param {number} node */
    describe(pane, node) {
        this.details.show(pane, node);
    }

    /** @param {number} dx @param {number} dy rows upwards on the screen */
    walk(dx, dy) {
        let { pane } = this, node = pane.focus < 0 ? pane.shown.zoom : pane.beside(dx, pane.down ? -dy : dy);
        if (node < 0 && dy !== 0 && this.visible().length > 1) { // from one half of the sandwich to the other
            const other = dy > 0 ? this.callers : this.callees;
            if (other !== pane)
                node = (pane = other).shown.zoom;
        }
        if (node >= 0)
            this.focusOn(pane, node);
    }

    /** @param {FlamePane} pane @param {number} node @param {boolean} [middle] */
    focusOn(pane, node, middle = false) {
        for (const other of this.visible())
            if (other !== pane && other.focus >= 0) {
                other.focus = -1;
                other.paint();
            }
        this.pane = pane;
        pane.canvas.focus({ preventScroll: true });
        pane.focusOn(node, middle);
    }

    /** To the next match, heaviest first. @param {number} step */
    match(step) {
        const { pane } = this, nodes = pane.content?.matches?.nodes() ?? [];
        if (nodes.length === 0)
            return;
        const at = nodes.indexOf(pane.focus), next = nodes[at < 0 ? (step > 0 ? 0 : nodes.length - 1) : (at + step + nodes.length) % nodes.length];
        const box = pane.layout.boxOf(next, pane.rowOfNode(next));
        if (box < 0 || pane.layout.width[box] < 24)
            this.zoomTo(pane, next);
        this.focusOn(pane, next, true);
        this.controls.drawMatches(nodes.indexOf(next) + 1);
    }

    /** @param {FlamePane} pane @param {number} node @param {number} x @param {number} y of the page */
    menu(pane, node, x, y) {
        const { app } = this, { store } = app, frame = pane.tree.frame[node], name = pane.nameOf(node);
        const own = frame >= 0 && frame < store.frame.name.length, hide = app.selection.hide === "" ? "" : app.selection.hide + "|";
        const module = own ? store.head.modules[store.frame.module[frame]] : "";
        const back = () => pane.canvas.focus({ preventScroll: true });
        const items = [{ text: "zoom to this box", run: () => this.zoomTo(pane, node) }];
        if (own)
            items.push({ text: "focus: only stacks with this function", run: () => app.set({ focus: exactly(name), zoom: "" }) },
                       { text: "hide this function", run: () => app.set({ hide: hide + exactly(name), zoom: "" }) },
                       { text: "callers and callees (sandwich)", run: () => app.set({ sandwich: name, zoom: "" }) });
        if (module !== "")
            items.push({ text: `hide its library: ${module}`, run: () => app.set({ hideModule: module, zoom: "" }) });
        items.push({ text: "search for it", run: () => app.set({ search: exactly(name) }) }, { text: "copy the name", run: () => copyText(name) });
        if (this.source.partsOf(frame).length > 0)
            items.push({ text: "show source", run: () => this.source.open(frame) });
        pane.focus = node;
        pane.paint();
        openMenu(x, y, name, items, back);
    }

    menuAtFocus() {
        const { pane } = this, node = pane.focus >= 0 ? pane.focus : pane.shown.zoom, row = pane.rowOfNode(node);
        const at = pane.canvas.getBoundingClientRect(), box = pane.layout.boxOf(node, row);
        this.menu(pane, node, scrollX + at.left + Math.max(pane.layout.x[box] ?? 0, 0) + 8, scrollY + at.top + pane.rowY(row) + FLAME_ROW);
    }

    escape() {
        const { selection } = this.app;
        if (!this.source.element.hidden)
            this.source.close();
        else if (selection.lens !== "")
            this.main.look(0, 1);
        else if (selection.zoom !== "")
            this.app.set({ zoom: "" });
        else if (selection.sandwich !== "")
            this.app.set({ sandwich: "" });
        else if (selection.search !== "")
            this.app.set({ search: "" });
    }

    /** Zoom one box out. */
    out() {
        const { zoom, root } = this.pane.shown;
        if (zoom !== root)
            this.zoomTo(this.pane, this.pane.tree.parent[zoom]);
    }

    /** @param {keyof Selection} key @param {string} [value] */
    toggle(key, value = "1") {
        this.app.set({ [key]: this.app.selection[key] === "" ? value : "", ...(key === "icicle" ? {} : { zoom: "" }) });
    }

    /** @returns {Record<string, [string, () => void]>} */
    makeKeys() {
        /** Keys that need a box. @type {Record<string, [string, () => void]>} */
        const boxes = {
            ArrowLeft: ["the box to the left", () => this.walk(-1, 0)],
            ArrowRight: ["the box to the right", () => this.walk(1, 0)],
            ArrowUp: ["the box above", () => this.walk(0, 1)],
            ArrowDown: ["the box below", () => this.walk(0, -1)],
            Enter: ["zoom to the box", () => this.zoomTo(this.pane, this.pane.focus >= 0 ? this.pane.focus : this.pane.shown.zoom)],
            Backspace: ["zoom one box out", () => this.out()],
            m: ["menu of the box: focus, hide, sandwich, copy, source", () => this.menuAtFocus()],
            n: ["next match", () => this.match(1)],
            N: ["match before", () => this.match(-1)],
        };
        const { main } = this, near = (/** @type {number} */ times) => () => main.zoomAround(times, main.width / 2);
        /** @type {Record<string, [string, () => void]>} */
        const widths = {
            "+": ["a closer look at the middle; Ctrl and the wheel, or two fingers: around a point", near(.5)],
            "-": ["twice as much", near(2)],
            "0": ["all of the width", () => main.look(0, 1)],
            "<": ["to the left; dragging moves it, too", () => main.pan(-.2)],
            ">": ["to the right", () => main.pan(.2)],
        };
        for (const [key, [text, run]] of Object.entries(boxes))
            boxes[key] = [text, () => this.pane.content && run()];
        return {
            ...boxes, ...widths,
            x: ["save as SVG", () => this.save()],
            Escape: ["all the way out: of the zoom, the sandwich, the search", () => this.escape()],
            "/": ["search, a regular expression", () => this.controls.focusSearch()],
            i: ["root at the top or at the bottom", () => this.toggle("icicle")],
            t: ["table of functions", () => this.toggleTable()],
            I: ["turn round: callers beyond what they call", () => this.toggle("invert")],
            R: ["next kind of root", () => this.nextRoot()],
            S: ["stitch: below what spawned the coroutine", () => this.toggle("stitch")],
            C: ["recursion as one box", () => this.toggle("collapse")],
            F: ["fold native frames below a language's", () => this.toggle("native", "fold")],
        };
    }

    save() {
        if (this.pane.content)
            saveText("flamegraph.svg", "image/svg+xml", flameSvg(this));
    }

    nextRoot() {
        const at = FLAME_ROOTS.findIndex(([key]) => key === this.app.selection.root);
        this.app.set({ root: FLAME_ROOTS[(at + 1) % FLAME_ROOTS.length][0], zoom: "" });
    }

    toggleTable() {
        this.table = !this.table;
        this.app.draw();
    }
}

VIEWS.push((app) => new FlameView(app));
