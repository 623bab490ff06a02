// SPDX-License-Identifier: MIT
// Fuzz target: what is inside a chunk, behind its checksum: zstd frames, packed columns, records of every type.
// The input: chunk type, chunk flags, a byte that chooses a record size, then the payload.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capture/read/reader_payload.h"
#include "capture/read/reader_records.h"
#include "capture/write/pack.h"
#include "fuzz.h"

static volatile uint64_t sum; // of what is read, so that it is

static int on_meta(void *context, const char *key, size_t key_len, const char *value, size_t value_len)
{
    (void)context;
    sum += (key_len > 0 ? (uint8_t)key[key_len - 1] : 0u) + (value_len > 0 ? (uint8_t)value[value_len - 1] : 0u);
    return 0;
}

static int on_module(void *context, const gp_module_record_t *module, const char *path, size_t path_len)
{
    (void)context;
    sum += module->id + (path_len > 0 ? (uint8_t)path[path_len - 1] : 0u);
    return 0;
}

static int on_stack(void *context, const gp_stack_record_t *stack, const gp_loc_t *frames)
{
    (void)context;
    for (uint16_t i = 0; i < stack->depth; i++)
        sum += frames[i];
    return 0;
}

static int on_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    (void)context;
    for (size_t i = 0; i < count; i++)
        sum += samples[i].weight_ns + samples[i].stack_id;
    return 0;
}

static int on_ledger(void *context, const gp_ledger_record_t *ledger)
{
    (void)context;
    sum += ledger->cpu_ns;
    return 0;
}

static int on_counters(void *context, const gp_counters_record_t *record, const uint64_t *values)
{
    (void)context;
    for (uint64_t i = 0; i < record->count; i++)
        sum += values[i];
    return 0;
}

static int on_activity(void *context, const gp_activity_record_t *activity)
{
    (void)context;
    sum += activity->end_ns;
    return 0;
}

static int on_census(void *context, const gp_census_record_t *census)
{
    (void)context;
    sum += census->stack_id;
    return 0;
}

static int on_origin(void *context, const gp_origin_record_t *origin)
{
    (void)context;
    sum += origin->stack_id + origin->region;
    return 0;
}

static int on_sum(void *context, const gp_sum_record_t *record)
{
    (void)context;
    sum += record->samples + record->kind;
    return 0;
}

static void read_payload(uint16_t type, uint16_t flags, const uint8_t *data, size_t len)
{
    const gp_reader_handlers_t handlers = {.meta = on_meta,
                                           .module = on_module,
                                           .stack = on_stack,
                                           .samples = on_samples,
                                           .ledger = on_ledger,
                                           .counters = on_counters,
                                           .activity = on_activity,
                                           .census = on_census,
                                           .origin = on_origin,
                                           .sum = on_sum};
    gp_reader_payload_t payload = {0};
    bool known;
    // The reader's budget for what grows is not part of this: keep it small here.
    if (gp_reader_decompress(&payload, flags, &data, &len) == 0 && len < 1 << 20)
        (flags & GP_CHUNK_PACKED ? gp_reader_packed_records
                                 : gp_reader_records)(type, data, len, &(gp_taker_t){&handlers, NULL, NULL}, &known);
    gp_reader_payload_free(&payload);
}

// Packed words come back as they were.
static void round_trip(const uint32_t *words, size_t word_count, size_t record_words)
{
    static uint32_t block[GP_UNPACK_BLOCK * GP_UNPACK_WORDS_MAX];
    gp_unpacker_t unpacker;
    uint32_t count = (uint32_t)(word_count / record_words);
    uint8_t *packed = malloc(gp_pack_bound(count, record_words * 4));
    size_t len = gp_pack(words, count, (uint16_t)(record_words * 4), packed), done = 0;
    if (len > gp_pack_bound(count, record_words * 4) || gp_unpack_begin(&unpacker, packed, len) != 0)
        abort();
    for (size_t got; (got = gp_unpack_next(&unpacker, block, record_words, GP_UNPACK_ALL)) > 0; done += got)
        if (memcmp(block, words + done * record_words, got * record_words * 4) != 0)
            abort();
    if (done != count)
        abort();
    free(packed);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 3)
        return 0;
    size_t len = size - 3;
    uint64_t *copy = malloc(len + 1); // on an 8-byte boundary, as the reader's window has it
    memcpy(copy, data + 3, len);
    read_payload(data[0] & 31, data[1] & 3, (const uint8_t *)copy, len);
    round_trip((const uint32_t *)(const void *)copy, len / 4, 1 + data[2] % 20);
    free(copy);
    return 0;
}
