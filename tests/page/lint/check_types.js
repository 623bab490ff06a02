// SPDX-License-Identifier: MIT
// Checks the types of the page's scripts, as their JSDoc comments give them: node check_types.js FOLDER
"use strict";

const fs = require("fs");
const path = require("path");
const { finish, scripts, typescript } = require("./scripts.js");

const ts = typescript();
const OPTIONS = {
    allowJs: true, checkJs: true, noEmit: true, strict: true, noUnusedLocals: true, noUnusedParameters: true, noImplicitReturns: true,
    noFallthroughCasesInSwitch: true, target: ts.ScriptTarget.ES2022, lib: ["lib.es2022.d.ts", "lib.dom.d.ts", "lib.dom.iterable.d.ts"], types: [],
};

/**
 * A comment of one line with its text blanked: TypeScript 4 takes a tag for one only where a comment begins.
 * @param {string} text
 */
function tagsFirst(text) {
    return text.replace(/(\/\*\*)([^\n]*?)(?= @(?:param|returns|type|template|typedef)\b[^\n]*\*\/)/g, (_, start, words) => start + " ".repeat(words.length));
}

/** The page's Selection is not the DOM's. @param {string} text */
function withoutSelection(text) {
    return text.replace(/\bSelection\b/g, "DomSelection");
}

const files = scripts(process.argv[2]);
const host = ts.createCompilerHost(OPTIONS);
host.getSourceFile = (name, version) => {
    const text = fs.readFileSync(name, "utf8");
    return ts.createSourceFile(name, files.includes(name) ? tagsFirst(text) : name.endsWith("lib.dom.d.ts") ? withoutSelection(text) : text, version, true);
};
const program = ts.createProgram([path.join(__dirname, "newer.d.ts"), ...files], OPTIONS, host);
finish(ts.getPreEmitDiagnostics(program).map((one) => {
    const at = one.file ? one.file.getLineAndCharacterOfPosition(one.start) : { line: -1, character: -1 };
    return `${one.file ? path.basename(one.file.fileName) : ""}:${at.line + 1}:${at.character + 1}: ${ts.flattenDiagnosticMessageText(one.messageText, "\n")}`;
}));
