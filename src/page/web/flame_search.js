// SPDX-License-Identifier: MIT
// Search: which frames match, how much of the time lies in them (a match below a match counts once), and the walk from one to the next.
"use strict";

/**
 * @typedef {object} Matches
 * @property {Uint8Array} frames by frame, the tree's own ones included: 1 = matches
 * @property {number} sum of the outermost matches, ns
 * @property {number} zoomed of it, what lies in the zoomed box
 * @property {number} count of the outermost matches
 * @property {boolean} narrower there are others, in boxes that are too narrow to be drawn
 * @property {() => number[]} nodes outermost matches, heaviest first
 */

class FlameSearch {
    /** @param {App} app */
    constructor(app) {
        this.app = app;
        this.text = "";
        /** @type {WeakMap<Tree, Uint8Array>} */
        this.kept = new WeakMap();
    }

    /** Which frames of a tree match. @param {Tree} tree @param {RegExp} wanted */
    framesOf(tree, wanted) {
        const { store } = this.app, text = String(wanted);
        if (this.text !== text) {
            this.text = text;
            this.kept = new WeakMap();
            this.names = Uint8Array.from(store.names, (name) => Number(wanted.test(name)));
        }
        let frames = this.kept.get(tree);
        if (!frames) {
            const own = store.frame.name.length, names = /** @type {Uint8Array} */ (this.names);
            frames = new Uint8Array(own + tree.extra.length);
            for (let i = 0; i < own; i++)
                frames[i] = names[store.frame.name[i]];
            tree.extra.forEach((name, i) => /** @type {Uint8Array} */ (frames)[own + i] = Number(wanted.test(name)));
            this.kept.set(tree, frames);
        }
        return frames;
    }

    /** @param {Tree} tree @param {Float64Array} sizes @param {number} zoom @returns {Matches | null} null = nothing is searched for */
    find(tree, sizes, zoom) {
        const wanted = regexOf(this.app.selection.search);
        if (!wanted)
            return null;
        const frames = this.framesOf(tree, wanted), { parent, frame } = tree, count = tree.count;
        const flags = new Uint8Array(count), /** @type {number[]} */ nodes = []; // 1: in a match, 2: in the zoomed box
        flags[zoom] = 2;
        let sum = 0, zoomed = 0;
        for (let i = 1; i < count; i++) {
            const up = flags[parent[i]], matches = frames[frame[i]];
            flags[i] |= up | matches;
            if (matches && !(up & 1) && sizes[i] > 0) {
                sum += sizes[i];
                nodes.push(i);
                if (flags[i] & 2)
                    zoomed += sizes[i];
            }
        }
        const more = FlameSearch.beyond(this.app, tree, frames, flags);
        sum += more.sum;
        zoomed = FlameSearch.isBelow(tree, zoom, frames) ? sizes[zoom] : zoomed + more.zoomed;
        let sorted = false;
        return { narrower: more.sum > 0, frames, sum, zoomed, count: nodes.length, nodes: () => {
            if (!sorted)
                nodes.sort((a, b) => sizes[b] - sizes[a] || a - b);
            sorted = true;
            return nodes;
        } };
    }

    /**
     * Matches in rows that go on below the nodes of a tree.
     * @param {App} app @param {Tree} tree @param {Uint8Array} frames @param {Uint8Array} flags of find()
     */
    static beyond(app, { search, beyond, rowNode }, frames, flags) {
        const found = { sum: 0, zoomed: 0 };
        if (!search || !beyond)
            return found;
        const { weight } = app.store.factsOf(app.weight), goesOn = search.goesOn(app.trees.nodesBelow(frames));
        for (const row of search.rows) {
            const flag = flags[rowNode[row]];
            if (beyond[row] === 0 || flag & 1 || !goesOn(row))
                continue;
            found.sum += weight[row];
            if (flag & 2)
                found.zoomed += weight[row];
        }
        return found;
    }

    /** Whether a caller of a node matches. @param {Tree} tree @param {number} node @param {Uint8Array} frames */
    static isBelow(tree, node, frames) {
        for (let up = tree.parent[node]; up > 0; up = tree.parent[up])
            if (frames[tree.frame[up]])
                return true;
        return false;
    }
}
