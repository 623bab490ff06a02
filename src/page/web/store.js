// SPDX-License-Identifier: MIT
// The page's data, decoded: tables of columns. DATA.md says what each holds. Immutable once loaded.
"use strict";

/** @typedef {Record<string, Float64Array | Uint32Array>} Columns */
/**
 * @typedef {object} Facts rows of weights
 * @property {number} count
 * @property {Uint32Array} node
 * @property {Uint32Array} label
 * @property {Uint32Array} state
 * @property {Uint32Array} tick
 * @property {Float64Array} weight ns
 * @property {Uint32Array} samples
 * @property {Uint32Array} side
 * @property {Float64Array} error root of the sum of the squares of the samples' weights, ns; of a diff only
 */
/**
 * @typedef {object} Endpoint
 * @property {string} text
 * @property {number} count
 * @property {number} failed
 * @property {number} total_ns
 * @property {number} p50_ns
 * @property {number} p90_ns
 * @property {number} p99_ns
 * @property {number} max_ns
 */
/**
 * @typedef {object} Header
 * @property {number} version
 * @property {string} title
 * @property {string} command
 * @property {string} made_by
 * @property {number} duration_ns
 * @property {string} start_realtime_ns
 * @property {number} frequency_hz
 * @property {number} tick_ns
 * @property {string} weight
 * @property {string[]} states
 * @property {{cpu_ns: number, sampled_ns: number, error_ns: number, samples: number, total_ns: number, basis: string, own_ppm: number,
 *     exact_calls: boolean}} totals
 * @property {{file: string, total_ns: number, samples: number, duration_ns: number, per?: [number, number]}[]} sides
 * @property {string} [unit] of a diff
 * @property {string} [root] what stands at the root first
 * @property {boolean} [delays_known] false: nothing reported when coroutines became ready
 * @property {[string, number, string, boolean][]} counters
 * @property {string[]} not_known of runtimes: each is a loss
 * @property {string[]} notes
 * @property {string[]} names
 * @property {string[]} files
 * @property {string[]} modules
 * @property {string[]} threads
 * @property {string[]} traces
 * @property {string[]} coroutines
 * @property {Endpoint[]} endpoints
 * @property {{columns: number, column_ns: number, edges_ns: number[]} | null} heat
 * @property {{rank: string, sentence: string, hurt: string, sure: string, command: string}[] | null} [verdict] what explain finds
 * @property {{file: string, first_line: number, lines: string[]}[]} sources
 * @property {[string, string, number, number][]} columns
 */

const STATE = { running: 0, preempted: 1, parked: 2, ready: 3, waiting: 4, blocked: 5, gil: 6, lock: 7, queued: 8 };
const FRAME = { native: 0, language: 1, pseudo: 2 };
const CORO = { thread: 1, folded: 2 };
const REQUEST = { about: 1, cut: 2, failed: 4 };

/** Columns that may hold times: beyond 32 bits. */
const WIDE = /\.(id|weight|start|latency|cpu|ready|parked|waiting|blocked|preempted|longest|length|active|wait|slice|from|delay|error)$/;

const DAMAGED = "it is damaged, or a part is missing: copy the file again, or make it anew";

class Store {
    /** @param {Uint8Array} bytes of DATA.md, uncompressed */
    constructor(bytes) {
        const length = bytes.length < 4 ? 0 : new DataView(bytes.buffer, bytes.byteOffset).getUint32(0, true);
        if (length === 0 || 4 + length > bytes.length)
            throw new Error(DAMAGED);
        /** @type {Header} */
        this.head = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
        if (this.head.version !== 1)
            throw new Error(`version ${this.head.version} of the data is not known`);
        this.tables = Store.tablesOf(this.head, bytes.subarray(4 + length));
        this.names = this.head.names;
        this.frame = this.table("frame", ["name", "file", "module", "line", "kind", "at"]);
        this.node = this.table("node", ["parent", "frame"]);
        this.coro = this.table("coro", ["id", "name", "entry", "parent", "spawn", "flags", "cpu", "ready", "parked", "waiting", "blocked",
                                        "preempted", "longest", "switches"]);
        this.label = this.table("label", ["coro", "thread", "trace", "request"]);
        this.request = this.table("request", ["trace", "endpoint", "coro", "start", "latency", "cpu", "ready", "parked", "waiting", "blocked",
                                              "preempted", "longest", "coros", "flags"]);
        this.span = this.table("span", ["request", "parent", "coro", "trace", "kind", "name", "start", "length", "flags", "cpu", "ready", "parked",
                                        "blocked"]);
        this.activity = this.table("activity", ["coro", "start", "active", "wait", "slice", "ready", "waker", "thread", "trace", "flags"]);
        this.segment = this.table("segment", ["request", "from", "length", "coro", "state", "node"]);
        this.hog = this.table("hog", ["coro", "thread", "trace", "start", "length", "delay", "victims"]);
        this.victim = this.table("victim", ["hog", "coro", "trace", "delay"]);
        this.heat = this.table("heat", ["count"]);
        this.rows = this.facts("row");
        this.delays = this.facts("delay");
        this.paths = this.facts("path");
        this.nodeCount = this.node.frame.length;
        this.coroCount = this.coro.id.length;
        this.requestCount = this.request.start.length;
        this.parent = new Uint32Array(this.nodeCount);
        this.depth = new Uint32Array(this.nodeCount);
        this.end = new Uint32Array(this.nodeCount);
        this.makeTree();
        this.functionOf = Uint32Array.from(this.frame.name, (_, frame) => frame);
        this.byLine = this.frame.at.some((line) => line > 0);
        if (this.byLine)
            this.joinLines();
    }

    /** @param {Header} head @param {Uint8Array} bytes of the columns @returns {Record<string, Columns>} */
    static tablesOf(head, bytes) {
        /** @type {Record<string, Columns>} */
        const tables = {};
        let at = 0;
        for (const [name, encoding, count, size] of head.columns) {
            const dot = name.indexOf("."), table = tables[name.slice(0, dot)] ??= {};
            table[name.slice(dot + 1)] = Store.decode(bytes.subarray(at, at + size), encoding, count, WIDE.test(name));
            at += size;
        }
        if (at !== bytes.length)
            throw new Error(DAMAGED);
        return tables;
    }

    /**
     * @param {Uint8Array} bytes @param {string} encoding @param {number} count @param {boolean} wide
     * @returns {Float64Array | Uint32Array}
     */
    static decode(bytes, encoding, count, wide) {
        const values = wide ? new Float64Array(count) : new Uint32Array(count);
        let at = 0, before = 0;
        for (let i = 0; i < count; i++) {
            let byte = bytes[at++], value = byte & 127;
            for (let shift = 7; byte > 127 && shift < 28; shift += 7) { // whole numbers of the machine, for as long as they do
                byte = bytes[at++];
                value |= (byte & 127) << shift;
            }
            for (let scale = 2 ** 28; byte > 127; scale *= 128) {
                byte = bytes[at++];
                value += (byte & 127) * scale;
            }
            if (encoding === "d")
                value = before += value % 2 ? -(value + 1) / 2 : value / 2;
            values[i] = value;
        }
        if (at !== bytes.length)
            throw new Error(DAMAGED);
        return values;
    }

    /** Uncompressed. A stream of its own: a Blob's goes by way of the browser's other processes. @param {Uint8Array} packed */
    static async inflate(packed) {
        const source = new ReadableStream({ start: (control) => {
            control.enqueue(packed);
            control.close();
        } });
        const stream = source.pipeThrough(new DecompressionStream("deflate")), parts = [];
        let length = 0;
        for (let reader = stream.getReader(), part = await reader.read(); !part.done; part = await reader.read()) {
            parts.push(part.value);
            length += part.value.length;
        }
        const bytes = new Uint8Array(length);
        let at = 0;
        for (const part of parts) {
            bytes.set(part, at);
            at += part.length;
        }
        return bytes;
    }

    /** @param {string} base64 of compressed data @returns {Promise<Store>} */
    static async load(base64) {
        let bytes;
        try {
            const text = atob(base64), packed = new Uint8Array(text.length);
            for (let i = 0; i < packed.length; i++)
                packed[i] = text.charCodeAt(i);
            bytes = await Store.inflate(packed);
        } catch {
            throw new Error(DAMAGED);
        }
        return new Store(bytes);
    }

    /** A table; what the file does not have is empty. @param {string} name @param {string[]} columns @returns {Columns} */
    table(name, columns) {
        const found = this.tables[name] ?? {}, count = Object.values(found)[0]?.length ?? 0;
        for (const column of columns)
            found[column] ??= WIDE.test("." + column) ? new Float64Array(count) : new Uint32Array(count);
        return found;
    }

    /** @param {string} name @returns {Facts} */
    facts(name) {
        const table = this.table(name, ["node", "label", "state", "tick", "weight", "samples", "side", "error"]);
        return /** @type {any} */ ({ ...table, count: table.node.length });
    }

    /** Parents, depths and the end of each subtree. */
    makeTree() {
        const { nodeCount: count, parent, depth, end } = this;
        for (let i = 1; i < count; i++) {
            parent[i] = i - this.node.parent[i];
            depth[i] = depth[parent[i]] + 1;
        }
        for (let i = count - 1; i >= 0; i--) {
            if (end[i] === 0)
                end[i] = i + 1;
            if (i > 0 && end[parent[i]] < end[i])
                end[parent[i]] = end[i];
        }
    }

    /** With sources, frames are apart by line: `functionOf` is the first frame of each function. */
    joinLines() {
        /** @type {Map<string, number>} */
        const first = new Map();
        const { name, file, module, line, kind } = this.frame;
        for (let i = 0; i < name.length; i++) {
            const key = `${name[i]} ${file[i]} ${module[i]} ${line[i]} ${kind[i]}`;
            if (!first.has(key))
                first.set(key, i);
            this.functionOf[i] = /** @type {number} */ (first.get(key));
        }
    }

    /** Name of a frame. @param {number} frame */
    nameOf(frame) {
        return this.names[this.frame.name[frame]];
    }

    /** "file:line" of a frame, or its module. @param {number} frame */
    placeOf(frame) {
        const file = this.head.files[this.frame.file[frame]], line = this.frame.line[frame];
        return file === "~" || file === "" ? "" : line > 0 ? `${file}:${line}` : file;
    }

    /** "12 worker", "[thread main]". @param {number} coro */
    coroText(coro) {
        const name = this.head.coroutines[this.coro.name[coro]], flags = this.coro.flags[coro];
        return flags & (CORO.thread | CORO.folded) ? name : `${this.coro.id[coro]} ${name}`;
    }

    /** The innermost node that is a function; 0 = none. @param {number} node */
    functionNode(node) {
        while (node > 0 && this.frame.kind[this.node.frame[node]] === FRAME.pseudo)
            node = this.parent[node];
        return node;
    }

    /** A function's name; "" of no node. @param {number} node @param {boolean} [placed] with its file and line */
    functionText(node, placed = false) {
        const frame = this.node.frame[node], place = placed ? this.placeOf(frame) : "";
        return node > 0 ? this.nameOf(frame) + (place && ` (${place})`) : "";
    }

    /** Frames of a node, root first, without the root node, as functions. @param {number} node @returns {number[]} */
    pathOf(node) {
        const path = [];
        for (; node > 0; node = this.parent[node])
            path.push(this.functionOf[this.node.frame[node]]);
        return path.reverse();
    }

    /** Rows that a weight is made of. @param {string} weight @returns {Facts} */
    factsOf(weight) {
        return weight === "delay" ? this.delays : weight === "path" ? this.paths : this.rows;
    }
}
