// SPDX-License-Identifier: MIT
// Rows of the timeline, painted. Parts wider than a few pixels are boxes. All others are columns, a pixel wide: in each state as high as
// the state's share of the pixel's time.
"use strict";

const BOX_WIDTH = 4;     // CSS pixels from which on a part has a box of its own
const TIMELINE_ROW = 17; // height of a row without spans
const SPAN_HEIGHT = 12;  // of the bars above the states, where there are spans

/** The states of a column, from its bottom to its top. */
const COLUMN_STATES = [STATE.running, STATE.ready, STATE.waiting, STATE.parked];

/**
 * A part of the time, and the pixels that it is drawn on.
 * @typedef {object} TimeScale
 * @property {number} from ns
 * @property {number} to ns
 * @property {number} left first pixel of the plot
 * @property {number} width pixels of the plot
 */

/** @param {TimeScale} scale @param {number} ns */
function xOf(scale, ns) {
    return scale.left + (ns - scale.from) / (scale.to - scale.from) * scale.width;
}

/** @param {TimeScale} scale @param {number} x */
function timeOf(scale, x) {
    return scale.from + (x - scale.left) / scale.width * (scale.to - scale.from);
}

/**
 * A box as it is drawn, CSS pixels of the canvas.
 * @typedef {object} TimelineBox
 * @property {number} x
 * @property {number} y
 * @property {number} width
 * @property {number} height
 * @property {string} name
 * @property {number} state
 * @property {number} length ns, also of what is not in sight
 * @property {number} share of running: how much of it ran
 * @property {number} activity
 * @property {boolean} onThread it is what ran on a thread, else a coroutine's state
 * @property {number} number of the thread, or the coroutine
 */

class TimelinePainter {
    /** @param {Store} store @param {Looks} looks @param {TimeScale} scale @param {number} height of the rows */
    constructor(store, looks, scale, height) {
        this.store = store;
        this.index = activitiesOf(store);
        this.looks = looks;
        this.scale = scale;
        this.perNs = scale.width / (scale.to - scale.from);
        this.scratch = document.createElement("canvas");
        this.context = /** @type {CanvasRenderingContext2D} */ (this.scratch.getContext("2d"));
        this.image = new ImageData(scale.width, Math.max(1, height));
        this.pixels = new Uint32Array(this.image.data.buffer);
        /** By state of COLUMN_STATES: how much of each pixel it covers in the row that is being painted. */
        this.cover = COLUMN_STATES.map(() => new Float32Array(scale.width));
        /** @type {Map<string, number[]>} by state and name: a colour as the image has it, and that of its pattern */
        this.colours = new Map();
        /** @type {TimelineBox[]} */
        this.boxes = [];
        /** How often several activities became one column. */
        this.merges = 0;
    }

    /** Columns and boxes onto the canvas. @param {CanvasRenderingContext2D} context @param {number} top of the rows */
    end(context, top) {
        const { scratch, image } = this;
        scratch.width = image.width;
        scratch.height = image.height;
        this.context.putImageData(image, 0, 0);
        context.imageSmoothingEnabled = false;
        context.drawImage(scratch, this.scale.left, top);
        for (const box of this.boxes)
            this.drawBox(context, box);
    }

    /** @param {CanvasRenderingContext2D} context @param {TimelineBox} box */
    drawBox(context, box) {
        const { looks } = this, left = Math.ceil(box.x), width = Math.floor(box.x + box.width) - left;
        const ran = Math.max(1, Math.round(box.height * box.share));
        if (ran < box.height && !box.onThread)
            looks.fill(context, STATE.waiting, "", left, box.y, width, box.height - ran);
        looks.fill(context, box.state, box.name, left, box.y + box.height - ran, width, ran);
        if (width > 44) {
            context.fillStyle = looks.ink;
            context.fillText(cutText(this.textOf(box), Math.floor((width - 6) / 6)), left + 3, box.y + box.height - 3);
        }
    }

    /** The text of a box: its coroutine on a thread's row, else its state. @param {TimelineBox} box */
    textOf(box) {
        const { activity, head } = this.store, length = timeText(box.length);
        return box.onThread ? this.store.coroText(activity.coro[box.activity])
            : box.share < 1 ? `${head.states[box.state]} ${percentText(box.share, 1)} ${length}` : `${head.states[box.state]} ${length}`;
    }

    /** A coroutine's row. @param {number} coro @param {number} y of its states @param {number} height @param {number} top of the rows */
    coro(coro, y, height, top) {
        const { index, scale } = this, { activity, head } = this.store, name = head.coroutines[this.store.coro.name[coro]];
        const last = index.last[coro];
        for (let i = index.seek(coro, scale.from); i < last && activity.start[i] < scale.to;) {
            const next = this.merged(i, last);
            if (next > i) {
                this.coverSums(i, next);
                i = next;
                continue;
            }
            for (const part of index.partsOf(i))
                this.part(part, { y, height, name, activity: i, onThread: false, number: coro });
            i++;
        }
        this.flush(y - top, height, name);
    }

    /** End of the activities from i on that begin and end within one pixel; i where there is none. @param {number} i @param {number} last */
    merged(i, last) {
        const { index, scale, perNs } = this, { activity } = this.store;
        if (activity.start[i] < scale.from)
            return i;
        const limit = scale.from + (Math.floor((activity.start[i] - scale.from) * perNs) + 1) / perNs;
        if (index.end[i] > limit)
            return i;
        let step = 1;
        while (i + step < last && index.end[i + step] <= limit)
            step *= 2;
        return firstAbove((at) => index.end[at], i + (step >> 1), Math.min(i + step, last), limit);
    }

    /** Activities within one pixel, all at once. @param {number} i @param {number} next */
    coverSums(i, next) {
        const { index, scale, perNs, cover } = this, pixel = Math.floor((this.store.activity.start[i] - scale.from) * perNs);
        if (pixel >= scale.width)
            return;
        COLUMN_STATES.forEach((state, which) => {
            cover[which][pixel] += (index.sums[state][next] - index.sums[state][i]) * perNs;
        });
        this.merges++;
    }

    /**
     * A part: the pixels that are all its own are a box, if they are enough; the rest is what it covers of its pixels.
     * @param {{state: number, from: number, to: number, share: number}} part
     * @param {{y: number, height: number, name: string, activity: number, onThread: boolean, number: number}} place
     */
    part(part, place) {
        const { scale, perNs } = this;
        const x0 = Math.max(0, (part.from - scale.from) * perNs), x1 = Math.min(scale.width, (part.to - scale.from) * perNs);
        const first = Math.ceil(x0), last = Math.floor(x1);
        if (last - first < BOX_WIDTH)
            return this.coverPart(part, x0, x1);
        this.coverPart(part, x0, first);
        this.coverPart(part, last, x1);
        this.boxes.push({ x: scale.left + x0, width: x1 - x0, length: part.to - part.from, state: part.state, share: part.share, ...place });
    }

    /** @param {{state: number, share: number}} part @param {number} x0 @param {number} x1 pixels of the plot */
    coverPart(part, x0, x1) {
        const { cover } = this, own = cover[COLUMN_STATES.indexOf(part.state)], rest = cover[COLUMN_STATES.indexOf(STATE.waiting)];
        for (let x = Math.floor(x0); x < x1 && x < own.length; x++) {
            const covered = Math.min(x1, x + 1) - Math.max(x0, x);
            own[x] += covered * part.share;
            rest[x] += covered * (1 - part.share);
        }
    }

    /** The columns of a row into the image. @param {number} y of the image @param {number} height @param {string} name */
    flush(y, height, name) {
        const { cover, pixels } = this, { width } = this.scale, colours = COLUMN_STATES.map((state) => this.colour(state, name));
        const bottom = y + height - 1;
        for (let x = 0; x < width; x++) {
            let from = 0, sum = 0;
            for (let which = 0; which < COLUMN_STATES.length; which++) {
                const covered = cover[which][x];
                if (covered === 0)
                    continue;
                sum += covered;
                const to = Math.min(height, Math.max(from + 1, Math.round(sum * height))), [plain, pattern] = colours[which];
                for (let up = from; up < to; up++) {
                    const line = bottom - up;
                    if (line >= 0)
                        pixels[line * width + x] = ((x + line) & 7) < 2 ? pattern : plain;
                }
                from = to;
                cover[which][x] = 0;
            }
        }
    }

    /** A state's colour as the image has it, and that of its stripes. @param {number} state @param {string} name @returns {number[]} */
    colour(state, name) {
        const key = `${state} ${name}`, found = this.colours.get(key), { dark } = this.looks;
        if (found)
            return found;
        this.context.fillStyle = stateColour(state, name, dark);
        const bytes = parseInt(String(this.context.fillStyle).slice(1), 16), striped = STATE_LOOKS[state].stripes;
        const packed = (/** @type {(channel: number) => number} */ change) =>
            (0xff000000 | change(bytes & 255) << 16 | change(bytes >> 8 & 255) << 8 | change(bytes >> 16)) >>> 0;
        const made = [packed((channel) => channel),
                      packed((channel) => !striped ? channel : Math.round(dark ? channel + (255 - channel) * .22 : channel * .8))];
        this.colours.set(key, made);
        return made;
    }

    /** A thread's row: what ran there. @param {number} thread @param {number} y @param {number} height @param {number} top of the rows */
    thread(thread, y, height, top) {
        const { index, scale, perNs, cover } = this, { activity, head, coro } = this.store, { first, list } = index.threads, last = first[thread + 1];
        for (let at = index.seekThread(thread, scale.from); at < last && activity.start[list[at]] < scale.to;) {
            const i = list[at], from = activity.start[i], pixel = Math.floor((from - scale.from) * perNs), limit = scale.from + (pixel + 1) / perNs;
            if (pixel >= 0 && pixel < scale.width && index.threadEnd[at] <= limit) {
                const next = firstAbove((one) => index.threadEnd[one], at, last, limit);
                cover[0][pixel] += (index.threadRan[next] - index.threadRan[at]) * perNs;
                this.merges++;
                at = next;
                continue;
            }
            const name = head.coroutines[coro.name[activity.coro[i]]], part = index.partsOf(i)[0];
            if (part && (part.share === 1 || index.isAlone(thread, at)))
                this.part(part, { y, height, name, activity: i, onThread: true, number: thread });
            else if (part)
                this.coverPart(part, Math.max(0, (part.from - scale.from) * perNs), (part.to - scale.from) * perNs);
            at++;
        }
        cover[COLUMN_STATES.indexOf(STATE.waiting)].fill(0);
        this.flush(y - top, height, "");
    }
}
