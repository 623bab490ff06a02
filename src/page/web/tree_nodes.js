// SPDX-License-Identifier: MIT
// A tree that is drawn, as columns: no object is made of a node.
"use strict";

/** A tree: frames below others. Preorder is not promised; parents come before their children. */
class Tree {
    constructor() {
        this.count = 1;
        this.parent = new Uint32Array(1024);
        /** Frame of the store, or, from `store.frame.name.length` on, a number of `extra`. */
        this.frame = new Int32Array(1024);
        this.frame[0] = -1;
        this.depth = new Uint32Array(1024);
        /** Names that no frame of the store has: "[coroutine 3 x]". @type {string[]} */
        this.extra = [];
        /** Node of each row. @type {Uint32Array} */
        this.rowNode = new Uint32Array(0);
        /** Nodes at which, in a stitched stack, begins what was spawned by what is above. @type {Set<number>} */
        this.edges = new Set();
        /** By row: 1 = it goes on below its node, which has no children; null: none does. @type {Uint8Array | null} */
        this.beyond = null;
        /** Where there is `beyond`: what a search looks through besides. @type {BeyondSearch | null} */
        this.search = null;
        /** Hash table of nodes by parent and frame; 0 = free. */
        this.slots = new Uint32Array(4096);
    }

    /** Where a child is in the hash table, or could be. @param {number} parent @param {number} frame */
    slotOf(parent, frame) {
        const { slots } = this, mask = slots.length - 1, hash = Math.imul(parent ^ Math.imul(frame, 0x85ebca6b), 0x9e3779b1);
        let at = (hash ^ hash >>> 15) & mask;
        for (let node = slots[at]; node !== 0 && (this.parent[node] !== parent || this.frame[node] !== frame); node = slots[at])
            at = at + 1 & mask;
        return at;
    }

    /** Find or add a child. @param {number} parent @param {number} frame */
    child(parent, frame) {
        const at = this.slotOf(parent, frame);
        if (this.slots[at] !== 0)
            return this.slots[at];
        const node = this.append(parent, frame);
        this.slots[at] = node;
        if (2 * this.count > this.slots.length)
            this.rehash();
        return node;
    }

    /** Add a child, known to be new, that child() need not find. @param {number} parent @param {number} frame */
    append(parent, frame) {
        const node = this.count++;
        if (node === this.parent.length)
            this.grow();
        this.parent[node] = parent;
        this.frame[node] = frame;
        this.depth[node] = this.depth[parent] + 1;
        return node;
    }

    /** @param {number} [room] */
    grow(room = 2 * this.parent.length) {
        const { parent, frame, depth } = this;
        (this.parent = new Uint32Array(room)).set(parent);
        (this.frame = new Int32Array(room)).set(frame);
        (this.depth = new Uint32Array(room)).set(depth);
    }

    /** Make room, once, for so many nodes. @param {number} count */
    reserve(count) {
        if (this.parent.length <= count)
            this.grow(count + 1);
    }

    /** As reserve(), of nodes that child() is to find. @param {number} count */
    reserveSlots(count) {
        let room = this.slots.length;
        while (room < 2 * count)
            room *= 2;
        this.slots = new Uint32Array(room);
    }

    rehash() {
        this.slots = new Uint32Array(2 * this.slots.length);
        for (let node = 1; node < this.count; node++)
            this.slots[this.slotOf(this.parent[node], this.frame[node])] = node;
    }

    /** No node is added any more. Nearly full arrays are not copied. */
    seal() {
        const { count, parent, frame, depth } = this, copies = 2 * count < parent.length;
        this.parent = copies ? parent.slice(0, count) : parent.subarray(0, count);
        this.frame = copies ? frame.slice(0, count) : frame.subarray(0, count);
        this.depth = copies ? depth.slice(0, count) : depth.subarray(0, count);
        this.slots = new Uint32Array(0);
        return this;
    }
}

/**
 * @typedef {object} BeyondSearch
 * @property {Uint32Array} rows that the tree is of
 * @property {(below: Uint8Array) => (row: number) => boolean} goesOn see PrunedTree
 */
