// SPDX-License-Identifier: MIT
// The page's HTML around its data. Threads: any. Signals: not safe.
#pragma once

#include <stdio.h>

#include "export/write/text.h"

// Write the page. Returns 0 or a negative errno value; errors of the stream stay in its flag.
//   data: as DATA.md describes it.
int gp_html_write_data(const gp_text_t *data, FILE *out);

// Write the page of a report, or of the difference between two.
//   base: NULL = one report.
struct gp_report;
int gp_page_write(const struct gp_report *base, const struct gp_report *report, FILE *out);
