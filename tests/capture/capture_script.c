// SPDX-License-Identifier: MIT
#include "capture_script.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "capture/format.h"

typedef struct bytes {
    uint8_t *data;
    size_t len, size;
} bytes_t;

typedef struct script {
    bytes_t file, payload;
    gp_file_header_t header;
    int header_written;
    uint16_t type; // of the chunk that is being filled, 0 = none
    uint32_t sequence;
    int bad;
    char *rest; // what is left of the line
    int line;
} script_t;

static void wrong(const script_t *script, const char *what)
{
    fprintf(stderr, "capture script, line %d: %s\n", script->line, what);
    exit(2);
}

static void add(bytes_t *bytes, const void *data, size_t len)
{
    if (bytes->len + len + 8 > bytes->size) {
        bytes->size = (bytes->len + len + 8) * 2;
        bytes->data = realloc(bytes->data, bytes->size);
        if (bytes->data == NULL)
            abort();
    }
    if (len > 0)
        memcpy(bytes->data + bytes->len, data, len);
    bytes->len += len;
}

static void pad(bytes_t *bytes)
{
    static const uint8_t zeros[8];
    add(bytes, zeros, (8 - bytes->len % 8) % 8);
}

static void flush(script_t *script)
{
    gp_chunk_header_t chunk = {
        .magic = GP_CHUNK_MAGIC,
        .type = script->type,
        .payload_len = (uint32_t)script->payload.len,
        .sequence = script->sequence,
    };
    if (!script->header_written)
        add(&script->file, &script->header, sizeof(script->header));
    script->header_written = 1;
    if (script->type == 0)
        return;
    chunk.checksum =
        XXH64(script->payload.data, script->payload.len, GP_CHUNK_SEED(chunk.type, chunk.flags, chunk.sequence));
    chunk.checksum ^= script->bad ? 1 : 0;
    script->sequence++;
    add(&script->file, &chunk, sizeof(chunk));
    add(&script->file, script->payload.data, script->payload.len);
    pad(&script->file);
    script->payload.len = 0;
    script->type = 0;
    script->bad = 0;
}

static void record(script_t *script, uint16_t type, const void *data, size_t len)
{
    if (script->type != type) {
        flush(script);
        script->type = type;
    }
    add(&script->payload, data, len);
}

static char *word(script_t *script)
{
    char *found = strtok_r(NULL, " \t", &script->rest);
    if (found == NULL)
        wrong(script, "a word is missing");
    return found;
}

static uint64_t number(script_t *script)
{
    char *end;
    const char *text = word(script);
    uint64_t value = strtoull(text, &end, 0);
    if (*end != '\0')
        wrong(script, "no number");
    return value;
}

static size_t hex(script_t *script, uint8_t *out, size_t size)
{
    const char *text = word(script);
    size_t len = strlen(text) / 2;
    if (strcmp(text, "-") == 0)
        return 0;
    for (size_t i = 0; i < len && i < size; i++) {
        unsigned byte = 0;
        if (sscanf(text + 2 * i, "%2x", &byte) != 1)
            wrong(script, "no hex");
        out[i] = (uint8_t)byte;
    }
    return len < size ? len : size;
}

static gp_loc_t location(const script_t *script, const char *text)
{
    static const char *const pseudo[] = {"", "switching", "truncated", "incomplete"};
    unsigned module = 0;
    uint64_t offset = 0;
    for (unsigned i = 1; i < 4; i++)
        if (strcmp(text, pseudo[i]) == 0)
            return GP_LOC(GP_MODULE_PSEUDO, i);
    if (strcmp(text, "-") == 0)
        return 0;
    if (sscanf(text, "function:%u:%" SCNu64, &module, &offset) == 2)
        return GP_LOC(GP_MODULE_LANGUAGE, GP_LANGUAGE_OFFSET(module, offset));
    if (sscanf(text, "%u:%" SCNx64, &module, &offset) != 2)
        wrong(script, "no location");
    return GP_LOC(module, offset);
}

static void on_header(script_t *script)
{
    char *text;
    while ((text = strtok_r(NULL, " \t", &script->rest)) != NULL) {
        char *equals = strchr(text, '=');
        if (equals == NULL)
            wrong(script, "key=value");
        uint64_t value = strtoull(equals + 1, NULL, 0);
        *equals = '\0';
        if (strcmp(text, "frequency") == 0)
            script->header.frequency_hz = (uint32_t)value;
        else if (strcmp(text, "engine") == 0)
            script->header.engine = (uint32_t)value;
        else if (strcmp(text, "pid") == 0)
            script->header.pid = (uint32_t)value;
        else if (strcmp(text, "realtime") == 0)
            script->header.start_realtime_ns = value;
        else if (strcmp(text, "version") == 0)
            script->header.version = (uint32_t)value;
        else if (strcmp(text, "features") == 0)
            script->header.features = value;
        else if (strcmp(text, "header_bytes") == 0)
            script->header.header_bytes = (uint32_t)value;
        else
            wrong(script, "unknown key");
    }
}

// "\\0" becomes a NUL. Returns the length.
static size_t put_nuls(char *text)
{
    size_t len = 0;
    for (const char *at = text; *at != '\0'; at++) {
        bool nul = at[0] == '\\' && at[1] == '0';
        text[len++] = nul ? '\0' : *at;
        at += nul;
    }
    return len;
}

static void on_meta(script_t *script)
{
    static char none[] = "";
    const char *key = word(script);
    char *value = script->rest ? script->rest : none;
    gp_meta_record_t item = {.key_len = (uint16_t)strlen(key), .value_len = (uint32_t)put_nuls(value)};
    record(script, GP_CHUNK_META, &item, sizeof(item));
    add(&script->payload, key, item.key_len);
    add(&script->payload, value, item.value_len);
    pad(&script->payload);
}

static void on_module(script_t *script)
{
    gp_module_record_t item = {.id = (uint32_t)number(script)};
    const char *path = word(script);
    item.path_len = (uint16_t)strlen(path);
    item.build_id_len = (uint16_t)hex(script, item.build_id, sizeof(item.build_id));
    item.start = number(script);
    item.end = number(script);
    item.bias = number(script);
    record(script, GP_CHUNK_MODULES, &item, sizeof(item));
    add(&script->payload, path, item.path_len);
    pad(&script->payload);
}

static void on_function(script_t *script)
{
    gp_function_record_t item = {.number = (uint32_t)number(script)};
    const char *name, *file;
    item.first_line = (uint32_t)number(script);
    name = word(script);
    file = word(script);
    item.name_len = (uint32_t)strlen(name);
    item.file_len = (uint32_t)strlen(file);
    record(script, GP_CHUNK_FUNCTIONS, &item, sizeof(item));
    add(&script->payload, name, item.name_len);
    add(&script->payload, file, item.file_len);
    pad(&script->payload);
}

static void on_pool(script_t *script)
{
    char text[128];
    gp_function_record_t item = {.number = (uint32_t)number(script)};
    uint64_t size = number(script);
    item.name_len = (uint32_t)snprintf(text, sizeof(text), "[pool %s of %" PRIu64 "]", word(script), size);
    record(script, GP_CHUNK_FUNCTIONS, &item, sizeof(item));
    add(&script->payload, text, item.name_len);
    pad(&script->payload);
}

static void on_words(script_t *script)
{
    gp_function_record_t item = {.number = (uint32_t)number(script), .name_len = (uint32_t)strlen(script->rest)};
    record(script, GP_CHUNK_FUNCTIONS, &item, sizeof(item));
    add(&script->payload, script->rest, item.name_len);
    pad(&script->payload);
}

static void on_census(script_t *script)
{
    gp_census_record_t item = {.time_ns = number(script), .number = 1};
    item.coro_id = number(script);
    item.state = (uint16_t)number(script);
    item.state_ns = number(script);
    item.stack_id = (uint32_t)number(script);
    record(script, GP_CHUNK_CENSUS, &item, sizeof(item));
}

static void on_thread(script_t *script)
{
    gp_thread_record_t item = {.index = (uint32_t)number(script)};
    item.tid = (uint32_t)number(script);
    item.coro_id = number(script);
    item.cpu_ns = number(script);
    strncpy(item.name, word(script), sizeof(item.name) - 1);
    record(script, GP_CHUNK_THREADS, &item, sizeof(item));
}

static void on_coro(script_t *script)
{
    gp_coro_record_t item = {.id = number(script)};
    item.parent_id = number(script);
    item.entry = location(script, word(script));
    item.stack_lo = number(script);
    item.stack_bytes = number(script);
    item.kind = (uint32_t)number(script);
    item.thread = (uint32_t)number(script);
    const char *name = word(script);
    if (strcmp(name, "-") != 0)
        strncpy(item.name, name, sizeof(item.name) - 1);
    const char *birth = strtok_r(NULL, " \t", &script->rest);
    item.birth_ns = birth != NULL ? strtoull(birth, NULL, 0) : 0;
    record(script, GP_CHUNK_COROS, &item, sizeof(item));
}

static void on_origin(script_t *script)
{
    gp_origin_record_t item = {.coro_id = number(script)};
    item.stack_id = (uint32_t)number(script);
    item.region = (uint32_t)number(script);
    const char *pool = strtok_r(NULL, " \t", &script->rest);
    item.pool = pool != NULL ? location(script, pool) : 0;
    record(script, GP_CHUNK_ORIGINS, &item, sizeof(item));
}

static void on_trace(script_t *script)
{
    gp_trace_record_t item = {.index = (uint32_t)number(script)};
    hex(script, item.id, sizeof(item.id));
    record(script, GP_CHUNK_TRACES, &item, sizeof(item));
}

static void on_stack(script_t *script)
{
    gp_stack_record_t item = {.id = (uint32_t)number(script)};
    gp_loc_t frames[1024];
    char *text;
    item.flags = (uint16_t)number(script);
    while ((text = strtok_r(NULL, " \t", &script->rest)) != NULL)
        frames[item.depth++] = location(script, text);
    record(script, GP_CHUNK_STACKS, &item, sizeof(item));
    add(&script->payload, frames, item.depth * sizeof(frames[0]));
}

static void on_sample(script_t *script)
{
    gp_sample_record_t item = {.time_ns = number(script)};
    item.weight_ns = number(script);
    item.coro_id = number(script);
    item.thread = (uint32_t)number(script);
    item.stack_id = (uint32_t)number(script);
    item.trace = (uint32_t)number(script);
    const char *kind = strtok_r(NULL, " \t", &script->rest);
    item.kind = kind != NULL ? (uint32_t)strtoul(kind, NULL, 0) : GP_KIND_CPU;
    record(script, GP_CHUNK_SAMPLES, &item, sizeof(item));
}

static void on_ledger(script_t *script)
{
    gp_ledger_record_t item = {.coro_id = number(script)};
    item.trace = (uint32_t)number(script);
    item.cpu_ns = number(script);
    item.switches = number(script);
    item.time_ns = number(script);
    char *text = strtok_r(NULL, " \t", &script->rest);
    if (text != NULL) { // more of it
        item.slice_ns = strtoull(text, NULL, 0);
        item.blocked_ns = number(script);
        item.ready_ns = number(script);
        item.parked_ns = number(script);
        item.waiting_ns = number(script);
        item.longest_ns = number(script);
        text = strtok_r(NULL, " \t", &script->rest);
    }
    if (text != NULL) {
        item.gil_ns = strtoull(text, NULL, 0);
        item.lock_ns = number(script);
    }
    record(script, GP_CHUNK_LEDGER, &item, sizeof(item));
}

static void add_activity(script_t *script, enum gp_chunk_type type)
{
    gp_activity_record_t item = {.coro_id = number(script)};
    item.start_ns = number(script);
    item.left_ns = number(script);
    item.end_ns = number(script);
    item.slice_ns = number(script);
    item.ready_ns = number(script);
    item.waker_id = number(script);
    item.trace = (uint32_t)number(script);
    item.thread = (uint32_t)number(script);
    item.is_open = (uint32_t)number(script);
    char *off_ns = strtok_r(NULL, " \t", &script->rest); // where its times are known
    if (off_ns != NULL)
        gp_activity_set_times(&item, strtoull(off_ns, NULL, 10), number(script), 0, 0);
    record(script, type, &item, sizeof(item));
}

static void on_activity(script_t *script)
{
    add_activity(script, GP_CHUNK_ACTIVITIES);
}

static void on_open_activity(script_t *script)
{
    add_activity(script, GP_CHUNK_OPEN_ACTIVITIES);
}

static void on_hog(script_t *script)
{
    gp_hog_record_t item = {.id = number(script)};
    gp_hog_stack_t stacks[64] = {0};
    char *text;
    item.coro_id = number(script);
    item.trace = (uint32_t)number(script);
    item.thread = (uint32_t)number(script);
    item.start_ns = number(script);
    item.duration_ns = number(script);
    while ((text = strtok_r(NULL, " \t:", &script->rest)) != NULL && item.stack_count < 64) {
        stacks[item.stack_count].stack_id = (uint32_t)strtoul(text, NULL, 0);
        text = strtok_r(NULL, " \t:", &script->rest);
        if (text == NULL)
            wrong(script, "STACK:WEIGHT is wanted");
        stacks[item.stack_count++].weight_ns = strtoull(text, NULL, 0);
    }
    record(script, GP_CHUNK_HOGS, &item, sizeof(item));
    add(&script->payload, stacks, item.stack_count * sizeof(stacks[0]));
}

static void on_delay(script_t *script)
{
    gp_delay_record_t item = {.hog_id = number(script)};
    item.coro_id = number(script);
    item.trace = (uint32_t)number(script);
    item.delay_ns = number(script);
    record(script, GP_CHUNK_DELAYS, &item, sizeof(item));
}

static void on_sum(script_t *script)
{
    gp_sum_record_t item = {.time_ns = number(script)};
    item.coro_id = number(script);
    item.stack_id = (uint32_t)number(script);
    item.trace = (uint32_t)number(script);
    item.kind = (uint32_t)number(script);
    item.samples = number(script);
    item.squares_ns2 = (double)number(script);
    record(script, GP_CHUNK_SUMS, &item, sizeof(item));
}

static void add_span(script_t *script, enum gp_chunk_type type)
{
    gp_span_record_t item = {.id = number(script)};
    item.parent_id = number(script);
    item.coro_id = number(script);
    item.end_coro_id = number(script);
    item.start_ns = number(script);
    item.end_ns = number(script);
    item.trace = (uint32_t)number(script);
    item.kind = (uint16_t)number(script);
    item.flags = (uint16_t)number(script);
    const char *name = script->rest ? script->rest : "";
    item.name_len = (uint16_t)strlen(name);
    record(script, type, &item, sizeof(item));
    add(&script->payload, name, item.name_len);
    pad(&script->payload);
}

static void on_span(script_t *script)
{
    add_span(script, GP_CHUNK_SPANS);
}

static void on_open_span(script_t *script)
{
    add_span(script, GP_CHUNK_OPEN_SPANS);
}

static void on_counters(script_t *script)
{
    gp_counters_record_t item = {.time_ns = number(script)};
    uint64_t values[64];
    char *text;
    item.process_cpu_ns = number(script);
    item.own_cpu_ns = number(script);
    while ((text = strtok_r(NULL, " \t", &script->rest)) != NULL)
        values[item.count++] = strtoull(text, NULL, 0);
    record(script, GP_CHUNK_COUNTERS, &item, sizeof(item));
    add(&script->payload, values, item.count * sizeof(values[0]));
}

static void on_end(script_t *script)
{
    gp_end_record_t item = {.time_ns = number(script)};
    item.reason = (uint32_t)number(script);
    record(script, GP_CHUNK_END, &item, sizeof(item));
}

static void on_unknown(script_t *script)
{
    uint8_t data[256];
    uint16_t type = (uint16_t)number(script);
    size_t len = hex(script, data, sizeof(data));
    flush(script);
    record(script, type, data, len);
    flush(script);
}

static void on_chunk(script_t *script)
{
    flush(script);
}

static void on_skip(script_t *script)
{
    flush(script);
    script->sequence += (uint32_t)number(script);
}

static void on_bad(script_t *script)
{
    flush(script);
    script->bad = 1;
}

static void on_raw(script_t *script)
{
    uint8_t data[256];
    size_t len = hex(script, data, sizeof(data));
    flush(script);
    add(&script->file, data, len);
}

static const struct {
    const char *name;
    void (*run)(script_t *script);
} verbs[] = {
    {"header", on_header},   {"meta", on_meta},
    {"module", on_module},   {"thread", on_thread},
    {"coro", on_coro},       {"trace", on_trace},
    {"stack", on_stack},     {"sample", on_sample},
    {"ledger", on_ledger},   {"activity", on_activity},
    {"span", on_span},       {"origin", on_origin},
    {"end", on_end},         {"counters", on_counters},
    {"chunk", on_chunk},     {"skip", on_skip},
    {"unknown", on_unknown}, {"bad", on_bad},
    {"raw", on_raw},         {"function", on_function},
    {"pool", on_pool},       {"hog", on_hog},
    {"delay", on_delay},     {"open_span", on_open_span},
    {"sum", on_sum},         {"open_activity", on_open_activity},
    {"words", on_words},     {"census", on_census},
};

static void run_line(script_t *script, char *line)
{
    const char *name = strtok_r(line, " \t", &script->rest);
    if (name == NULL || name[0] == '#')
        return;
    for (size_t i = 0; i < sizeof(verbs) / sizeof(verbs[0]); i++)
        if (strcmp(verbs[i].name, name) == 0) {
            verbs[i].run(script);
            return;
        }
    wrong(script, "unknown record");
}

uint8_t *capture_from_script(const char *text, size_t *len)
{
    script_t script = {
        .header = {.version = GP_FILE_VERSION,
                   .header_bytes = sizeof(gp_file_header_t),
                   .frequency_hz = 1000,
                   .engine = GP_ENGINE_PERF,
                   .elf_machine = 62,
                   .pid = 4242,
                   .start_realtime_ns = 1790000000000000000ull},
    };
    char *copy = strdup(text), *save = NULL;
    memcpy(script.header.magic, GP_FILE_MAGIC, sizeof(script.header.magic));
    for (char *line = strtok_r(copy, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
        script.line++;
        run_line(&script, line);
    }
    flush(&script);
    free(copy);
    free(script.payload.data);
    *len = script.file.len;
    return script.file.data;
}
