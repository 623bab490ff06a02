// SPDX-License-Identifier: MIT
// The tables of a ClickHouse, one list of their columns: made, migrated and filled by it.
//
// Model: greenprof_versions has the number of each step that was taken. A step is one or more statements that may be
// repeated without harm (IF NOT EXISTS), so that two shippers may take it at once, and one that died may be followed by
// another. Columns are only ever added, at the end, with a default; older shippers leave them out.
#pragma once

#include "ship/send/clickhouse.h"

enum gp_schema_table {
    GP_TABLE_SAMPLES,
    GP_TABLE_STACKS,
    GP_TABLE_PROCESSES,
    GP_TABLE_REQUESTS,
    GP_TABLE_SPANS,
    GP_TABLE_BATCHES,
    GP_TABLES
};

typedef struct gp_schema_column {
    const char *name, *type; // as ClickHouse calls it
} gp_schema_column_t;

typedef struct gp_schema_table_info {
    const char *name;                  // "samples": greenprof_samples
    const char *engine;                // "MergeTree", "ReplacingMergeTree(seen)"
    const char *partition, *order;     // expressions; partition NULL = none
    const gp_schema_column_t *columns; // ended by one without a name
} gp_schema_table_info_t;

extern const gp_schema_table_info_t gp_schema_tables[GP_TABLES];

enum { GP_SCHEMA_VERSION = 2 };

// Bring the tables to this version: make those that are missing, and add columns to those that are there, on every
// server of the cluster where there is one. A store of a later version is left as it is. Returns as
// gp_clickhouse_ask().
int gp_schema_make(gp_clickhouse_t *clickhouse, char error[GP_FLEET_ERROR_SIZE]);

// The version that a store has, 0 = none.
int gp_schema_version(gp_clickhouse_t *clickhouse, unsigned *version, char error[GP_FLEET_ERROR_SIZE]);
