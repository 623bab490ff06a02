// SPDX-License-Identifier: MIT
// The flame graph as a picture that scales: all rows of what is zoomed to, in the colours of the screen.
"use strict";

const SVG_WIDTH = 1200;
const SVG_PATTERNS = [["stripes", "M0 10L10 0L8 0L0 8Z"], ["dots", "M1 1h2v2h-2zM5 5h2v2h-2z"]].map(([id, path]) =>
    `<pattern id="${id}" width="8" height="8" patternUnits="userSpaceOnUse"><path d="${path}" fill="#000" fill-opacity=".25"/></pattern>`).join("");

/** A text within XML: characters that it cannot have are left out. @param {string} text */
function xmlText(text) {
    const named = (/** @type {string} */ one) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[one] ?? "";
    return text.replace(/[&<>"\u0000-\u0008\u000b\u000c\u000e-\u001f\ud800-\udfff\ufffe\uffff]/g, named);
}

/** @param {FlamePane} pane @param {FlamePaint} painter @param {number} top where its first row is @returns {{text: string, height: number}} */
function paneSvg(pane, painter, top) {
    const layout = new FlameLayout(), { sizes, zoom, root, weights } = pane.shown, { tree } = weights, parts = [];
    layout.make(tree, sizes, zoom, root, SVG_WIDTH);
    for (let row = 0; row < layout.rowCount; row++)
        for (let box = layout.rows[row]; box < layout.rows[row + 1]; box++) {
            const node = layout.node[box], name = pane.nameOf(node), change = pane.changeOf(node), state = pane.stateOf(node);
            const y = top + FLAME_ROW * (pane.down ? row : layout.rowCount - 1 - row), width = Math.max(layout.width[box] - .5, .3).toFixed(1);
            const place = `x="${layout.x[box].toFixed(1)}" y="${y}" width="${width}" height="${FLAME_ROW - 1}"`, look = STATE_LOOKS[state];
            const match = node > 0 && pane.matches?.frames[tree.frame[node]] === 1;
            const fill = match ? painter.app.looks.match : node === 0 ? painter.app.looks.line : change ? painter.changeColour(change)
                : painter.colour(state, name);
            const pattern = change || match || node === 0 ? "" : look?.stripes ? "stripes" : look?.dots ? "dots" : "";
            const room = Math.floor((layout.width[box] - 6) / painter.letter), shown = room < 3 ? "" : cutText(name, room);
            parts.push(`<g><title>${xmlText(`${name} ${timeText(sizes[node])}, ${percentText(sizes[node], sizes[0])}`)}</title>` +
                `<rect ${place} fill="${fill}"/>` + (pattern ? `<rect ${place} fill="url(#${pattern})"/>` : "") +
                (shown ? `<text x="${(layout.x[box] + 3).toFixed(1)}" y="${y + 13}">${xmlText(shown)}</text>` : "") + "</g>");
        }
    return { text: parts.join("\n"), height: layout.rowCount * FLAME_ROW };
}

/** All that is shown, whole, with the sentence of the view. @param {FlameView} view */
function flameSvg(view) {
    const { looks, store } = view.app, parts = [];
    let height = 40;
    for (const pane of view.visible()) {
        const made = paneSvg(pane, view.painter, height);
        parts.push(made.text);
        height += made.height + 4;
    }
    return `<svg xmlns="http://www.w3.org/2000/svg" width="${SVG_WIDTH}" height="${height}" viewBox="0 0 ${SVG_WIDTH} ${height}" ` +
        `font-family="ui-monospace, monospace" font-size="12" fill="${looks.ink}"><defs>${SVG_PATTERNS}</defs>` +
        `<rect width="100%" height="100%" fill="${looks.paper}"/><text x="3" y="15" font-size="14">${xmlText(store.head.title)}</text>` +
        `<text x="3" y="32">${xmlText(view.sentence())}</text>\n${parts.join("\n")}\n</svg>\n`;
}
