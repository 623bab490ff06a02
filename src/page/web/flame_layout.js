// SPDX-License-Identifier: MIT
// Places of a flame graph's boxes: from the zoomed node downwards, only boxes wide enough to be seen. Typed arrays, row by row from left to
// right; no object is made of a box.
"use strict";

const NARROWEST = 0.5; // CSS pixels

/** @typedef {{from: number, to: number}} Lens a part of a width, 0 to 1 */
/** @type {Lens} */
const WHOLE = { from: 0, to: 1 };

/** A part of a width that lies within it and is not too small. @param {number} from @param {number} to @param {number} least @returns {Lens} */
function lensOf(from, to, least) {
    const size = Math.max(to - from, least), start = Math.min(Math.max(from, 0), 1 - size);
    return size > 1 - 1e-9 ? WHOLE : { from: start, to: start + size };
}

/** The children of each node of a tree, as lists. */
class TreeLinks {
    /** @param {Tree} tree */
    constructor(tree) {
        const count = tree.count, { parent } = tree;
        this.first = new Uint32Array(count); // 0 = none
        this.next = new Uint32Array(count);
        for (let i = count - 1; i > 0; i--) {
            const up = parent[i];
            this.next[i] = this.first[up];
            this.first[up] = i;
        }
    }

    /** @param {Tree} tree @returns {TreeLinks} */
    static of(tree) {
        let links = TreeLinks.kept.get(tree);
        if (!links)
            TreeLinks.kept.set(tree, links = new TreeLinks(tree));
        return links;
    }
}

/** @type {WeakMap<Tree, TreeLinks>} */
TreeLinks.kept = new WeakMap();

class FlameLayout {
    constructor() {
        this.node = new Uint32Array(4096);
        this.x = new Float64Array(4096);
        this.width = new Float64Array(4096);
        /** First box of each row, and the end. @type {number[]} */
        this.rows = [0];
        /** Rows of ancestors, above the zoomed node. */
        this.above = 0;
    }

    get count() {
        return this.rows[this.rows.length - 1];
    }

    get rowCount() {
        return this.rows.length - 1;
    }

    /**
     * @param {Tree} tree @param {Float64Array} sizes by node @param {number} zoom node @param {number} root the topmost node that is shown
     * @param {number} width CSS pixels @param {Lens} [lens] the shown part of the zoomed node's width
     */
    make(tree, sizes, zoom, root, width, lens = WHOLE) {
        const above = [];
        for (let node = zoom; node !== root && node > 0; node = tree.parent[node])
            above.push(tree.parent[node]);
        this.rows = [0];
        this.end = 0;
        this.above = above.length;
        for (const node of above.reverse())
            this.row(() => this.add(node, 0, width));
        const full = width / (lens.to - lens.from), scale = sizes[zoom] > 0 ? full / sizes[zoom] : 0, links = TreeLinks.of(tree);
        this.right = width;
        this.row(() => this.add(zoom, -lens.from * full, full));
        for (let from = this.above; this.rows[from] < this.rows[from + 1]; from++)
            this.row(() => {
                for (let box = this.rows[from]; box < this.rows[from + 1]; box++)
                    this.addChildren(links, sizes, this.node[box], this.x[box], scale);
            });
        this.rows.pop();
    }

    /** @param {() => void} fill */
    row(fill) {
        fill();
        this.rows.push(/** @type {number} */ (this.end));
    }

    /**
     * The children that can be seen, heaviest first: wide enough, and within the lens.
     * @param {TreeLinks} links @param {Float64Array} sizes @param {number} node @param {number} x @param {number} scale
     */
    addChildren(links, sizes, node, x, scale) {
        const least = NARROWEST / scale, seen = [];
        for (let child = links.first[node]; child > 0; child = links.next[child])
            if (sizes[child] >= least)
                seen.push(child);
        if (seen.length > 1)
            seen.sort((a, b) => sizes[b] - sizes[a] || a - b);
        for (const child of seen) {
            const width = sizes[child] * scale;
            if (x + width > 0 && x < /** @type {number} */ (this.right))
                this.add(child, x, width);
            x += width;
        }
    }

    /** @param {number} node @param {number} x @param {number} width */
    add(node, x, width) {
        const at = /** @type {number} */ (this.end);
        if (at === this.node.length) {
            this.node = FlameLayout.grown(this.node, new Uint32Array(2 * at));
            this.x = FlameLayout.grown(this.x, new Float64Array(2 * at));
            this.width = FlameLayout.grown(this.width, new Float64Array(2 * at));
        }
        this.node[at] = node;
        this.x[at] = x;
        this.width[at] = width;
        this.end = at + 1;
    }

    /** @template {Uint32Array | Float64Array} T @param {T} old @param {T} larger @returns {T} */
    static grown(old, larger) {
        larger.set(old);
        return larger;
    }

    /** The box at a place; -1 = none. @param {number} row @param {number} x */
    find(row, x) {
        if (row < 0 || row >= this.rowCount)
            return -1;
        let low = this.rows[row], high = this.rows[row + 1];
        while (low < high) {
            const middle = (low + high) >> 1;
            if (this.x[middle] <= x)
                low = middle + 1;
            else
                high = middle;
        }
        const box = low - 1;
        return box >= this.rows[row] && x < this.x[box] + Math.max(this.width[box], 1) ? box : -1;
    }

    /** The box of a node; -1 = it is too narrow, or not below what is zoomed. @param {number} node @param {number} row */
    boxOf(node, row) {
        for (let box = this.rows[row] ?? 0; box < (this.rows[row + 1] ?? 0); box++)
            if (this.node[box] === node)
                return box;
        return -1;
    }

    /** The row of a box. @param {number} box */
    rowOf(box) {
        let row = 0;
        while (this.rows[row + 1] <= box)
            row++;
        return row;
    }
}
