// SPDX-License-Identifier: MIT
#include "ship/send/clickhouse_rows.h"

#include <stdio.h>

enum { DAY_S = 86400, NS = 1000000000 };

size_t gp_rows_count(enum gp_schema_table table, const gp_batch_t *batch)
{
    switch (table) {
    case GP_TABLE_SAMPLES:
        return batch->sample_count;
    case GP_TABLE_STACKS:
        return batch->stack_count;
    case GP_TABLE_REQUESTS:
        return batch->request_count;
    case GP_TABLE_SPANS:
        return batch->span_count;
    default:
        return 1;
    }
}

uint32_t gp_rows_day(enum gp_schema_table table, const gp_batch_t *batch, size_t row)
{
    switch (table) {
    case GP_TABLE_SAMPLES:
        return (uint32_t)(batch->samples[row].time_s / DAY_S);
    case GP_TABLE_REQUESTS:
        return (uint32_t)(batch->requests[row].start_ns / NS / DAY_S);
    case GP_TABLE_SPANS:
        return (uint32_t)(batch->spans[row].start_ns / NS / DAY_S);
    default:
        return 0;
    }
}

static void put_text(gp_native_t *block, const char *text)
{
    gp_native_text(block, text, strlen(text));
}

static void put_trace(gp_native_t *block, const uint8_t trace[16])
{
    uint8_t *at = gp_native_room(block, 16);
    if (at != NULL)
        memcpy(at, trace, 16);
}

// What differs from column to column is one expression: of `batch` and of the row's number `i` in it.
#define COLUMN(name, type, put)                                                                                        \
    do {                                                                                                               \
        gp_native_column(block, name, type);                                                                           \
        for (size_t b = 0; b < rows->count; b++) {                                                                     \
            const gp_batch_t *batch = &rows->batches[b];                                                               \
            for (size_t i = rows->first[b]; i < rows->first[b] + rows->rows[b]; i++) {                                 \
                (void)batch;                                                                                           \
                put;                                                                                                   \
            }                                                                                                          \
        }                                                                                                              \
    } while (0)

#define TEXT(name, value)  COLUMN(name, "String", put_text(block, value))
#define U64(name, value)   COLUMN(name, "UInt64", gp_native_u64(block, value))
#define U32(name, value)   COLUMN(name, "UInt32", gp_native_u32(block, (uint32_t)(value)))
#define F32(name, value)   COLUMN(name, "Float32", gp_native_f32(block, (float)(value)))
#define U8(name, value)    COLUMN(name, "UInt8", gp_native_u8(block, (uint8_t)(value)))
#define DAY(name, value)   COLUMN(name, "Date", gp_native_u16(block, (uint16_t)(value)))
#define TIME(name, value)  COLUMN(name, "DateTime", gp_native_u32(block, (uint32_t)(value)))
#define TRACE(name, value) COLUMN(name, "FixedString(16)", put_trace(block, value))

// An array column: where each row's part ends, then all of it.
#define ARRAY(name, type, size, put)                                                                                   \
    do {                                                                                                               \
        uint64_t end = 0;                                                                                              \
        COLUMN(name, "Array(" type ")", gp_native_u64(block, end += (size)));                                          \
        for (size_t b = 0; b < rows->count; b++) {                                                                     \
            const gp_batch_t *batch = &rows->batches[b];                                                               \
            for (size_t i = rows->first[b]; i < rows->first[b] + rows->rows[b]; i++)                                   \
                for (size_t j = 0; j < (size); j++)                                                                    \
                    put;                                                                                               \
        }                                                                                                              \
    } while (0)

static void write_samples(gp_native_t *block, const gp_rows_t *rows)
{
    DAY("day", batch->samples[i].time_s / DAY_S);
    TIME("time", batch->samples[i].time_s);
    TEXT("tenant", batch->process->tenant);
    TEXT("service", batch->process->service);
    TEXT("version", batch->process->version);
    TEXT("host", batch->process->host);
    U64("process", batch->process->id);
    TEXT("endpoint", batch->samples[i].endpoint);
    TRACE("trace", batch->samples[i].trace);
    TEXT("coroutine", batch->samples[i].coroutine);
    U8("measure", batch->samples[i].measure);
    U8("state", batch->samples[i].state);
    U64("stack", batch->stacks[batch->samples[i].stack].id);
    U64("weight_ns", batch->samples[i].weight_ns);
    U32("samples", batch->samples[i].samples);
    U64("batch", batch->id);
    F32("squares_ns2", batch->samples[i].samples > 1 ? batch->samples[i].squares_ns2 : 0);
    TEXT("hog", batch->samples[i].hog);
}

static void write_times(gp_native_t *block, const gp_rows_t *rows,
                        const gp_row_times_t *(*of)(const gp_batch_t *, size_t))
{
    U64("cpu_ns", of(batch, i)->cpu_ns);
    U64("ready_ns", of(batch, i)->ready_ns);
    U64("parked_ns", of(batch, i)->parked_ns);
    U64("blocked_ns", of(batch, i)->blocked_ns);
    U64("preempted_ns", of(batch, i)->preempted_ns);
    U64("waiting_ns", of(batch, i)->waiting_ns);
}

static const gp_row_times_t *request_times(const gp_batch_t *batch, size_t i)
{
    return &batch->requests[i].times;
}

static const gp_row_times_t *span_times(const gp_batch_t *batch, size_t i)
{
    return &batch->spans[i].times;
}

static void write_requests(gp_native_t *block, const gp_rows_t *rows)
{
    DAY("day", batch->requests[i].start_ns / NS / DAY_S);
    U64("start_ns", batch->requests[i].start_ns);
    TEXT("tenant", batch->process->tenant);
    TEXT("service", batch->process->service);
    TEXT("version", batch->process->version);
    TEXT("host", batch->process->host);
    U64("process", batch->process->id);
    TEXT("endpoint", batch->requests[i].endpoint);
    TRACE("trace", batch->requests[i].trace);
    U64("span", batch->requests[i].span);
    U64("latency_ns", batch->requests[i].latency_ns);
    U8("failed", batch->requests[i].has_failed);
    U8("whole", batch->requests[i].is_whole);
    write_times(block, rows, request_times);
    U64("batch", batch->id);
}

static uint8_t stored_flags(const gp_row_span_t *span)
{
    return (uint8_t)((span->is_open ? GP_STORED_OPEN : 0) | (span->has_times ? 0 : GP_STORED_NO_TIMES) |
                     (span->has_failed ? GP_STORED_FAILED : 0) |
                     (span->has_remote_parent ? GP_STORED_REMOTE_PARENT : 0) | (span->has_rest ? GP_STORED_RESTED : 0));
}

static void write_spans(gp_native_t *block, const gp_rows_t *rows)
{
    DAY("day", batch->spans[i].start_ns / NS / DAY_S);
    U64("start_ns", batch->spans[i].start_ns);
    U64("end_ns", batch->spans[i].end_ns);
    TEXT("tenant", batch->process->tenant);
    TEXT("service", batch->process->service);
    TEXT("host", batch->process->host);
    U64("process", batch->process->id);
    TRACE("trace", batch->spans[i].trace);
    U64("span", batch->spans[i].id);
    U64("parent", batch->spans[i].parent);
    U8("kind", batch->spans[i].kind);
    U8("flags", stored_flags(&batch->spans[i]));
    TEXT("name", batch->spans[i].name);
    ARRAY("info.key", "String", batch->spans[i].info_count, put_text(block, batch->spans[i].info[j].key));
    ARRAY("info.value", "String", batch->spans[i].info_count, put_text(block, batch->spans[i].info[j].value));
    write_times(block, rows, span_times);
    U64("batch", batch->id);
}

static void write_processes(gp_native_t *block, const gp_rows_t *rows)
{
    U64("process", batch->process->id);
    TEXT("tenant", batch->process->tenant);
    TEXT("service", batch->process->service);
    TEXT("version", batch->process->version);
    TEXT("host", batch->process->host);
    U32("pid", batch->process->pid);
    TIME("start", batch->process->start_ns / NS);
    TEXT("command", batch->process->command);
    ARRAY("labels.key", "String", batch->process->label_count, put_text(block, batch->process->labels[j].key));
    ARRAY("labels.value", "String", batch->process->label_count, put_text(block, batch->process->labels[j].value));
    ARRAY("counters", "UInt64", batch->process->counter_count, gp_native_u64(block, batch->process->counters[j]));
    U64("cpu_ns", batch->process->cpu_ns);
    TIME("seen", rows->now_s);
}

static void write_batches(gp_native_t *block, const gp_rows_t *rows)
{
    DAY("day", rows->now_s / DAY_S);
    U64("batch", batch->id);
    TEXT("tenant", batch->process->tenant);
    U64("process", batch->process->id);
    U64("from_byte", batch->from);
    U64("to_byte", batch->to);
    U32("samples", batch->sample_count);
    U32("requests", batch->request_count);
    U32("spans", batch->span_count);
    TIME("sent", rows->now_s);
}

static void write_stacks(gp_native_t *block, const gp_rows_t *rows)
{
    TEXT("tenant", batch->process->tenant);
    U64("stack", batch->stacks[i].id);
    ARRAY("names", "String", batch->stacks[i].depth, put_text(block, batch->stacks[i].frames[j].name));
    ARRAY("files", "String", batch->stacks[i].depth, put_text(block, batch->stacks[i].frames[j].file));
    ARRAY("lines", "UInt32", batch->stacks[i].depth, gp_native_u32(block, batch->stacks[i].frames[j].line));
    ARRAY("modules", "String", batch->stacks[i].depth, put_text(block, batch->stacks[i].frames[j].module));
    ARRAY("addresses", "UInt64", batch->stacks[i].depth, gp_native_u64(block, batch->stacks[i].frames[j].address));
    ARRAY("builds", "String", batch->stacks[i].depth, put_text(block, batch->stacks[i].frames[j].build));
    ARRAY("inlined", "UInt8", batch->stacks[i].depth, gp_native_u8(block, batch->stacks[i].frames[j].is_inlined));
}

void gp_rows_write(gp_native_t *block, enum gp_schema_table table, const gp_rows_t *rows)
{
    static void (*const writers[GP_TABLES])(gp_native_t *, const gp_rows_t *) = {
        [GP_TABLE_SAMPLES] = write_samples,   [GP_TABLE_STACKS] = write_stacks, [GP_TABLE_PROCESSES] = write_processes,
        [GP_TABLE_REQUESTS] = write_requests, [GP_TABLE_SPANS] = write_spans,   [GP_TABLE_BATCHES] = write_batches,
    };
    size_t columns = 0, count = 0;
    while (gp_schema_tables[table].columns[columns].name != NULL)
        columns++;
    for (size_t b = 0; b < rows->count; b++)
        count += rows->rows[b];
    gp_native_begin(block, columns, count);
    writers[table](block, rows);
}
