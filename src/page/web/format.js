// SPDX-License-Identifier: MIT
// Numbers as texts, and elements of the page.
"use strict";

/** Nanoseconds as "1.234 s", "5.678 ms", "9.012 µs". @param {number} ns */
function timeText(ns) {
    const size = Math.abs(ns);
    return size >= 1e9 ? `${(ns / 1e9).toFixed(3)} s` : size >= 1e6 ? `${(ns / 1e6).toFixed(3)} ms`
        : size >= 1e3 ? `${(ns / 1e3).toFixed(3)} µs` : `${ns} ns`;
}

/** Nanoseconds as seconds with six decimals, as `greenprof report` prints them. @param {number} ns */
function secondsText(ns) {
    return (ns / 1e9).toFixed(6);
}

/** @param {number} part @param {number} whole */
function percentText(part, whole) {
    return whole > 0 ? `${(100 * part / whole).toFixed(2)} %` : "0 %";
}

/** 1234567 as "1 234 567". @param {number} count */
function countText(count) {
    return String(Math.round(count)).replace(/\B(?=(\d{3})+$)/g, " ");
}

/**
 * An element with attributes and children. Texts are texts: nothing is parsed as HTML. Attributes whose names begin with "on" are
 * listeners; "text" is the content.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name @param {Record<string, any>} [attributes] @param {(Node | string)[]} children
 * @returns {HTMLElementTagNameMap[K]}
 */
function el(name, attributes = {}, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) {
        if (key === "text")
            made.textContent = value;
        else if (key.startsWith("on"))
            made.addEventListener(key.slice(2), value);
        else if (value === true || value === false)
            made.toggleAttribute(key, value);
        else if (value !== null && value !== undefined)
            made.setAttribute(key, String(value));
    }
    made.append(...children);
    return made;
}

/**
 * A canvas as wide as its parent, sharp on every display.
 * @param {HTMLCanvasElement} canvas @param {number} width @param {number} height CSS pixels
 * @returns {CanvasRenderingContext2D} that draws in CSS pixels, wiped
 */
function canvasContext(canvas, width, height) {
    const ratio = window.devicePixelRatio || 1;
    canvas.width = Math.max(1, Math.round(width * ratio));
    canvas.height = Math.max(1, Math.round(height * ratio));
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
    const context = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    return context;
}

/** A text cut to a number of characters. @param {string} text @param {number} room */
function cutText(text, room) {
    return text.length <= room ? text : room < 3 ? "" : text.slice(0, room - 1) + "…";
}

/**
 * @template T
 * @typedef {object} Column of a table
 * @property {string} title
 * @property {(row: T) => string} text
 * @property {(row: T) => number | string} value it is sorted by
 * @property {boolean} [left]
 * @property {string} [help]
 */

/**
 * A column of times.
 * @template T
 * @param {string} title @param {(row: T) => number} ns @param {string} [help] @returns {Column<T>}
 */
function timeColumn(title, ns, help) {
    return { title, help, text: (row) => timeText(ns(row)), value: ns };
}

/**
 * A column of counts.
 * @template T
 * @param {string} title @param {(row: T) => number} count @param {string} [help] @returns {Column<T>}
 */
function countColumn(title, count, help) {
    return { title, help, text: (row) => countText(count(row)), value: count };
}

/**
 * A column of texts.
 * @template T
 * @param {string} title @param {(row: T) => string} text @param {(row: T) => number | string} [value] it is sorted by @returns {Column<T>}
 */
function textColumn(title, text, value = text) {
    return { title, left: true, text, value };
}

/**
 * A table that is sorted by a click, or a key, on a column's head.
 * @template T
 * @param {Column<T>[]} columns
 * @param {T[]} rows @param {string} sort "TITLE", or "-TITLE": descending @param {(sort: string) => void} onSort
 * @param {{limit?: number, chosen?: (row: T) => boolean, onChoose?: (row: T) => void, caption: string, total?: number, fixed?: boolean}}
 *     options total: of rows, where only the first of them, in this order, are handed over; fixed: it cannot be sorted
 */
function sortedTable(columns, rows, sort, onSort, options) {
    const down = sort.startsWith("-"), key = columns.find((column) => column.title === sort.replace(/^-/, ""));
    const sorted = key ? [...rows].sort((a, b) => {
        const x = key.value(a), y = key.value(b), order = x < y ? -1 : x > y ? 1 : 0;
        return down ? -order : order;
    }) : rows;
    const head = columns.map((column) => {
        const current = column === key, next = current && down ? column.title : "-" + column.title;
        return el("th", { scope: "col", class: column.left ? "left" : "", title: column.help,
                          "aria-sort": options.fixed ? null : !current ? "none" : down ? "descending" : "ascending" },
                  options.fixed ? column.title
                      : el("button", { type: "button", text: column.title + (!current ? "" : down ? " ▾" : " ▴"), onclick: () => onSort(next) }));
    });
    const limit = options.limit ?? 500;
    const body = sorted.slice(0, limit).map((row) => {
        const chosen = options.chosen?.(row) ?? false, choose = options.onChoose;
        return el("tr", { class: chosen ? "chosen" : "", "aria-selected": String(chosen), tabindex: choose ? 0 : null, onclick: () => choose?.(row),
                          onkeydown: (/** @type {KeyboardEvent} */ event) => {
                              if (event.key === "Enter")
                                  choose?.(row);
                          } },
                  ...columns.map((column) => el("td", { class: column.left ? "left" : "", text: column.text(row) })));
    });
    const table = el("table", {}, el("caption", { text: options.caption }), el("thead", {}, el("tr", {}, ...head)), el("tbody", {}, ...body));
    const total = options.total ?? rows.length;
    return total > limit
        ? el("div", { class: "table" }, table,
             el("p", { class: "more", text: `${countText(total - limit)} more rows: search or filter to see them` }))
        : el("div", { class: "table" }, table);
}

/**
 * Put other content into an element; what has the focus stays: the control at the same place.
 * @param {HTMLElement} holder @param {(Node | string)[]} content
 */
function swapContent(holder, ...content) {
    const controls = () => [...holder.querySelectorAll("button, select, canvas, [tabindex]")];
    const at = document.activeElement ? controls().indexOf(document.activeElement) : -1;
    holder.replaceChildren(...content);
    if (at >= 0)
        /** @type {HTMLElement | undefined} */ (controls()[at])?.focus();
}
