// SPDX-License-Identifier: MIT
// Makes a capture with more rows than a report keeps in memory: make_many OUT COROUTINES STACKS
//
// Coroutine c (1, 2, ...; one of 4 threads, for one of 10 traces) has one sample with each stack s (0, 1, ...), of 1000
// * (1 + (7 * c + s) % 10) ns; and 100 activities of 1000 ns that adjoin, told the latest first. The exact time is the
// samples' sum.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/write/writer.h"

enum { THREADS = 4, TRACES = 10, ACTIVITIES = 100, FLUSH_EVERY = 20 };

static gp_writer_t writer = GP_WRITER_INIT;

static void *add(enum gp_chunk_type type, size_t bytes)
{
    void *record = gp_writer_add(&writer, type, bytes);
    if (record == NULL)
        abort();
    return record;
}

static void define(uint32_t stacks)
{
    static const char path[] = "/opt/app/many";
    gp_module_record_t *module = add(GP_CHUNK_MODULES, sizeof(*module) + sizeof(path) - 1);
    *module = (gp_module_record_t){.id = 1, .path_len = sizeof(path) - 1, .start = 0x1000, .end = 0x900000};
    memcpy(module + 1, path, sizeof(path) - 1);
    for (uint32_t i = 1; i <= THREADS; i++) {
        gp_thread_record_t *thread = add(GP_CHUNK_THREADS, sizeof(*thread));
        *thread = (gp_thread_record_t){.index = i, .tid = 100 + i, .name = "pool"};
    }
    for (uint32_t i = 1; i <= TRACES; i++) {
        gp_trace_record_t *trace = add(GP_CHUNK_TRACES, sizeof(*trace));
        *trace = (gp_trace_record_t){.index = i, .id = {[15] = (uint8_t)i}};
    }
    for (uint32_t i = 0; i < stacks; i++) {
        gp_stack_record_t *stack = add(GP_CHUNK_STACKS, sizeof(*stack) + 2 * sizeof(gp_loc_t));
        const gp_loc_t frames[2] = {GP_LOC(1, 0x100 + 16 * i), GP_LOC(1, 0x10)};
        *stack = (gp_stack_record_t){.id = i + 1, .depth = 2};
        memcpy(stack + 1, frames, sizeof(frames));
    }
}

static void take_activities(uint32_t coro, uint32_t trace, uint32_t thread)
{
    for (uint64_t i = ACTIVITIES; i > 0; i--) {
        gp_activity_record_t *activity = add(GP_CHUNK_ACTIVITIES, sizeof(*activity));
        *activity = (gp_activity_record_t){.coro_id = coro,
                                           .start_ns = (i - 1) * 1000,
                                           .left_ns = i * 1000 - 400,
                                           .end_ns = i * 1000,
                                           .slice_ns = 600,
                                           .trace = trace,
                                           .thread = thread};
    }
}

static uint64_t take(uint32_t number, uint32_t stacks)
{
    uint32_t trace = 1 + number % TRACES, thread = 1 + number % THREADS;
    gp_coro_record_t *coro = add(GP_CHUNK_COROS, sizeof(*coro));
    uint64_t total = 0;
    *coro = (gp_coro_record_t){.id = number, .kind = GP_CORO_ANNOUNCED};
    snprintf(coro->name, sizeof(coro->name), "c%u", number);
    for (uint32_t i = 0; i < stacks; i++) {
        gp_sample_record_t *sample = add(GP_CHUNK_SAMPLES, sizeof(*sample));
        *sample = (gp_sample_record_t){.time_ns = 1000 * i,
                                       .weight_ns = 1000 * (1 + (7 * number + i) % 10),
                                       .coro_id = number,
                                       .thread = thread,
                                       .stack_id = i + 1,
                                       .trace = trace};
        total += sample->weight_ns;
    }
    gp_ledger_record_t *ledger = add(GP_CHUNK_LEDGER, sizeof(*ledger));
    *ledger = (gp_ledger_record_t){.coro_id = number, .trace = trace, .cpu_ns = total, .switches = 1};
    take_activities(number, trace, thread);
    return total;
}

int main(int argc, char **argv)
{
    gp_file_header_t header = {
        .version = GP_FILE_VERSION, .header_bytes = sizeof(header), .pid = 42, .frequency_hz = 1000, .elf_machine = 62};
    if (argc < 4)
        return 2;
    uint32_t coros = (uint32_t)atoi(argv[2]), stacks = (uint32_t)atoi(argv[3]);
    uint64_t total = 0;
    memcpy(header.magic, GP_FILE_MAGIC, sizeof(header.magic));
    if (gp_writer_open(&writer, argv[1], &header) != 0)
        return 1;
    define(stacks);
    for (uint32_t i = 1; i <= coros; i++) {
        total += take(i, stacks);
        if (i % FLUSH_EVERY == 0 && gp_writer_flush(&writer) != 0)
            return 1;
    }
    gp_counters_record_t *counters = add(GP_CHUNK_COUNTERS, sizeof(*counters) + GP_COUNTER_COUNT * sizeof(uint64_t));
    *counters = (gp_counters_record_t){.time_ns = 1000 * stacks, .process_cpu_ns = total, .count = GP_COUNTER_COUNT};
    memset(counters + 1, 0, GP_COUNTER_COUNT * sizeof(uint64_t));
    ((gp_end_record_t *)add(GP_CHUNK_END, sizeof(gp_end_record_t)))->time_ns = 1000 * stacks;
    if (gp_writer_flush(&writer) != 0)
        return 1;
    gp_writer_close(&writer);
    return 0;
}
