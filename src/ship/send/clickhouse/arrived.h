// SPDX-License-Identifier: MIT
// A ClickHouse's batches of a process: for a shipper that has lost its journal.
#pragma once

#include "ship/send/clickhouse/clickhouse.h"
#include "ship/send/destination.h"

// Returns 0, or as gp_clickhouse_ask(), and what is wrong.
int gp_clickhouse_arrived(gp_clickhouse_t *clickhouse, const gp_row_process_t *process, gp_arrived_t *arrived,
                          char error[GP_FLEET_ERROR_SIZE]);
int gp_clickhouse_has_arrived(gp_clickhouse_t *clickhouse, uint64_t batch, bool *has_arrived,
                              char error[GP_FLEET_ERROR_SIZE]);
