// SPDX-License-Identifier: MIT
// The output of `greenprof top`, as a page and as JSON.
#pragma once

#include "top_rows.h"

// A page: a head of GP_TOP_HEAD_LINES lines at most, more at the cost of rows where `columns` are few, and `rows` rows;
// 0 = no limit. Few columns leave numbers out, never names.
//   end: what comes after each line.
void gp_top_print(const gp_top_t *top, const char *subject, gp_top_order_t order, size_t rows, size_t columns,
                  const char *end);

// The same as one JSON object, on a line of its own.
void gp_top_print_json(const gp_top_t *top, pid_t pid, size_t rows);

// Lines that a page has above its rows.
enum { GP_TOP_HEAD_LINES = 6 };
