// SPDX-License-Identifier: MIT
// The tables of a ClickHouse: made and migrated by the columns beside each kind of row (ship/rows/row.h).
//
// Model: greenprof_versions has the number of each step that was taken. A step is one or more statements, harmless to
// repeat (IF NOT EXISTS), so two shippers may take it at once, or one after another has died. Columns are only ever
// added, at the end, with a default; older shippers leave them out.
#pragma once

#include <stdio.h>

#include "ship/rows/row.h"
#include "ship/send/clickhouse/clickhouse.h"

#define GP_SCHEMA_TABLE(NAME, ...) GP_TABLE_##NAME,
enum gp_schema_table { GP_ROW_TABLES(GP_SCHEMA_TABLE) GP_TABLES };

// Types of columns, as ClickHouse calls them, and what stands for a value that the store has no column for.
#define GP_TYPE_String   "String"
#define GP_TYPE_UInt64   "UInt64"
#define GP_TYPE_UInt32   "UInt32"
#define GP_TYPE_UInt8    "UInt8"
#define GP_TYPE_Float32  "Float32"
#define GP_TYPE_Date     "Date"
#define GP_TYPE_DateTime "DateTime"
#define GP_TYPE_Id128    "FixedString(16)"
#define GP_NONE_String   "''"
#define GP_NONE_UInt64   "toUInt64(0)"
#define GP_NONE_UInt32   "toUInt32(0)"
#define GP_NONE_UInt8    "toUInt8(0)"
#define GP_NONE_Id128    "toFixedString('', 16)"

typedef struct gp_schema_column {
    unsigned since; // version
    const char *name, *type;
    const char *none; // NULL: it is not read
} gp_schema_column_t;

typedef struct gp_schema_table_info {
    const char *name;                  // "samples": greenprof_samples
    const char *engine;                // "MergeTree", "ReplacingMergeTree(seen)"
    const char *order;                 // expression; parts are by the first column, where that is the day
    const gp_schema_column_t *columns; // ended by one without a name
} gp_schema_table_info_t;

extern const gp_schema_table_info_t gp_schema_tables[GP_TABLES];

// Bring the tables to this version, which is the latest column's: make missing tables, and add missing columns, on
// every server of a cluster. A store of a later version is left as it is. Returns as gp_clickhouse_ask().
int gp_schema_make(gp_clickhouse_t *clickhouse, char error[GP_FLEET_ERROR_SIZE]);

// ", NAME, NAME..." of all columns to be read of a table, in their order; for a column missing in a store of this
// version, its default.
void gp_schema_put_read(FILE *text, enum gp_schema_table table, unsigned version);

// The version that a store has, 0 = none.
int gp_schema_version(gp_clickhouse_t *clickhouse, unsigned *version, char error[GP_FLEET_ERROR_SIZE]);
