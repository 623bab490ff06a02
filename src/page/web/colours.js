// SPDX-License-Identifier: MIT
// Colours and patterns: what ran is warm, what was parked is cool, what was ready is striped. Never by colour alone: states have
// patterns, and names in the legend and the details.
"use strict";

/** dark: lightness in the dark, in percent: light letters can be read on it (yellow is lighter than blue of the same lightness). */
const STATE_LOOKS = [
    { hue: 28, text: "running", dark: 25 },
    { hue: 50, text: "preempted", dark: 20, stripes: true },
    { hue: 212, text: "parked", dark: 29 },
    { hue: 285, text: "ready", dark: 34, stripes: true },
    { hue: 180, text: "waiting", dark: 22 },
    { hue: 120, text: "blocked", dark: 23, dots: true },
    { hue: 330, text: "gil", dark: 27, dots: true },
    { hue: 20, text: "lock", dark: 27, dots: true },
    { hue: 250, text: "queued", dark: 30, stripes: true },
];

/** @param {string} text */
function hashOf(text) {
    let hash = 2166136261;
    for (let i = 0; i < text.length; i++)
        hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
    return hash >>> 0;
}

/** Colour of a frame's box by state; the name varies it a little. @param {number} state @param {string} name @param {boolean} dark */
function stateColour(state, name, dark) {
    const hash = hashOf(name), look = STATE_LOOKS[state] ?? STATE_LOOKS[0];
    const hue = state === 0 ? 8 + hash % 46 : look.hue - 12 + hash % 24;
    const least = !dark ? 68 : state === 0 ? Math.round(34 - (hue - 8) * 17 / 45) : look.dark;
    return `hsl(${hue} ${state === 0 ? 78 : 48}% ${least + (hash >>> 8) % 9}%)`;
}

/** @param {boolean} dark @param {"stripes" | "dots"} kind @returns {HTMLCanvasElement} a tile */
function patternTile(dark, kind) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const context = /** @type {CanvasRenderingContext2D} */ (tile.getContext("2d"));
    context.strokeStyle = context.fillStyle = dark ? "rgba(255,255,255,.22)" : "rgba(0,0,0,.2)";
    if (kind === "dots") {
        context.fillRect(1, 1, 2, 2);
        context.fillRect(5, 5, 2, 2);
        return tile;
    }
    context.lineWidth = 2;
    for (const shift of [-8, 0, 8]) {
        context.beginPath();
        context.moveTo(shift, 8);
        context.lineTo(shift + 8, 0);
        context.stroke();
    }
    return tile;
}

class Looks {
    /** @param {boolean} dark */
    constructor(dark) {
        this.dark = dark;
        this.ink = dark ? "#e8e8e8" : "#1a1a1a";
        this.faint = dark ? "#9a9a9a" : "#5f5f5f";
        this.paper = dark ? "#1c1c1e" : "#ffffff";
        this.line = dark ? "#3a3a3c" : "#d8d8d8";
        this.match = dark ? "#d24dff" : "#b800ec";
        this.tiles = { stripes: patternTile(dark, "stripes"), dots: patternTile(dark, "dots") };
    }

    /**
     * Fill a box in the colour and the pattern of a state.
     * @param {CanvasRenderingContext2D} context @param {number} state @param {string} name
     * @param {number} x @param {number} y @param {number} width @param {number} height
     */
    fill(context, state, name, x, y, width, height) {
        const look = STATE_LOOKS[state] ?? STATE_LOOKS[0];
        context.fillStyle = stateColour(state, name, this.dark);
        context.fillRect(x, y, width, height);
        if (width >= 3 && (look.stripes || look.dots)) {
            context.fillStyle = /** @type {CanvasPattern} */ (context.createPattern(this.tiles[look.stripes ? "stripes" : "dots"], "repeat"));
            context.fillRect(x, y, width, height);
        }
    }
}
