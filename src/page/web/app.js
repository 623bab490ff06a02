// SPDX-License-Identifier: MIT
// The page: tabs, filters, keys and the URL's hash. Each view draws what the selection says, and changes it with app.set().
"use strict";

/**
 * A view: a tab of the page.
 * @typedef {object} View
 * @property {string} key in the hash
 * @property {string} title on the tab
 * @property {string} letter that opens it
 * @property {HTMLElement} element
 * @property {() => string} sentence what it shows now
 * @property {() => string | null} empty why there is nothing, and what to do; null = there is
 * @property {() => void} draw when the selection, the size or the colours have changed
 * @property {Record<string, [string, () => void]>} keys key -> what it does
 */

class App {
    /** @param {Store} store @param {HTMLElement} root */
    constructor(store, root) {
        this.store = store;
        this.trees = new Trees(store);
        this.root = root;
        Object.assign(SELECTION_DEFAULTS, { root: store.head.root ?? "", norm: store.head.unit === "%" ? "1" : "" });
        this.selection = selectionFromHash(location.hash);
        this.looks = new Looks(this.isDark());
        /** @type {View[]} */
        this.views = [];
        /** @type {string[]} hashes before, for "u" */
        this.before = [];
        /** @type {{key: string, weights: Weights} | null} what weights() keeps */
        this.weighed = null;
    }

    isDark() {
        const forced = document.documentElement.dataset.theme;
        return forced ? forced === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    }

    get weight() {
        return this.selection.weight || this.store.head.weight;
    }

    /** @returns {View} */
    get view() {
        return this.views.find((view) => view.key === this.selection.view) ?? this.views[0];
    }

    /** Change the selection; the page is drawn anew and the URL follows. @param {Partial<Selection>} patch */
    set(patch) {
        const lens = "zoom" in patch ? { lens: "" } : {}; // it is a part of what is zoomed to
        const view = this.view, hash = selectionToHash(Object.assign(this.selection, lens, patch));
        if (hash === location.hash)
            return this.draw();
        this.before.push(location.hash);
        history.replaceState(null, "", hash || location.pathname + location.search);
        this.draw();
        if (this.view !== view)
            scrollTo(0, 0);
    }

    /** Change what nothing but the view that calls this depends on: the URL follows, and it is no step of undo. @param {Partial<Selection>} patch */
    note(patch) {
        history.replaceState(null, "", selectionToHash(Object.assign(this.selection, patch)) || location.pathname + location.search);
    }

    undo() {
        const hash = this.before.pop();
        if (hash === undefined)
            return;
        history.replaceState(null, "", hash || location.pathname + location.search);
        this.selection = selectionFromHash(hash);
        this.draw();
    }

    /** Weights of the selected tree: kept until the selection changes. @returns {Weights} */
    weights() {
        const { view, zoom, lens, search, sight, nest, lanes, sort, row, icicle, norm, ...rest } = this.selection;
        const pruned = PrunedTree.is(this.store, shapeOf(this.selection));
        const key = JSON.stringify([rest, pruned && zoom]);
        if (this.weighed?.key !== key) {
            const facts = this.store.factsOf(this.weight), filter = filterOf(this.store, this.selection);
            const tree = pruned ? PrunedTree.of(this.trees, this.selection, filter, facts) : this.trees.tree(this.selection);
            const weights = this.trees.weigh(tree, filter, facts);
            this.weighed = { key, weights };
        }
        return this.weighed.weights;
    }

    start() {
        this.views = VIEWS.map((make) => make(this));
        this.chrome = new Chrome(this);
        addEventListener("hashchange", () => {
            this.selection = selectionFromHash(location.hash);
            this.draw();
        });
        addEventListener("resize", () => this.draw());
        matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
        addEventListener("keydown", (event) => this.key(event));
        this.draw();
    }

    draw() {
        if (this.looks.dark !== this.isDark())
            this.looks = new Looks(this.isDark());
        document.documentElement.classList.toggle("dark", this.looks.dark);
        this.chrome?.draw();
        for (const view of this.views)
            view.element.hidden = view !== this.view;
        this.view.draw();
    }

    /** @param {KeyboardEvent} event */
    key(event) {
        const target = /** @type {HTMLElement} */ (event.target);
        if (event.ctrlKey || event.metaKey || event.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(target.tagName))
            return;
        if (event.defaultPrevented || ((event.key === "Enter" || event.key === " ") && target.closest("button, a, summary, tr")))
            return;
        const action = this.view.keys[event.key] ?? this.chrome?.keys[event.key];
        if (action) {
            event.preventDefault();
            action[1]();
        }
    }
}

/** The views, in the order of their tabs: each file of a view adds its own. @type {((app: App) => View)[]} */
const VIEWS = [];

/** @param {string} text */
function showFailure(text) {
    const main = /** @type {HTMLElement} */ (document.getElementById("page"));
    main.replaceChildren(el("p", { class: "failure", role: "alert", text }));
}

/** Decode the data and start. */
async function startPage() {
    try {
        const data = /** @type {HTMLElement} */ (document.getElementById("data"));
        const store = await Store.load(/** @type {string} */ (data.textContent));
        data.remove();
        document.title = store.head.title + " - greenprof";
        const app = new App(store, /** @type {HTMLElement} */ (document.getElementById("page")));
        /** @type {any} */ (window).greenprofApp = app;
        app.start();
        document.documentElement.dataset.ready = "1";
    } catch (error) {
        showFailure(`This page's data cannot be read: ${error instanceof Error ? error.message : error}`);
        throw error;
    }
}
