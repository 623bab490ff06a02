// SPDX-License-Identifier: MIT
#include "fleet/clickhouse_schema.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const gp_schema_column_t samples[] = {
    {"day", "Date"},
    {"time", "DateTime"},
    {"tenant", "String"},
    {"service", "String"},
    {"version", "String"},
    {"host", "String"},
    {"process", "UInt64"},
    {"endpoint", "String"},
    {"trace", "FixedString(16)"},
    {"coroutine", "String"},
    {"measure", "UInt8"},
    {"state", "UInt8"},
    {"stack", "UInt64"},
    {"weight_ns", "UInt64"},
    {"samples", "UInt32"},
    {"batch", "UInt64"},
    {0},
};

static const gp_schema_column_t stacks[] = {
    {"tenant", "String"}, // no tenant sees the names of another's functions
    {"stack", "UInt64"},
    {"names", "Array(String)"}, // root first, as the others
    {"files", "Array(String)"},
    {"lines", "Array(UInt32)"},
    {"modules", "Array(String)"},
    {"addresses", "Array(UInt64)"},
    {"builds", "Array(String)"},
    {"inlined", "Array(UInt8)"},
    {0},
};

static const gp_schema_column_t processes[] = {
    {"process", "UInt64"},
    {"tenant", "String"},
    {"service", "String"},
    {"version", "String"},
    {"host", "String"},
    {"pid", "UInt32"},
    {"start", "DateTime"},
    {"command", "String"},
    {"labels.key", "Array(String)"},
    {"labels.value", "Array(String)"},
    {"counters", "Array(UInt64)"}, // by enum gp_counter
    {"cpu_ns", "UInt64"},          // exact
    {"seen", "DateTime"},
    {0},
};

static const gp_schema_column_t requests[] = {
    {"day", "Date"},
    {"start_ns", "UInt64"},
    {"tenant", "String"},
    {"service", "String"},
    {"version", "String"},
    {"host", "String"},
    {"process", "UInt64"},
    {"endpoint", "String"},
    {"trace", "FixedString(16)"},
    {"span", "UInt64"},
    {"latency_ns", "UInt64"},
    {"failed", "UInt8"},
    {"whole", "UInt8"}, // times of all its coroutines, else of the one on which it began
    {"cpu_ns", "UInt64"},
    {"ready_ns", "UInt64"},
    {"parked_ns", "UInt64"},
    {"blocked_ns", "UInt64"},
    {"preempted_ns", "UInt64"},
    {"waiting_ns", "UInt64"},
    {"batch", "UInt64"},
    {0},
};

static const gp_schema_column_t spans[] = {
    {"day", "Date"},
    {"start_ns", "UInt64"},
    {"end_ns", "UInt64"},
    {"tenant", "String"},
    {"service", "String"},
    {"host", "String"},
    {"process", "UInt64"},
    {"trace", "FixedString(16)"},
    {"span", "UInt64"},
    {"parent", "UInt64"},
    {"kind", "UInt8"},
    {"flags", "UInt8"}, // 1 open, 2 without times
    {"name", "String"},
    {"info.key", "Array(String)"},
    {"info.value", "Array(String)"},
    {"cpu_ns", "UInt64"},
    {"ready_ns", "UInt64"},
    {"parked_ns", "UInt64"},
    {"blocked_ns", "UInt64"},
    {"preempted_ns", "UInt64"},
    {"waiting_ns", "UInt64"},
    {"batch", "UInt64"},
    {0},
};

static const gp_schema_column_t batches[] = {
    {"day", "Date"},
    {"batch", "UInt64"},
    {"tenant", "String"},
    {"process", "UInt64"},
    {"from_byte", "UInt64"},
    {"to_byte", "UInt64"},
    {"samples", "UInt32"}, // rows
    {"requests", "UInt32"},
    {"spans", "UInt32"},
    {"sent", "DateTime"},
    {0},
};

const gp_schema_table_info_t gp_schema_tables[GP_TABLES] = {
    [GP_TABLE_SAMPLES] = {"samples", "MergeTree", "day", "(tenant, service, time, stack)", samples},
    [GP_TABLE_STACKS] = {"stacks", "ReplacingMergeTree", NULL, "(tenant, stack)", stacks},
    [GP_TABLE_PROCESSES] = {"processes", "ReplacingMergeTree(seen)", NULL, "(tenant, process)", processes},
    [GP_TABLE_REQUESTS] = {"requests", "MergeTree", "day", "(tenant, service, start_ns)", requests},
    [GP_TABLE_SPANS] = {"spans", "MergeTree", "day", "(tenant, trace, start_ns)", spans},
    [GP_TABLE_BATCHES] = {"batches", "ReplacingMergeTree(sent)", "day", "batch", batches},
};
