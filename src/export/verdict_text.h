// SPDX-License-Identifier: MIT
// Findings (report/explain.h) as text for people: lines of a width, and nothing in them steers a terminal.
//
// Threads: one at a time. Signals: not safe.
#pragma once

#include <stdio.h>

#include "report/explain.h"

enum { GP_VERDICT_COLUMNS = 80, GP_VERDICT_SENTENCE = GP_FINDING_TEXT + 2 };

// The first finding that is the program's or the machine's: the verdict; NULL = nothing stands out.
const gp_finding_t *gp_verdict_first(const gp_findings_t *findings);

// A finding's sentence, with its capital letter and its full stop. Returns `text`.
const char *gp_verdict_sentence(const gp_finding_t *finding, char text[GP_VERDICT_SENTENCE]);

// Said where there is none.
extern const char gp_verdict_nothing[];

// Write a text in lines of at most `columns`, as far as its words allow.
//   indent: spaces before each line but the first, which begins in that column already.
void gp_verdict_wrap(FILE *out, const char *text, size_t indent, size_t columns);

// The command that shows a finding, with the capture's name in its place. Returns `text`.
const char *gp_verdict_command(const gp_finding_t *finding, const char *path, char *text, size_t size);

// Write all findings, numbered.
//   path: of the capture, as commands have it.
void gp_verdict_write(FILE *out, const gp_findings_t *findings, const char *path, size_t columns);
