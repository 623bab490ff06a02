// SPDX-License-Identifier: MIT
// Which modules get a table of rows by range, and when. Signals: not safe.
#pragma once

#include "unwind/module.h"

// Let the next gp_row_tables_make() make the table of `module`, which is never unloaded. Threads: any. Cost: ~10 ns.
void gp_row_table_want(const gp_unwind_module_t *module);

// Make the tables that are wanted, as far as there is room. Threads: one at a time. Cost: 1 to 10 ms for a large
// module, once.
void gp_row_tables_make(void);
