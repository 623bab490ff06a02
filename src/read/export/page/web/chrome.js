// SPDX-License-Identifier: MIT
// What is around the views: title, tabs, weights, filter pills, help.
"use strict";

class Chrome {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        /** @type {Record<string, [string, () => void]>} */
        this.keys = {};
        this.tabs = el("nav", {});
        app.root.append(this.tabs, ...app.views.map((view) => view.element));
    }

    draw() {
        const { app } = this;
        this.tabs.replaceChildren(...app.views.map((view) =>
            el("button", { type: "button", text: view.title, "aria-current": String(view === app.view), onclick: () => app.set({ view: view.key }) })));
    }
}
