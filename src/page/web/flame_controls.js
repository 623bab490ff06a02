// SPDX-License-Identifier: MIT
// The flame graph's controls: search, how stacks are put together, and, of a diff, what is compared.
"use strict";

class FlameControls {
    /** @param {FlameView} view */
    constructor(view) {
        this.view = view;
        this.app = view.app;
        const { app } = this, { store } = app;
        this.input = el("input", { type: "search", placeholder: "search, a regular expression  (/)", size: 30,
                                   "aria-label": "search, a regular expression", oninput: () => this.typed(),
                                   onkeydown: (/** @type {KeyboardEvent} */ event) => this.searchKey(event) });
        this.legend = el("span", { class: "legend" });
        /** @type {boolean | undefined} of the legend */
        this.legendDark = undefined;
        this.matched = el("span", { class: "matched", role: "status" });
        this.root = el("select", { "aria-label": "at the root", onchange: () => app.set({ root: this.root.value, zoom: "" }) },
                       ...FLAME_ROOTS.map(([value, text]) => el("option", { value, text })));
        /** @type {[keyof Selection, string, HTMLButtonElement][]} */
        this.toggles = [];
        const hasLanguage = store.frame.kind.includes(FRAME.language), spawned = store.coro.spawn.some((node) => node > 0);
        this.tableButton = el("button", { type: "button", onclick: () => view.toggleTable() }, "table", el("kbd", { text: "t" }));
        this.sandwich = el("button", { type: "button", class: "pill", onclick: () => app.set({ sandwich: "", zoom: "" }) });
        this.out = el("button", { type: "button", text: "zoom out", title: "Escape: all the way, Backspace: one box",
                                  onclick: () => app.set({ zoom: "" }) });
        this.element = el("div", {}, el("div", { class: "toolbar" },
            this.input, this.matched, this.out, this.sandwich, el("span", { class: "spacer" }),
            this.toggle("icicle", "icicle", "i", "root at the top"),
            this.toggle("invert", "inverted", "I", "what took the time at the root, callers beyond it"),
            el("label", {}, "root: ", this.root),
            ...(spawned ? [this.toggle("stitch", "stitched", "S", "beyond the stack that spawned their coroutine; a dashed line lies between")] : []),
            this.toggle("collapse", "no recursion", "C", "a function that calls itself is one box"),
            ...(hasLanguage ? [this.toggle("native", "no native", "F", "native frames are left out below a language's", "fold")] : []),
            this.tableButton, el("button", { type: "button", title: "save all of it as a picture", onclick: () => view.save() }, "SVG",
                                 el("kbd", { text: "x" }))),
            this.diff());
    }

    /** @param {keyof Selection} key @param {string} text @param {string} letter @param {string} help @param {string} [value] */
    toggle(key, text, letter, help, value) {
        const button = el("button", { type: "button", title: help, "data-toggle": key, onclick: () => this.view.toggle(key, value) },
                          text, el("kbd", { text: letter }));
        this.toggles.push([key, value ?? "1", button]);
        return button;
    }

    /** Controls of a diff. */
    diff() {
        const { app } = this, { sides } = app.store.head;
        /** @type {[string, HTMLButtonElement][]} */
        this.sides = [["", "file"], ["base", "base"], ["both", "both"]].map(([key, text]) =>
            [key, el("button", { type: "button", text, "data-side": key, onclick: () => app.set({ side: key }) })]);
        this.norm = el("button", { type: "button", text: "shares", title: "both sides as percent of their totals", "data-toggle": "norm",
                                   onclick: () => this.view.toggle("norm") });
        if (sides.length < 2)
            return "";
        return el("div", { class: "toolbar" }, el("span", { text: `${sides[0].file} → ${sides[1].file}` }), el("span", { text: "width:" }),
                  el("span", { class: "group", role: "group", "aria-label": "width" }, ...this.sides.map(([, button]) => button)), this.norm,
                  this.legend);
    }

    /** The meaning of a diff's colours. */
    drawLegend() {
        const { dark } = this.app.looks;
        if (this.legendDark === dark)
            return;
        this.legendDark = dark;
        const key = (/** @type {string} */ text, /** @type {number} */ base, /** @type {number} */ file, sure = true) => {
            const swatch = el("span", { class: "swatch" });
            swatch.style.background = this.view.painter.changeColour({ base, file, difference: file - base, error: 0, sure });
            return el("span", {}, swatch, text);
        };
        this.legend.replaceChildren(key("+ more", 1, 2), key("− less", 2, 1), key("chance may explain it", 1, 1, false));
    }

    draw() {
        const { selection } = this.app;
        this.drawLegend();
        for (const [key, value, button] of this.toggles)
            button.setAttribute("aria-pressed", String(selection[key] === value));
        for (const [key, button] of this.sides ?? [])
            button.setAttribute("aria-pressed", String((selection.side === "file" ? "" : selection.side) === key));
        this.norm?.setAttribute("aria-pressed", String(selection.norm === "1"));
        this.tableButton.setAttribute("aria-pressed", String(this.view.table));
        this.root.value = selection.root;
        this.out.hidden = selection.zoom === "";
        this.sandwich.hidden = selection.sandwich === "";
        this.sandwich.textContent = `callers and callees of ${selection.sandwich}`;
        if (document.activeElement !== this.input || this.input.value !== selection.search)
            this.input.value = selection.search;
        this.input.setAttribute("aria-invalid", String(regexOf(selection.search) === false));
    }

    /** @param {number} [number] of the match that was walked to */
    drawMatches(number) {
        const { selection } = this.app, content = this.view.pane.content, matches = content?.matches;
        if (!content || !matches) {
            this.matched.textContent = selection.search !== "" ? "this is no regular expression" : "";
            return;
        }
        const { sizes, zoom, root } = content;
        const inside = zoom !== root ? `, ${percentText(matches.zoomed, sizes[zoom])} of the zoomed box` : "";
        this.matched.textContent = matches.count === 0 ? "nothing matches"
            : `matched ${percentText(matches.sum, sizes[0])}${inside}, ${number ? `${number} of ` : ""}${countText(matches.count)} boxes` +
                `${matches.narrower ? " and narrower ones" : ""} (n, N)`;
    }

    focusSearch() {
        this.input.focus();
        this.input.select();
    }

    /** Typed text is one step of undo. */
    typed() {
        const { app } = this, steps = app.before.length;
        app.set({ search: this.input.value });
        if (this.typing && app.before.length > steps)
            app.before.pop();
        this.typing = true;
    }

    /** @param {KeyboardEvent} event */
    searchKey(event) {
        if (event.key === "Enter") {
            this.typing = false;
            this.view.match(event.shiftKey ? -1 : 1);
        } else if (event.key === "Escape") {
            event.preventDefault();
            this.app.set({ search: "" });
            this.view.pane.canvas.focus({ preventScroll: true });
        } else
            return;
        event.stopPropagation();
    }
}
