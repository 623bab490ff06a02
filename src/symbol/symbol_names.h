// SPDX-License-Identifier: MIT
// Names of symbols as people write them, made by helpers ahead of questions.
//
// Model: the ranges of a table are cut into parts, and a job makes the names of a part: of those ranges that have
// addresses which will be asked about. A job that has not begun is done where its first name is needed.
// Order of calls: expect -> settle... -> free. Threads: one at a time. Signals: not safe.
#pragma once

#include "base/helpers.h"
#include "symbol/symbol_table.h"

typedef struct gp_symbol_names gp_symbol_names_t;

// Have helpers begin. Once it is called the table stays as it is, though it may move.
//   addresses: uint64_t[count], ascending; not needed afterwards.
// Returns NULL where there is nothing to do, or memory is short: all below take that, too.
gp_symbol_names_t *gp_symbol_names_expect(const gp_symbol_table_t *table, gp_helpers_t *helpers,
                                          const uint64_t *addresses, size_t count);

// Have what is made of a range of the table before range->made is looked at, which lives as long as `names`.
void gp_symbol_names_settle(gp_symbol_names_t *names, const gp_range_t *range);

void gp_symbol_names_free(gp_symbol_names_t *names);
