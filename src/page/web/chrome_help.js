// SPDX-License-Identifier: MIT
// Help with all keys, the link to this view, light and dark, and the menu that opens at a point.
"use strict";

class Help {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.dialog = el("dialog", { "aria-label": "keys", onkeydown: (/** @type {KeyboardEvent} */ event) => event.stopPropagation() });
        document.body.append(this.dialog);
        this.setTheme(this.savedTheme());
    }

    open() {
        const { app } = this, keys = app.chrome?.keys ?? {};
        const row = (/** @type {string} */ key, /** @type {string} */ what) =>
            el("tr", {}, el("td", { class: "left" }, el("kbd", { text: key === " " ? "Space" : key })), el("td", { class: "left", text: what }));
        const rows = (/** @type {Record<string, [string, () => void]>} */ list) =>
            el("table", {}, el("tbody", {}, ...Object.entries(list).map(([key, [what]]) => row(key, what))));
        const close = el("button", { type: "button", text: "close", onclick: () => this.dialog.close() });
        this.dialog.replaceChildren(el("h1", { text: "Keys" }), el("h2", { text: app.view.title }), rows(app.view.keys),
            el("h2", { text: "Everywhere" }), rows(keys),
            el("p", { text: "Tab and Shift-Tab go from control to control. A filter is taken away with a click, Enter or Delete. " +
                            "The address holds all that is chosen: a copy of it opens exactly this." }), close);
        this.dialog.showModal();
        close.focus();
        this.dialog.scrollTop = 0; // the focus stands below the first lines to read
    }

    /** A sentence that goes away by itself. @param {string} text */
    say(text) {
        const toast = el("div", { class: "toast", role: "status", text });
        document.body.append(toast);
        setTimeout(() => toast.remove(), 2500);
    }

    async copyLink() {
        await copyText(location.href);
        this.say("The link is copied.");
    }

    /** "", "dark" or "light". */
    savedTheme() {
        try {
            return localStorage.getItem("greenprof-theme") ?? "";
        } catch {
            return "";
        }
    }

    /** @param {string} theme */
    setTheme(theme) {
        if (theme === "")
            delete document.documentElement.dataset.theme;
        else
            document.documentElement.dataset.theme = theme;
    }

    nextTheme() {
        const order = ["", "dark", "light"], next = order[(order.indexOf(document.documentElement.dataset.theme ?? "") + 1) % 3];
        this.setTheme(next);
        try {
            localStorage.setItem("greenprof-theme", next);
        } catch {
            // a browser that keeps nothing for files: it holds until the page is closed
        }
        this.app.draw();
    }

    themeText() {
        return `colours: ${document.documentElement.dataset.theme ?? "auto"}`;
    }
}

/** @param {string} text */
async function copyText(text) {
    try {
        await navigator.clipboard.writeText(text);
    } catch {
        const area = el("textarea", { class: "offscreen" });
        area.value = text;
        document.body.append(area);
        area.select();
        document.execCommand("copy");
        area.remove();
    }
}

/** Let the browser save a text as a file. @param {string} name @param {string} type @param {string} text */
function saveText(name, type, text) {
    const url = URL.createObjectURL(new Blob([text], { type }));
    el("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 10000);
}

/**
 * A menu at a point of the page. Arrow keys go through it, Enter takes, Escape leaves.
 * @param {number} x @param {number} y of the page, CSS pixels
 * @param {string} title for screen readers @param {{text: string, run: () => void}[]} items
 * @param {() => void} [onClose]
 */
function openMenu(x, y, title, items, onClose) {
    document.querySelector(".menu")?.dispatchEvent(new Event("close"));
    const close = () => {
        menu.remove();
        removeEventListener("pointerdown", outside, true);
        onClose?.();
    };
    const outside = (/** @type {Event} */ event) => {
        if (!menu.contains(/** @type {Node} */ (event.target)))
            close();
    };
    const buttons = items.map((item) => el("button", { type: "button", role: "menuitem", text: item.text, onclick: () => {
        close();
        item.run();
    } }));
    const menu = el("div", { class: "menu", role: "menu", "aria-label": title, onclose: close, onkeydown: (/** @type {KeyboardEvent} */ event) => {
        const at = buttons.indexOf(/** @type {any} */ (document.activeElement)), last = buttons.length - 1;
        /** @type {Record<string, number>} */
        const places = { ArrowDown: at < last ? at + 1 : 0, ArrowUp: at > 0 ? at - 1 : last, Home: 0, End: last }, to = places[event.key];
        event.stopPropagation();
        if (to !== undefined || event.key === "Escape" || event.key === "Tab")
            event.preventDefault();
        if (to !== undefined)
            buttons[to].focus();
        else if (event.key === "Escape" || event.key === "Tab")
            close();
    } }, ...buttons);
    document.body.append(menu);
    const room = document.documentElement.clientWidth - menu.offsetWidth - 4, below = scrollY + innerHeight - menu.offsetHeight - 4;
    menu.style.left = `${Math.max(0, Math.min(x, room))}px`;
    menu.style.top = `${Math.max(scrollY, Math.min(y, below))}px`;
    addEventListener("pointerdown", outside, true);
    buttons[0]?.focus();
    return menu;
}
