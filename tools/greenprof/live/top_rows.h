// SPDX-License-Identifier: MIT
// The rows of `greenprof top` at a moment: the ledgers of all live coroutines, and their work since the moment before.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "live_control.h"

typedef struct gp_top_row {
    gp_control_row_t now;
    gp_control_row_t change; // of the ledger: since the moment before, or since it began
    bool is_blocked;         // has its thread, and had no CPU time
} gp_top_row_t;

typedef struct gp_top {
    gp_control_reply_t reply;
    gp_top_row_t *rows; // [count], in the order asked for
    size_t count;
    uint64_t interval_ns; // since the moment before; 0 = this is the first
    uint64_t recorded_ns; // of that, what recording did not rest
    uint64_t process_cpu_ns, own_cpu_ns;
} gp_top_t;

typedef enum gp_top_order { GP_TOP_CPU, GP_TOP_READY, GP_TOP_PARKED, GP_TOP_LONGEST, GP_TOP_ORDERS } gp_top_order_t;

// Names of the orders: gp_top_orders[GP_TOP_ORDERS].
extern const char *const gp_top_orders[];

// Ask for the next moment.
//   before: NULL at first.    lease_ms: when it will be asked again, at the latest.
// Returns 0 or an exit status, with a message. Free it in the first case.
int gp_top_take(gp_top_t *top, pid_t pid, const char *subject, const gp_top_t *before, uint32_t lease_ms);
void gp_top_sort(gp_top_t *top, gp_top_order_t order);
void gp_top_free(gp_top_t *top);
