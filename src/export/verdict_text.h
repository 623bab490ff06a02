// SPDX-License-Identifier: MIT
// Findings (report/explain.h) as text for people: lines of a width, and nothing in them steers a terminal.
//
// Threads: one at a time. Signals: not safe.
#pragma once

#include <stdio.h>

#include "report/explain_words.h"

enum { GP_VERDICT_COLUMNS = 80 };

// Said where there is none.
extern const char gp_verdict_nothing[];

// Write a text in lines of at most `columns`, as far as its words allow.
//   indent: spaces before each line but the first, which begins in that column already.
void gp_verdict_wrap(FILE *out, const char *text, size_t indent, size_t columns);

// Write all findings, numbered.
//   path: of the capture, as commands have it.
void gp_verdict_write(FILE *out, const gp_findings_t *findings, const char *path, size_t columns);
