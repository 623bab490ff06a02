// SPDX-License-Identifier: MIT
// What browsers have and TypeScript 4.8 does not know.
declare class DecompressionStream extends TransformStream<Uint8Array, Uint8Array> {
    constructor(format: "gzip" | "deflate" | "deflate-raw");
}

interface Array<T> {
    findLast(predicate: (value: T, index: number, array: T[]) => unknown): T | undefined;
    findLastIndex(predicate: (value: T, index: number, array: T[]) => unknown): number;
}

interface CanvasRenderingContext2D {
    roundRect(x: number, y: number, width: number, height: number, radii?: number | number[]): void;
}
