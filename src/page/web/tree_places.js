// SPDX-License-Identifier: MIT
// Places of stacks in a tree that keeps callers above callees: each node of the store is placed once, below the place of its parent, so a
// shape costs by the number of nodes, not by the frames on all stacks.
"use strict";

/** Entries of all memos together: 4 bytes each. */
const PLACES_MAX = 1 << 23;

class TreePlaces {
    /**
     * @param {Trees} trees @param {Tree} tree that is filled @param {Shape} shape
     * @param {Uint8Array | null} kept by frame: 1 = it is not hidden
     * @param {number} groups
     */
    constructor(trees, tree, shape, kept, groups) {
        this.store = trees.store;
        this.tree = tree;
        this.kept = kept;
        this.collapses = shape.collapse === "1";
        this.language = shape.native === "fold" ? this.belowLanguage() : null;
        /** By group: places + 1 of all nodes, 0 = not yet. @type {Uint32Array[]} */
        this.whole = [];
        /** As `whole`, of stacks whose native frames are folded. @type {Uint32Array[]} */
        this.folded = [];
        this.groups = groups;
        this.alone = new Uint8Array(0);
        this.stack = new Uint32Array(0);
    }

    /** Prepare for place(). */
    prepare() {
        this.alone = this.groups === 1 ? this.aloneNodes() : new Uint8Array(this.store.nodeCount);
        this.stack = new Uint32Array(this.store.depth.reduce((most, one) => Math.max(most, one), 0) + 1);
    }

    /**
     * Whether a shape can be made this way: no stack is turned round or cut by what is further down.
     * @param {Shape} shape @param {number} groups @param {number} nodes
     */
    static can({ invert, sandwich, stitch, hide, hideModule, native, collapse, focus }, groups, nodes) {
        const cut = hide + hideModule + native + collapse + focus !== "";
        return invert === "" && sandwich === "" && !(stitch === "1" && cut) && groups * nodes <= PLACES_MAX;
    }

    /** By frame: 1 = it is not hidden; null: none is. @param {Store} store @param {Shape} shape */
    static keptFrames(store, { hide, hideModule }) {
        const { frame } = store, hidden = regexOf(hide), module = hideModule === "" ? -1 : store.head.modules.indexOf(hideModule);
        if (!hidden && module < 0)
            return null;
        const names = Uint8Array.from(store.names, (name) => Number(hidden ? hidden.test(name) : false));
        return Uint8Array.from(frame.name, (name, one) => Number(!names[name] && frame.module[one] !== module));
    }

    /** By node: 1 = a frame of a language that is not hidden is on the stack. */
    belowLanguage() {
        const { frame, node, parent, nodeCount } = this.store, is = Uint8Array.from(frame.kind, (kind, i) => Number(kind === FRAME.language &&
            (!this.kept || this.kept[i] === 1)));
        const below = new Uint8Array(nodeCount);
        for (let i = 1; i < nodeCount; i++)
            below[i] = below[parent[i]] | is[node.frame[i]];
        return below;
    }

    /**
     * By node: 1 = no other node of the store is placed where it is, so that no place is looked up for it. Siblings have different frames;
     * where one of them is left out, its children are placed beside the others.
     */
    aloneNodes() {
        const { store: { parent, nodeCount, byLine } } = this, left = new Uint8Array(nodeCount), joined = new Uint8Array(nodeCount);
        const alone = new Uint8Array(nodeCount);
        if (byLine || this.language)
            return alone;
        for (let i = 1; i < nodeCount; i++)
            if (this.isLeftOut(i))
                left[i] = joined[parent[i]] = 1;
        alone[0] = 1;
        for (let i = 1; i < nodeCount; i++)
            alone[i] = Number(alone[parent[i]] === 1 && joined[parent[i]] === 0 && left[i] === 0);
        return alone;
    }

    /** Whether a node has the place of its parent, which has one of its own. @param {number} i */
    isLeftOut(i) {
        const { kept, store: { frame, node, parent } } = this, one = node.frame[i], caller = node.frame[parent[i]];
        return (kept !== null && kept[one] === 0) ||
            (this.collapses && parent[i] > 0 && frame.name[one] === frame.name[caller] && frame.file[one] === frame.file[caller]);
    }

    /**
     * The tree's node of each of the store's, where all stacks stand below the root and are treated alike. Place after place gets its
     * children: what is below the store's nodes that stand there, looked up by frame. No hash table of all nodes is made.
     */
    all() {
        const { tree, store: { nodeCount, node: { frame }, functionOf, end } } = this, places = new Uint32Array(nodeCount);
        /** By frame: the last place that has such a child, and the child. */
        const placeOf = new Int32Array(functionOf.length).fill(-1), childOf = new Uint32Array(functionOf.length);
        /** By place: the first of the store's nodes that stand there. By node of the store: the next one; 0 = none. */
        const first = new Uint32Array(nodeCount), next = new Uint32Array(nodeCount), left = new Uint32Array(nodeCount);
        for (let count = 1; count > 0;) {
            const place = left[--count], above = tree.frame[place];
            for (let own = first[place], more = true; more; more = own > 0) {
                for (let i = own + 1, last = end[own]; i < last;) {
                    const one = functionOf[frame[i]];
                    if (this.isHidden(one, above)) {
                        places[i++] = place; // and on with what is below it
                        continue;
                    }
                    if (placeOf[one] !== place) {
                        placeOf[one] = place;
                        left[count++] = childOf[one] = tree.append(place, one);
                    }
                    const child = places[i] = childOf[one];
                    next[i] = first[child];
                    first[child] = i;
                    i = end[i];
                }
                own = next[own];
            }
        }
        return places;
    }

    /** Whether a frame is not shown below another one, -1 = the root. @param {number} one @param {number} above */
    isHidden(one, above) {
        const { kept, store: { frame } } = this;
        return (kept !== null && kept[one] === 0) ||
            (this.collapses && above >= 0 && frame.name[one] === frame.name[above] && frame.file[one] === frame.file[above]);
    }

    /**
     * The tree's node of a stack.
     * @param {number} node of the store @param {number} group @param {number} base what the stacks of the group stand below
     * @param {boolean} spawned whether what stands there spawned them
     */
    place(node, group, base, spawned) {
        const folds = this.language !== null && this.language[node] === 1, memos = folds ? this.folded : this.whole;
        const memo = memos[group] ??= new Uint32Array(this.store.nodeCount), { stack, store: { parent } } = this;
        let left = 0, at = base;
        for (; node > 0 && memo[node] === 0; node = parent[node])
            stack[left++] = node;
        if (node > 0)
            at = memo[node] - 1;
        while (left > 0) {
            const above = at;
            node = stack[--left];
            at = this.below(at, node, folds);
            if (spawned && above === base && at !== base && base > 0)
                this.tree.edges.add(at);
            memo[node] = at + 1;
        }
        return at;
    }

    /** Where a node stands whose parent stands at a place. @param {number} at @param {number} node @param {boolean} folds */
    below(at, node, folds) {
        const { store, tree, kept } = this, { frame } = store, own = store.node.frame[node], one = store.functionOf[own];
        if (this.alone[node] === 1)
            return tree.append(at, one);
        if ((kept && kept[one] === 0) || (folds && frame.kind[one] === FRAME.native))
            return at;
        if (this.collapses && at > 0) {
            const caller = tree.frame[at];
            if (frame.name[one] === frame.name[caller] && frame.file[one] === frame.file[caller])
                return at;
        }
        return tree.child(at, one);
    }
}
