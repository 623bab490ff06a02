// SPDX-License-Identifier: MIT
// Trees of large profiles that stand on other roots than the stacks' own: what is too narrow to be drawn is not divided any further.
//
// Model: turned round, or with a tree for each coroutine, the stacks of a large profile make millions of nodes, of which some thousand
// are seen. So such a tree is made for one filter and one zoom: a node gets its children where it is wide enough for one of them to be
// drawn; rows that go on below a node without children stay with it (`beyond`). Weights of all nodes that there are, are whole.
"use strict";

/** A node gets children from this share of the whole, or of the zoomed node, on: half a pixel of a canvas of 4,096. */
const DIVIDED_SHARE = 1 / 8192;
/** With fewer nodes a tree is made whole. */
const PRUNED_NODES = 50000;

class PrunedTree {
    /**
     * @param {Trees} trees @param {Facts} facts @param {Shape} shape @param {Filter} filter @param {string[]} zoom names from the root
     */
    constructor(trees, facts, shape, filter, zoom) {
        this.trees = trees;
        this.store = trees.store;
        this.facts = facts;
        this.zoom = zoom;
        this.inverted = shape.invert === "1";
        this.tree = new Tree();
        this.tree.rowNode = new Uint32Array(facts.count).fill(NONE);
        this.tree.beyond = new Uint8Array(facts.count);
        this.rows = this.takenRows(filter);
        this.spare = new Uint32Array(this.rows.length);
        const roots = trees.rootsOf(this.tree, shape.root), keys = this.store.frame.name.length + this.tree.extra.length;
        this.roots = roots;
        /** By key of a group: its number + 1 in the present division. */
        this.groupOf = new Uint32Array(keys);
        /** By row, turned round: the store's node that its next frame is. By node of the tree, else: the store's node that it is. */
        this.next = this.inverted ? facts.node.slice() : new Uint32Array(1024);
    }

    /** The tree of a selection. @param {Trees} trees @param {Selection} selection @param {Filter} filter @param {Facts} facts */
    static of(trees, selection, filter, facts) {
        const zoom = zoomNames(selection).map((name) => name.replace(/\t.*/, ""));
        return new PrunedTree(trees, facts, shapeOf(selection), filter, zoom).make();
    }

    /** Whether a shape is made so. @param {Store} store @param {Shape} shape */
    static is(store, { root, invert, ...others }) {
        return root + invert !== "" && store.nodeCount > PRUNED_NODES && store.head.sides.length === 1 && !store.byLine &&
            Object.values(others).every((value) => value === "");
    }

    /** Rows that a filter takes, in the order of the store's nodes. @param {Filter} filter */
    takenRows(filter) {
        const { facts } = this, rows = new Uint32Array(facts.count);
        let count = 0;
        for (let i = 0; i < facts.count; i++)
            if (filter.labels[facts.label[i]] && filter.states[facts.state[i]] &&
                !(filter.timed && (facts.tick[i] < filter.firstTick || facts.tick[i] > filter.lastTick)))
                rows[count++] = i;
        const taken = rows.slice(0, count);
        return taken.some((row, i) => i > 0 && facts.node[row] < facts.node[taken[i - 1]])
            ? taken.sort((a, b) => facts.node[a] - facts.node[b] || a - b) : taken;
    }

    /** @returns {Tree} */
    make() {
        const { rows, tree } = this, whole = this.sum(0, rows.length), least = whole * DIVIDED_SHARE;
        /**
         * Nodes with their rows; `named`: how many names of the zoom they are at, -1 = beside it.
         * @type {{node: number, from: number, to: number, named: number, least: number}[]}
         */
        const left = [{ node: 0, from: 0, to: rows.length, named: 0, least }];
        for (let one = left.pop(); one; one = left.pop()) {
            const { node } = one, children = node === 0 && this.roots ? this.divideByRoot(one) : this.divide(one);
            for (const child of children) {
                const named = this.isNamed(child.node, one.named) ? one.named + 1 : -1, sum = this.sum(child.from, child.to);
                const zoomed = named === this.zoom.length && named > 0, bound = zoomed ? sum * DIVIDED_SHARE : one.least;
                if (sum > 0 && (named > 0 || sum >= bound))
                    left.push({ ...child, named: zoomed ? -1 : named, least: bound });
                else
                    this.leave(child);
            }
        }
        tree.search = { rows, goesOn: (below) => this.goesOn(below) };
        return tree.seal();
    }

    /** @param {number} node @param {number} named */
    isNamed(node, named) {
        return named >= 0 && named < this.zoom.length && this.trees.nameOf(this.tree, this.tree.frame[node]) === this.zoom[named];
    }

    /** @param {number} from @param {number} to */
    sum(from, to) {
        let sum = 0;
        for (let i = from; i < to; i++)
            sum += this.facts.weight[this.rows[i]];
        return sum;
    }

    /** The rows of a node that gets no children. @param {{node: number, from: number, to: number}} one */
    leave({ node, from, to }) {
        const { rows, facts, tree: { rowNode } } = this, at = this.next[node], beyond = /** @type {Uint8Array} */ (this.tree.beyond);
        for (let i = from; i < to; i++) {
            rowNode[rows[i]] = node;
            beyond[rows[i]] = Number(this.inverted ? this.next[rows[i]] > 0 : facts.node[rows[i]] !== at);
        }
    }

    /** @param {{from: number, to: number}} one */
    divideByRoot({ from, to }) {
        const roots = /** @type {Uint32Array} */ (this.roots), { label } = this.facts;
        return this.divideBy(0, from, to, (row) => roots[label[row]]);
    }

    /** @param {{node: number, from: number, to: number}} one */
    divide({ node, from, to }) {
        return this.inverted ? this.divideCallers(node, from, to) : this.divideCallees(node, from, to);
    }

    /** Rows that end here stay; the others are divided by their next frame. @param {number} node @param {number} from @param {number} to */
    divideCallers(node, from, to) {
        const { rows, next, tree: { rowNode } } = this, { parent, node: { frame }, functionOf } = this.store;
        let kept = from;
        for (let i = from; i < to; i++)
            if (next[rows[i]] === 0) {
                const row = rows[i];
                rowNode[row] = node;
                rows[i] = rows[kept];
                rows[kept++] = row;
            }
        const children = this.divideBy(node, kept, to, (row) => functionOf[frame[next[row]]]);
        for (let i = kept; i < to; i++)
            next[rows[i]] = parent[next[rows[i]]];
        return children;
    }

    /**
     * Rows are in the order of the store's nodes, where what is below a node follows it.
     * @param {number} node @param {number} from @param {number} to
     */
    divideCallees(node, from, to) {
        const { rows, tree, facts } = this, { parent, end, node: { frame } } = this.store, at = this.next[node], children = [];
        for (; from < to && facts.node[rows[from]] === at; from++)
            tree.rowNode[rows[from]] = node;
        while (from < to) {
            let child = facts.node[rows[from]], low = from + 1, high = to;
            while (parent[child] !== at)
                child = parent[child];
            while (low < high) {
                const middle = (low + high) >> 1;
                if (facts.node[rows[middle]] < end[child])
                    low = middle + 1;
                else
                    high = middle;
            }
            const made = this.append(node, frame[child]);
            this.next[made] = child;
            children.push({ node: made, from, to: low });
            from = low;
        }
        return children;
    }

    /** @param {number} parent @param {number} frame */
    append(parent, frame) {
        const made = this.tree.append(parent, frame);
        if (!this.inverted && made === this.next.length) {
            const larger = new Uint32Array(2 * made);
            larger.set(this.next);
            this.next = larger;
        }
        return made;
    }

    /**
     * A child for each key, and the rows in the order of the children.
     * @param {number} node @param {number} from @param {number} to @param {(row: number) => number} keyOf
     */
    divideBy(node, from, to, keyOf) {
        const { rows, spare, groupOf } = this;
        /** @type {{node: number, from: number, to: number}[]} */
        const children = [];
        for (let i = from; i < to; i++) {
            const key = keyOf(rows[i]);
            if (groupOf[key] === 0) {
                children.push({ node: this.append(node, key), from: 0, to: 0 });
                groupOf[key] = children.length;
            }
            children[groupOf[key] - 1].to++;
        }
        let at = from;
        for (const child of children) {
            const { to: count } = child;
            child.from = child.to = at;
            at += count;
        }
        for (let i = from; i < to; i++)
            spare[children[groupOf[keyOf(rows[i])] - 1].to++] = rows[i];
        rows.set(spare.subarray(from, to), from);
        for (const child of children)
            groupOf[this.tree.frame[child.node]] = 0;
        return children;
    }

    /**
     * Whether a row that goes on below its node has one of some frames on the way down, where there is none up to the node.
     * @param {Uint8Array} below by node of the store: 1 = it is such a frame's, or below one
     * @returns {(row: number) => boolean}
     */
    goesOn(below) {
        const nodes = this.inverted ? this.next : this.facts.node;
        return (row) => below[nodes[row]] === 1;
    }
}
