// SPDX-License-Identifier: MIT
// The look of boxes: by state, or, in a diff, by change; matches, the focus and where a stack was spawned are marked by more than colour.
"use strict";

const FLAME_ROW = 18; // CSS pixels
const FLAME_FONT = '12px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';

class FlamePaint {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        /** @type {Map<string, string>[]} by state: name -> colour */
        this.colours = [];
        /** @type {boolean | undefined} of `colours` */
        this.dark = undefined;
        const context = /** @type {CanvasRenderingContext2D} */ (el("canvas").getContext("2d"));
        context.font = FLAME_FONT;
        this.letter = context.measureText("mmmmmmmmmm").width / 10;
    }

    /** @param {number} state @param {string} name */
    colour(state, name) {
        if (this.dark !== this.app.looks.dark) {
            this.dark = this.app.looks.dark;
            this.colours = STATE_LOOKS.map(() => new Map());
        }
        const kept = this.colours[state];
        let colour = kept.get(name);
        if (colour === undefined)
            kept.set(name, colour = stateColour(state, name, this.app.looks.dark));
        return colour;
    }

    /** Red is more, blue is less; grey is what chance may explain. @param {Change} change */
    changeColour(change) {
        const { dark } = this.app.looks, larger = Math.max(change.base, change.file);
        if (!change.sure || larger <= 0)
            return dark ? "hsl(0 0% 34%)" : "hsl(0 0% 86%)";
        const strength = Math.min(1, 0.25 + 1.5 * Math.abs(change.difference) / larger), hue = change.difference >= 0 ? 8 : 212;
        return `hsl(${hue} ${Math.round(85 * strength)}% ${Math.round(dark ? 30 + 12 * strength : 88 - 26 * strength)}%)`;
    }

    /** @param {Change} change */
    static signOf(change) {
        return !change.sure ? "" : change.difference >= 0 ? "plus" : "minus";
    }

    /** All rows of a pane that can be seen. @param {CanvasRenderingContext2D} context @param {FlamePane} pane */
    paint(context, pane) {
        const { layout } = pane;
        context.font = FLAME_FONT;
        context.textBaseline = "middle";
        for (let row = 0; row < layout.rowCount; row++) {
            const y = pane.rowY(row);
            if (y <= -FLAME_ROW || y >= pane.height)
                continue;
            for (let box = layout.rows[row]; box < layout.rows[row + 1]; box++)
                this.box(context, pane, box, y, row < layout.above ? 0.55 : 1);
        }
        context.globalAlpha = 1;
        this.outline(context, pane, pane.hover, this.app.looks.ink, 1);
        this.outline(context, pane, pane.focus, this.app.looks.ink, 3);
    }

    /**
     * Beside matches of a search, others are pale.
     * @param {CanvasRenderingContext2D} context @param {FlamePane} pane @param {number} box @param {number} y @param {number} alpha
     */
    box(context, pane, box, y, alpha) {
        const { layout, tree } = pane, { looks } = this.app, node = layout.node[box], x = Math.max(layout.x[box], 0);
        const wide = Math.min(layout.x[box] + layout.width[box], pane.width) - x;
        const width = wide > 3 ? wide - 1 : Math.max(wide, 0.5), height = FLAME_ROW - 1;
        const match = node > 0 && pane.matches !== null && pane.matches.frames[tree.frame[node]] === 1;
        const name = pane.nameOf(node), change = match ? null : pane.changeOf(node);
        context.globalAlpha = pane.matches !== null && !match ? alpha * 0.35 : alpha;
        context.fillStyle = match ? looks.match : node === 0 ? looks.line : change ? this.changeColour(change)
            : this.colour(pane.stateOf(node), name);
        context.fillRect(x, y, width, height);
        if (width >= 3 && !match && node > 0)
            this.pattern(context, change ? FlamePaint.signOf(change) : STATE_LOOKS[pane.stateOf(node)], x, y, width, height);
        if (tree.edges.has(node))
            this.edge(context, x, pane.down ? y + 1 : y + height - 1, width);
        context.globalAlpha = alpha;
        if (width > 3 * this.letter + 6) {
            context.fillStyle = match ? (looks.dark ? "#000" : "#fff") : looks.dark ? "#fff" : "#111";
            context.fillText(cutText(name, Math.floor((width - 6) / this.letter)), x + 3, y + height / 2 + 1);
        }
    }

    /**
     * @param {CanvasRenderingContext2D} context @param {any} look of a state, "plus", "minus" or "" @param {number} x @param {number} y
     * @param {number} width @param {number} height
     */
    pattern(context, look, x, y, width, height) {
        const { tiles } = this.app.looks;
        if (typeof look === "string" && look !== "" && width >= 10) {
            const lines = new Path2D(look === "plus" ? "M4 0V8M0 4H8" : "M0 4H8");
            context.save();
            context.translate(x + width - 10, y + height / 2 - 4);
            context.strokeStyle = this.app.looks.ink;
            context.stroke(lines);
            context.restore();
        } else if (look.stripes || look.dots) {
            context.fillStyle = /** @type {CanvasPattern} */ (context.createPattern(look.stripes ? tiles.stripes : tiles.dots, "repeat"));
            context.fillRect(x, y, width, height);
        }
    }

    /**
     * The stack above was not called but spawned: a dashed line between the two.
     * @param {CanvasRenderingContext2D} context @param {number} x @param {number} y @param {number} width
     */
    edge(context, x, y, width) {
        context.save();
        context.strokeStyle = this.app.looks.ink;
        context.lineWidth = 2;
        context.setLineDash([5, 3]);
        context.beginPath();
        context.moveTo(x, y);
        context.lineTo(x + width, y);
        context.stroke();
        context.restore();
    }

    /**
     * @param {CanvasRenderingContext2D} context @param {FlamePane} pane @param {number} node -1 = none @param {string} colour
     * @param {number} line
     */
    outline(context, pane, node, colour, line) {
        const row = node < 0 ? -1 : pane.rowOfNode(node), box = row < 0 ? -1 : pane.layout.boxOf(node, row);
        if (box < 0)
            return;
        const x = Math.max(pane.layout.x[box], 0), y = pane.rowY(row);
        const width = Math.max(Math.min(pane.layout.x[box] + pane.layout.width[box], pane.width) - x - 1, 3);
        context.strokeStyle = colour;
        context.lineWidth = line;
        context.strokeRect(x + line / 2, y + line / 2, Math.max(width - line, 1), FLAME_ROW - 1 - line);
        if (line > 1) {
            context.strokeStyle = this.app.looks.paper;
            context.lineWidth = 1;
            context.strokeRect(x + line + 0.5, y + line + 0.5, Math.max(width - 2 * line - 1, 1), FLAME_ROW - 2 - 2 * line);
        }
    }
}
