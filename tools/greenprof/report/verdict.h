// SPDX-License-Identifier: MIT
// The verdict: what `explain` says, and its first line in other outputs.
#pragma once

#include "report/explain.h"
#include "report/source.h"

// Make the findings of a source that has GP_KEEP_HOGS and GP_KEEP_SPANS. Returns NULL and errno.
//   trace: the request that is asked about, as prof_trace_parse() reads it; NULL = all.
gp_findings_t *gp_explain_source(const gp_source_t *source, const char *trace);

// A line of a report's header: the most costly finding, if any. Nothing is said of a part of a capture, nor of a
// capture so large as to double the report's time.
void gp_explain_print_first(const gp_source_t *source);
