// SPDX-License-Identifier: MIT
// The common part of checks of the page's scripts: the files of order.txt, TypeScript, and how problems are reported.
"use strict";

const fs = require("fs");
const path = require("path");

/** Debian's TypeScript, which only Debian's own node looks for there; where there is none, the check is skipped. */
function typescript() {
    for (const name of ["typescript", "/usr/share/nodejs/typescript"])
        try {
            return require(name);
        } catch (error) {
            if (error.code !== "MODULE_NOT_FOUND")
                throw error;
        }
    console.log("SKIP: there is no TypeScript (Debian: node-typescript)");
    return process.exit(77);
}

/** @param {string} web folder of the scripts @returns {string[]} their paths, in order */
function scripts(web) {
    const listed = fs.readFileSync(path.join(web, "order.txt"), "utf8").split("\n").filter((line) => line !== "");
    const there = fs.readdirSync(web).filter((name) => name.endsWith(".js"));
    const missing = there.filter((name) => !listed.includes(name));
    if (missing.length > 0)
        finish([`order.txt does not have ${missing.join(", ")}`]);
    return listed.map((name) => path.join(web, name));
}

/** Print problems and leave. @param {string[]} problems */
function finish(problems) {
    for (const problem of problems)
        console.log(problem);
    console.log(`${problems.length} problems`);
    process.exit(problems.length > 0 ? 1 : 0);
}

module.exports = { finish, scripts, typescript };
