// SPDX-License-Identifier: MIT
// Trees that are drawn: the stacks put together as a selection says, and their weights under its filters.
//
// Model: a shape (what stands at the root, what is hidden, which way round) gives a tree, which is made once and kept. A filter
// gives weights of a tree's nodes, which are summed up anew each time: one pass over the rows, one over the nodes.
"use strict";

/**
 * @typedef {object} Weights of a tree's nodes
 * @property {Tree} tree
 * @property {Float64Array} total by node, with all below it
 * @property {Float64Array} self
 * @property {Float64Array} samples with all below it
 * @property {Float64Array} base of a diff: total of the first side, where `total` is that of the second
 * @property {Float64Array} baseSelf
 * @property {Float64Array} baseSamples
 * @property {Float64Array} squares of a diff: sum of the squares of the samples' weights, ns², with all below
 * @property {Float64Array} baseSquares
 * @property {Uint8Array} state of the heaviest rows of the node itself: what it is coloured by
 * @property {number} sum of all taken rows, ns
 * @property {number} baseSum
 * @property {number} count samples
 */

/** The part of a selection that a tree depends on. @param {Selection} selection */
function shapeOf(selection) {
    const { focus, hide, hideModule, native, collapse, root, stitch, invert, sandwich } = selection;
    return { focus, hide, hideModule, native, collapse, root, stitch, invert, sandwich };
}

/** @typedef {ReturnType<typeof shapeOf>} Shape */

/** Stands in a path between a stack and what it spawned. */
const SPAWNED = -1;
/** Node of a row that is left out. */
const NONE = 0xffffffff;

class Trees {
    /** @param {Store} store */
    constructor(store) {
        this.store = store;
        /** @type {Map<string, Tree>} */
        this.kept = new Map();
    }

    /**
     * The tree of a weight's rows in the shape that a selection asks for.
     * @param {Selection} selection @param {string} [weight] @returns {Tree}
     */
    tree(selection, weight = selection.weight || this.store.head.weight) {
        const facts = this.store.factsOf(weight), shape = shapeOf(selection);
        const kind = facts === this.store.delays ? "delay" : facts === this.store.paths ? "path" : "row";
        const key = kind + JSON.stringify(shape);
        let tree = this.kept.get(key);
        if (!tree) {
            tree = this.make(facts, shape);
            if (this.kept.size > 12)
                this.kept.delete(/** @type {string} */ (this.kept.keys().next().value));
            this.kept.set(key, tree);
        }
        return tree;
    }

    /** @param {Facts} facts @param {Shape} shape @returns {Tree} */
    make(facts, shape) {
        if (shape.native === "fold" && !this.store.frame.kind.includes(FRAME.language)) // nothing to be folded below
            shape = { ...shape, native: "" };
        const { focus, ...others } = shape, plain = !this.store.byLine && Object.values(others).every((value) => value === "");
        return plain ? this.plain(facts, this.focusedBy(focus)) : this.shaped(facts, shape);
    }

    /** By node: 1 = the stack has a frame that matches; null: all stacks are taken. @param {string} focus */
    focusedBy(focus) {
        const { store } = this, wanted = regexOf(focus);
        if (!wanted)
            return null;
        const names = Uint8Array.from(store.names, (name) => Number(wanted.test(name)));
        return this.nodesBelow(Uint8Array.from(store.frame.name, (name) => names[name]));
    }

    /** The store's own tree. @param {Facts} facts @param {Uint8Array | null} taken by node; null = all */
    plain(facts, taken) {
        const { store } = this, tree = new Tree();
        tree.count = store.nodeCount;
        tree.parent = store.parent;
        tree.frame = Int32Array.from(store.node.frame);
        tree.depth = store.depth;
        tree.frame[0] = -1;
        tree.rowNode = taken ? Uint32Array.from(facts.node, (node) => taken[node] ? node : NONE) : facts.node;
        return tree;
    }

    /** @param {Facts} facts @param {Shape} shape */
    shaped(facts, shape) {
        const tree = new Tree(), { store } = this, roots = this.rootsOf(tree, shape.root);
        const groups = this.groupsOf(roots, shape.stitch === "1"), count = groups ? groups.reduce((most, one) => Math.max(most, one), 0) + 1 : 1;
        tree.rowNode = new Uint32Array(facts.count);
        if (TreePlaces.can(shape, count, store.nodeCount)) {
            this.placed(tree, facts, shape, roots, groups, count);
            return tree.seal();
        }
        const place = this.isWhole(shape) ? this.wholeStacks(tree, shape) : this.cutStacks(tree, shape);
        /** By (root and spawner, node): the node it became. @type {Map<number, number>} */
        const made = new Map();
        for (let i = 0; i < facts.count; i++) {
            if (!groups && i > 0 && facts.node[i] === facts.node[i - 1]) { // rows are sorted by node
                tree.rowNode[i] = tree.rowNode[i - 1];
                continue;
            }
            const label = facts.label[i], root = roots ? roots[label] : -1;
            const above = shape.stitch === "1" ? store.label.coro[label] : 0;
            const key = (groups ? groups[label] : 0) * store.nodeCount + facts.node[i];
            let node = made.get(key);
            if (node === undefined) {
                node = place(facts.node[i], above, root);
                made.set(key, node);
            }
            tree.rowNode[i] = node;
        }
        return tree.seal();
    }

    /**
     * Place the stacks of all rows below what their group stands below.
     * @param {Tree} tree @param {Facts} facts @param {Shape} shape @param {Uint32Array | null} roots @param {Uint32Array | null} groups
     * @param {number} count of the groups
     */
    placed(tree, facts, shape, roots, groups, count) {
        tree.reserve(this.store.nodeCount);
        const { coro } = this.store.label, { rowNode } = tree, taken = this.focusedBy(shape.focus);
        const places = new TreePlaces(this, tree, shape, TreePlaces.keptFrames(this.store, shape), count);
        /** By group: the node above its stacks, and whether it spawned them. @type {{node: number, spawned: boolean}[]} */
        const bases = [];
        if (!groups && places.language === null) {
            const all = places.all();
            for (let i = 0; i < facts.count; i++)
                rowNode[i] = taken && taken[facts.node[i]] === 0 ? NONE : all[facts.node[i]];
            return;
        }
        tree.reserveSlots(this.store.nodeCount);
        places.prepare();
        const baseOf = (/** @type {number} */ label) => {
            const root = roots ? tree.child(0, roots[label]) : 0;
            const path = shape.stitch === "1" && coro[label] > 0 ? this.spawnersOf(coro[label] - 1) : [];
            return { node: Trees.addPath(tree, root, path), spawned: path.length > 0 };
        };
        for (let i = 0; i < facts.count; i++) {
            const label = facts.label[i], group = groups ? groups[label] : 0;
            if (taken && taken[facts.node[i]] === 0) {
                rowNode[i] = NONE;
                continue;
            }
            const base = bases[group] ??= baseOf(label);
            rowNode[i] = places.place(facts.node[i], group, base.node, base.spawned);
        }
    }

    /** Whether all frames of all stacks are shown, and no others. @param {Shape} shape */
    isWhole({ root, invert, ...others }) {
        return Object.values(others).every((value) => value === "");
    }

    /** Puts stacks into a tree: the node of the innermost frame, inverted of the outermost. @param {Tree} tree @param {Shape} shape */
    wholeStacks(tree, shape) {
        const { parent, node: { frame }, functionOf, depth } = this.store;
        const stack = new Uint32Array(depth.reduce((most, one) => Math.max(most, one), 0));
        return (/** @type {number} */ node, /** @type {number} */ _, /** @type {number} */ root) => {
            let count = 0, at = root >= 0 ? tree.child(0, root) : 0;
            for (; node > 0; node = parent[node])
                stack[count++] = functionOf[frame[node]];
            for (let i = 0; i < count; i++)
                at = tree.child(at, stack[shape.invert === "1" ? i : count - 1 - i]);
            return at;
        };
    }

    /** As wholeStacks(), of stacks that are cut or joined. Stacks left out are at NONE. @param {Tree} tree @param {Shape} shape */
    cutStacks(tree, shape) {
        const paths = this.pathsOf(shape);
        return (/** @type {number} */ node, /** @type {number} */ above, /** @type {number} */ root) => {
            const path = paths(node, above);
            return path ? Trees.addPath(tree, root >= 0 ? tree.child(0, root) : 0, path) : NONE;
        };
    }

    /** By label: a number for those that have the same root and the same spawners. @param {Uint32Array | null} roots @param {boolean} stitched */
    groupsOf(roots, stitched) {
        const { coro } = this.store.label, numbers = new Map(), spawners = stitched ? this.spawnerGroups() : null;
        if (!roots && !stitched)
            return null;
        return Uint32Array.from(coro, (above, label) => {
            const key = (roots ? roots[label] : 0) * 0x400000 + (spawners && above > 0 ? spawners[above - 1] : 0);
            if (!numbers.has(key))
                numbers.set(key, numbers.size);
            return numbers.get(key);
        });
    }

    /** @param {Tree} tree @param {number} node @param {number[]} path */
    static addPath(tree, node, path) {
        let edge = false;
        for (const frame of path) {
            if (frame !== SPAWNED) {
                node = tree.child(node, frame);
                if (edge)
                    tree.edges.add(node);
            }
            edge = frame === SPAWNED && node > 0;
        }
        return node;
    }

    /** By label: the frame that stands at the root; null where there is none. @param {Tree} tree @param {string} root */
    rootsOf(tree, root) {
        const { store } = this, { label, head, coro, request } = store;
        if (root === "")
            return null;
        /** @type {Map<string, number>} */
        const numbers = new Map();
        return Uint32Array.from(label.coro, (number, i) => {
            const own = number - 1, entry = own >= 0 ? coro.entry[own] : 0;
            const text = root === "thread" ? (label.thread[i] ? `[thread ${head.threads[label.thread[i] - 1]}]` : "[no thread]")
                : root === "trace" ? (label.trace[i] ? `[trace ${head.traces[label.trace[i] - 1]}]` : "[no trace]")
                : root === "endpoint" ? (label.request[i] ? `[${head.endpoints[request.endpoint[label.request[i] - 1]].text}]` : "[no request]")
                : root === "entry" ? (entry ? `[entry ${store.names[entry - 1]}]`
                    : own >= 0 ? `[${head.coroutines[coro.name[own]].replace(/^\[|\]$/g, "")}]` : "[unknown]")
                : own < 0 ? "[unknown]" : coro.flags[own] & CORO.thread ? store.coroText(own) : `[coroutine ${store.coroText(own)}]`;
            let found = numbers.get(text);
            if (found === undefined) {
                found = store.frame.name.length + tree.extra.length;
                tree.extra.push(text);
                numbers.set(text, found);
            }
            return found;
        });
    }

    /**
     * The stack that a node's becomes: its frames, root first; null where it is left out.
     * @param {Shape} shape @returns {(node: number, coro: number) => number[] | null}
     */
    pathsOf(shape) {
        const { store } = this, { frame } = store;
        const focus = regexOf(shape.focus), kept = TreePlaces.keptFrames(this.store, shape);
        const focused = focus ? Uint8Array.from(frame.name, (_, one) => Number(focus.test(store.nameOf(one)))) : null;
        const halved = shape.sandwich === "" ? null : Uint8Array.from(frame.name, (_, one) => Number(store.nameOf(one) === shape.sandwich));
        const below = [focused, halved].map((frames) => frames && this.nodesBelow(frames));
        return (node, coro) => {
            if (coro === 0 && below.some((nodes) => nodes && nodes[node] === 0))
                return null;
            let path = store.pathOf(node);
            if (coro > 0)
                path = [...this.spawnersOf(coro - 1), ...path];
            if (focused && !path.some((one) => focused[one]))
                return null;
            if (kept)
                path = path.filter((one) => one === SPAWNED || kept[one]);
            if (shape.native === "fold")
                path = Trees.withoutNative(store, path);
            if (shape.collapse === "1")
                path = path.filter((one, i) => i === 0 || frame.name[one] !== frame.name[path[i - 1]] || frame.file[one] !== frame.file[path[i - 1]]);
            return halved ? Trees.sandwiched(halved, path, shape.invert) : shape.invert === "1" ? path.reverse() : path;
        };
    }

    /** By coroutine: a number for those that were spawned at the same stacks; 0 = it is not known where. */
    spawnerGroups() {
        const { coro, coroCount } = this.store;
        /** @type {Map<string, number>} */
        const numbers = new Map([["", 0]]);
        return Uint32Array.from({ length: coroCount }, (_, own) => {
            let key = "";
            for (let left = 16, one = own; left > 0 && coro.spawn[one] > 0; left--) {
                key += `${coro.spawn[one]} `;
                if (coro.parent[one] === 0)
                    break;
                one = coro.parent[one] - 1;
            }
            let number = numbers.get(key);
            if (number === undefined)
                numbers.set(key, number = numbers.size);
            return number;
        });
    }

    /** Stacks at which a coroutine and its spawners were spawned, outermost first. @param {number} coro @returns {number[]} */
    spawnersOf(coro) {
        const { store } = this, path = [];
        for (let left = 16; left > 0 && store.coro.spawn[coro] > 0; left--) {
            path.unshift(...store.pathOf(store.coro.spawn[coro] - 1), SPAWNED);
            if (store.coro.parent[coro] === 0)
                break;
            coro = store.coro.parent[coro] - 1;
        }
        return path;
    }

    /** Native frames go where a frame of a language is on the stack; pseudo-frames stay. @param {Store} store @param {number[]} path */
    static withoutNative(store, path) {
        const has = path.some((one) => store.frame.kind[one] === FRAME.language);
        return has ? path.filter((one) => store.frame.kind[one] !== FRAME.native) : path;
    }

    /** Nodes that are one of some frames, or lie below one: 1. @param {Uint8Array} frames by frame */
    nodesBelow(frames) {
        const { store } = this, nodes = new Uint8Array(store.nodeCount);
        for (let i = 1; i < nodes.length; i++)
            nodes[i] = nodes[store.parent[i]] | frames[store.node.frame[i]];
        return nodes;
    }

    /**
     * From the function on: what it calls, or, inverted, what calls it.
     * @param {Uint8Array} is by frame @param {number[]} path @param {string} invert
     */
    static sandwiched(is, path, invert) {
        const first = path.findIndex((one) => is[one]);
        if (first < 0)
            return null;
        return invert === "1" ? path.slice(0, path.findLastIndex((one) => is[one]) + 1).reverse() : path.slice(first);
    }

    /**
     * Sum up what a filter takes. The weights are fresh arrays.
     * @param {Tree} tree @param {Filter} filter @param {Facts} facts @returns {Weights}
     */
    weigh(tree, filter, facts) {
        const count = tree.count, { rowNode, parent } = tree;
        const total = new Float64Array(count), samples = new Float64Array(count), state = new Uint8Array(count);
        const two = this.store.head.sides.length > 1;
        const base = new Float64Array(two ? count : 0), baseSamples = new Float64Array(two ? count : 0), heaviest = new Float64Array(count);
        const squares = new Float64Array(two ? count : 0), baseSquares = new Float64Array(two ? count : 0);
        const below = new Float64Array(tree.beyond ? count : 0);
        let sum = 0, baseSum = 0, taken = 0;
        for (let i = 0; i < facts.count; i++) {
            const node = rowNode[i];
            if (node === NONE || !filter.labels[facts.label[i]] || !filter.states[facts.state[i]] ||
                (filter.timed && (facts.tick[i] < filter.firstTick || facts.tick[i] > filter.lastTick)))
                continue;
            const weight = facts.weight[i];
            if (two)
                (facts.side[i] === 0 ? baseSquares : squares)[node] += facts.error[i] * facts.error[i];
            if (two && facts.side[i] === 0) {
                base[node] += weight;
                baseSamples[node] += facts.samples[i];
                baseSum += weight;
            } else {
                total[node] += weight;
                if (tree.beyond && tree.beyond[i])
                    below[node] += weight;
                samples[node] += facts.samples[i];
                sum += weight;
            }
            taken += facts.samples[i];
            if (weight > heaviest[node]) {
                heaviest[node] = weight;
                state[node] = facts.state[i];
            }
        }
        const self = tree.beyond ? total.map((own, node) => own - below[node]) : total.slice();
        const weights = { tree, total, self, samples, base, baseSelf: base.slice(), baseSamples, squares, baseSquares, state,
                          sum, baseSum, count: taken };
        Trees.addUp(parent, two ? [total, samples, base, baseSamples, squares, baseSquares] : [total, samples]);
        return weights;
    }

    /** Each node gets what is below it, too. @param {ArrayLike<number>} parent @param {Float64Array[]} sums by node */
    static addUp(parent, sums) {
        for (const sum of sums)
            for (let i = sum.length - 1; i > 0; i--)
                sum[parent[i]] += sum[i];
    }

    /** Name of a tree's frame. @param {Tree} tree @param {number} frame */
    nameOf(tree, frame) {
        const count = this.store.frame.name.length;
        return frame < 0 ? "all" : frame < count ? this.store.nameOf(frame) : tree.extra[frame - count];
    }
}
