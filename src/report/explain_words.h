// SPDX-License-Identifier: MIT
// Findings (explain.h) in words that outputs share. Threads: one at a time. Signals: not safe.
#pragma once

#include "report/explain.h"

enum { GP_VERDICT_SENTENCE = GP_FINDING_TEXT + 2 };

// The first finding that is the program's or the machine's: the verdict; NULL = nothing stands out.
const gp_finding_t *gp_verdict_first(const gp_findings_t *findings);

// A finding's sentence, with its capital letter and its full stop. Returns `text`.
const char *gp_verdict_sentence(const gp_finding_t *finding, char text[GP_VERDICT_SENTENCE]);

// The command that shows a finding, with the capture's name in its place. Returns `text`.
const char *gp_verdict_command(const gp_finding_t *finding, const char *path, char *text, size_t size);
