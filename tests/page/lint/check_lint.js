// SPDX-License-Identifier: MIT
// Checks the form of the page's scripts, and forbidden actions of theirs: node check_lint.js FOLDER
//
// A rule on code is a function (node, report) that sees each node of the syntax tree; a rule on text sees a file's lines.
"use strict";

const fs = require("fs");
const path = require("path");
const { finish, scripts, typescript } = require("./scripts.js");

const ts = typescript();
const Kind = ts.SyntaxKind;
const LONGEST = { file: 450, function: 40, line: 150 };

/** Names that a page does not need, and why. @type {Map<string, string>} */
const FORBIDDEN = new Map([
    ...["innerHTML", "outerHTML", "insertAdjacentHTML", "srcdoc", "createContextualFragment", "DOMParser", "write", "writeln"]
        .map((name) => /** @type {[string, string]} */ ([name, "texts of programs are texts: el() and textContent"])),
    ...["eval", "Function"].map((name) => /** @type {[string, string]} */ ([name, "data is not code"])),
    ...["fetch", "XMLHttpRequest", "WebSocket", "EventSource", "sendBeacon", "importScripts", "Worker"]
        .map((name) => /** @type {[string, string]} */ ([name, "the page works without a network and without other files"])),
    ...["console", "alert", "confirm", "prompt"].map((name) => /** @type {[string, string]} */ ([name, "what is said is said in the page"])),
]);

/** @typedef {(node: any, report: (node: any, text: string) => void) => void} Rule */
/** @type {Rule[]} */
const RULES = [
    function forbiddenNames(node, report) {
        const named = ts.isIdentifier(node) || (ts.isStringLiteral(node) && ts.isElementAccessExpression(node.parent));
        if (named && FORBIDDEN.has(node.text) && !ts.isPropertyAssignment(node.parent))
            report(node, `${node.text} is forbidden: ${FORBIDDEN.get(node.text)}`);
    },
    function equality(node, report) {
        if (node.kind === Kind.EqualsEqualsToken || node.kind === Kind.ExclamationEqualsToken)
            report(node, "=== and !== compare; == and != convert");
    },
    function declarations(node, report) {
        if (ts.isVariableDeclarationList(node) && !(node.flags & (ts.NodeFlags.Let | ts.NodeFlags.Const)))
            report(node, "var is forbidden: const or let");
    },
    function modules(node, report) {
        if (ts.isImportDeclaration(node) || ts.isExportDeclaration(node) || node.kind === Kind.ExportKeyword || node.kind === Kind.ImportKeyword)
            report(node, "the scripts are one script: no import and no export");
    },
    function leftovers(node, report) {
        if (ts.isDebuggerStatement(node) || ts.isEmptyStatement(node))
            report(node, "a leftover");
    },
    function assignedConditions(node, report) {
        const condition = ts.isIfStatement(node) || ts.isWhileStatement(node) || ts.isDoStatement(node) ? node.expression : undefined;
        if (condition && ts.isBinaryExpression(condition) && condition.operatorToken.kind === Kind.EqualsToken)
            report(node, "an assignment is the condition");
    },
    function longFunctions(node, report) {
        if (!ts.isFunctionLike(node) || !node.body)
            return;
        const { line: last } = node.getSourceFile().getLineAndCharacterOfPosition(node.end);
        const { line: first } = node.getSourceFile().getLineAndCharacterOfPosition(node.getStart());
        if (last - first + 1 > LONGEST.function)
            report(node, `a function of ${last - first + 1} lines; at most ${LONGEST.function}`);
    },
    function quotes(node, report) {
        if (ts.isStringLiteral(node) && node.getText()[0] === "'" && !node.text.includes('"'))
            report(node, "strings stand in double quotes");
    },
    function semicolons(node, report) {
        const ends = ts.isExpressionStatement(node) || ts.isVariableStatement(node) || ts.isReturnStatement(node) || ts.isThrowStatement(node);
        if (ends && !node.getText().endsWith(";"))
            report(node, "a semicolon is missing");
    },
];

/** @param {string} name @param {string} text @returns {string[]} */
function textProblems(name, text) {
    const lines = text.split("\n"), found = [];
    const report = (/** @type {number} */ line, /** @type {string} */ problem) => found.push(`${name}:${line}: ${problem}`);
    lines.forEach((line, i) => {
        if (line.length > LONGEST.line)
            report(i + 1, `a line of ${line.length} characters; at most ${LONGEST.line}`);
        if (/\t|\s$/.test(line))
            report(i + 1, "a tab, or space at the end");
    });
    if (lines.pop() !== "" || lines[lines.length - 1] === "")
        report(lines.length, "the file does not end with one newline");
    if (lines.length > LONGEST.file)
        report(lines.length, `a file of ${lines.length} lines; at most ${LONGEST.file}`);
    if (lines[0] !== "// SPDX-License-Identifier: MIT")
        report(1, "the licence is missing");
    if (!/^\/\/ |^"use strict";$/.test(lines[1] ?? "") || !lines.includes('"use strict";'))
        report(2, 'the idea of the file and "use strict" are missing');
    return found;
}

/** Every node of a syntax tree. @param {any} node @param {(node: any) => void} visit */
function walk(node, visit) {
    visit(node);
    ts.forEachChild(node, (/** @type {any} */ child) => walk(child, visit));
}

/**
 * Functions, classes, constants and methods that no other code names, and local names equal to the page's.
 * @param {any[]} sources @param {(node: any, text: string) => void} report
 */
function checkNames(sources, report) {
    const declared = [], used = new Map(), locals = [], globals = new Set();
    for (const source of sources)
        walk(source, (node) => {
            if (ts.isIdentifier(node) || ts.isStringLiteral(node))
                used.set(node.text, (used.get(node.text) ?? 0) + 1);
            if (!node.name || !ts.isIdentifier(node.name))
                return;
            const list = ts.isVariableDeclaration(node) ? node.parent.parent.parent : node.parent;
            if (list === source)
                globals.add(node.name.text);
            else if (ts.isVariableDeclaration(node) || ts.isParameter(node) || ts.isBindingElement(node))
                locals.push(node.name);
            if (list === source || ts.isMethodDeclaration(node) || ts.isGetAccessor(node))
                declared.push(node.name);
        });
    for (const name of declared)
        if (used.get(name.text) === 1)
            report(name, `nothing uses ${name.text}`);
    for (const name of locals)
        if (globals.has(name.text))
            report(name, `${name.text} hides what the page has by that name`);
}

const problems = [], sources = [];
const report = (/** @type {any} */ node, /** @type {string} */ text) => {
    const source = node.getSourceFile();
    problems.push(`${path.basename(source.fileName)}:${source.getLineAndCharacterOfPosition(node.getStart()).line + 1}: ${text}`);
};
for (const file of scripts(process.argv[2])) {
    const text = fs.readFileSync(file, "utf8");
    problems.push(...textProblems(path.basename(file), text));
    sources.push(ts.createSourceFile(file, text, ts.ScriptTarget.ES2022, true, ts.ScriptKind.JS));
}
for (const source of sources)
    walk(source, (node) => RULES.forEach((rule) => rule(node, report)));
checkNames(sources, report);
finish(problems);
