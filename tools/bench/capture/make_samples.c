// SPDX-License-Identifier: MIT
// Makes a large capture of an imagined service, through the library's own writer:
//   bench_make_samples OUT SAMPLES SYMBOLS [--raw RAW] [--script SCRIPT]
//
// 8 threads at 1000 Hz serve requests on coroutines: 128 requests at a time, each a new coroutine with a trace id of
// its own, about 100 samples long; 24,000 distinct stacks, 8 to 60 deep, used as unequally as stacks are. The
// collector's rounds, flushes and ledger records come as they do in a process.
//   SYMBOLS   "PATH BUILD-ID", then lines "ADDRESS NAME" (hexadecimal): where frames point to
//   RAW       every record as it was before it was packed and compressed, in the order of the file
//   SCRIPT    the same samples as text, as `perf script` writes them
// Prints: samples, distinct stacks, coroutines, CPU ns a sample of packing, compressing and writing, bytes of file.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "capture/write/writer.h"

enum {
    THREADS = 8,
    CURRENT = 128, // requests at a time
    STACKS = 24000,
    KINDS = 20, // of requests: each uses a part of the stacks
    DEPTH_MAX = 60,
    SLICE_SAMPLES = 4, // before another coroutine runs on the thread
    REQUEST_SAMPLES = 100,
    ROUND_SAMPLES = 50, // of a thread, in a round of the collector
    ROUNDS_A_FLUSH = 4,
    PERIOD_NS = 1000000,
};

typedef struct symbol {
    uint64_t address;
    char *name;
} symbol_t;

typedef struct stack {
    gp_loc_t frames[DEPTH_MAX];
    uint32_t symbols[DEPTH_MAX];
    uint16_t depth;
    uint32_t id; // 0 = not yet seen
} shape_t;

typedef struct request {
    uint64_t coro, ledger_ns, switches;
    uint32_t trace, kind, left;
} request_t;

static gp_writer_t writer = GP_WRITER_INIT;
static symbol_t *symbols;
static size_t symbol_count;
static shape_t stacks[STACKS];
static request_t requests[CURRENT];
static uint64_t coros, now_ns[THREADS], write_ns, process_ns;
static uint32_t traces, stack_ids;
static FILE *raw, *script;

static uint64_t random_bits(void)
{
    static uint64_t state = 88172645463325252ull; // xorshift64: the same capture every time
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static uint32_t below(uint32_t limit)
{
    return (uint32_t)(random_bits() >> 32) % limit;
}

static void fail(const char *what)
{
    perror(what);
    exit(1);
}

static void *add(enum gp_chunk_type type, size_t bytes)
{
    void *record = gp_writer_add(&writer, type, bytes);
    if (record == NULL)
        fail("gp_writer_add");
    return record;
}

// Write the waiting records; with the records themselves to `raw`.
static void flush(void)
{
    for (unsigned type = 0; type < GP_CHUNK_TYPES && raw != NULL; type++)
        fwrite(writer.buffers[type].data, 1, writer.buffers[type].length, raw);
    struct timespec before, after;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &before);
    if (gp_writer_flush(&writer) != 0)
        fail("gp_writer_flush");
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &after);
    write_ns +=
        (uint64_t)(after.tv_sec - before.tv_sec) * 1000000000u + (uint64_t)after.tv_nsec - (uint64_t)before.tv_nsec;
}

static void read_symbols(const char *path)
{
    char line[1024], module[512], build_id[128] = "", name[512];
    FILE *file = fopen(path, "r");
    uint64_t address;
    if (file == NULL || fgets(line, sizeof(line), file) == NULL || sscanf(line, "%511s %127s", module, build_id) < 1)
        fail(path);
    while (fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "%" SCNx64 " %511s", &address, name) != 2)
            continue;
        symbols = realloc(symbols, (symbol_count + 1) * sizeof(*symbols));
        symbols[symbol_count++] = (symbol_t){address, strdup(name)};
    }
    fclose(file);
    if (symbol_count < 1000)
        fail("1000 symbols at least");
    size_t len = strlen(module);
    gp_module_record_t *record = add(GP_CHUNK_MODULES, sizeof(*record) + len);
    record->id = 1;
    record->path_len = (uint16_t)len;
    record->start = 0x400000;
    record->end = 0x10000000;
    memcpy(record + 1, module, len);
    for (unsigned byte; record->build_id_len < 20 && sscanf(build_id + 2 * record->build_id_len, "%2x", &byte) == 1;)
        record->build_id[record->build_id_len++] = (uint8_t)byte;
}

// Stacks are paths of a tree: each shares its outer part with one before it, as those of programs do.
static void make_stacks(void)
{
    for (uint32_t i = 0; i < STACKS; i++) {
        shape_t *stack = &stacks[i];
        const shape_t *parent = i > 0 ? &stacks[below(i)] : stack;
        uint16_t shared = parent->depth > 2 ? (uint16_t)(parent->depth / 2 + below(parent->depth / 2u)) : 0;
        stack->depth = (uint16_t)(8 + below(20) + below(34));
        if (stack->depth <= shared)
            stack->depth = (uint16_t)(shared + 1 < DEPTH_MAX ? shared + 1 : DEPTH_MAX);
        for (uint16_t frame = 0; frame < stack->depth; frame++) { // outermost first, then turned round
            uint32_t symbol = below(500) < 400 ? below(400) : below((uint32_t)symbol_count);
            stack->symbols[frame] = frame < shared ? parent->symbols[parent->depth - 1 - frame] : symbol;
            stack->frames[frame] = frame < shared ? parent->frames[parent->depth - 1 - frame]
                                                  : GP_LOC(1, symbols[symbol].address + 1 + 4 * below(4));
        }
        for (uint16_t a = 0, b = (uint16_t)(stack->depth - 1); a < b; a++, b--) {
            gp_loc_t frame = stack->frames[a];
            uint32_t symbol = stack->symbols[a];
            stack->frames[a] = stack->frames[b], stack->symbols[a] = stack->symbols[b];
            stack->frames[b] = frame, stack->symbols[b] = symbol;
        }
    }
}

static void begin_request(request_t *request)
{
    *request = (request_t){
        .coro = ++coros, .trace = ++traces, .kind = below(KINDS), .left = REQUEST_SAMPLES / 2 + below(REQUEST_SAMPLES)};
    gp_coro_record_t *coro = add(GP_CHUNK_COROS, sizeof(*coro));
    *coro = (gp_coro_record_t){.id = request->coro,
                               .parent_id = 1,
                               .entry = GP_LOC(1, symbols[request->kind].address),
                               .stack_lo = 0x7f0000000000ull + request->coro % 256 * 0x40000,
                               .stack_bytes = 0x40000,
                               .birth_ns = now_ns[0],
                               .kind = GP_CORO_ANNOUNCED};
    gp_trace_record_t *trace = add(GP_CHUNK_TRACES, sizeof(*trace));
    uint64_t id[2] = {random_bits(), random_bits()};
    trace->index = request->trace;
    memcpy(trace->id, id, sizeof(id));
}

static void report_ledger(request_t *request)
{
    if (request->ledger_ns == 0)
        return;
    gp_ledger_record_t *record = add(GP_CHUNK_LEDGER, sizeof(*record));
    record->coro_id = request->coro;
    record->trace = request->trace;
    record->cpu_ns = request->ledger_ns;
    record->switches = request->switches;
    record->time_ns = now_ns[0];
    request->ledger_ns = request->switches = 0;
}

static uint32_t use(shape_t *stack)
{
    if (stack->id != 0)
        return stack->id;
    stack->id = ++stack_ids;
    gp_stack_record_t *record = add(GP_CHUNK_STACKS, sizeof(*record) + stack->depth * sizeof(gp_loc_t));
    record->id = stack->id;
    record->depth = stack->depth;
    memcpy(record + 1, stack->frames, stack->depth * sizeof(gp_loc_t));
    return stack->id;
}

static void print(const shape_t *stack, uint32_t thread, uint64_t time_ns, uint64_t weight_ns)
{
    fprintf(script, "service %u/%u %" PRIu64 ".%06" PRIu64 ": %" PRIu64 " task-clock:u: \n", 4242u, 4242u + thread,
            time_ns / 1000000000u, time_ns / 1000u % 1000000u, weight_ns);
    for (uint16_t i = 0; i < stack->depth; i++)
        fprintf(script, "\t%16" PRIx64 " %s+0x%x (/usr/bin/service)\n", (uint64_t)GP_LOC_OFFSET(stack->frames[i]),
                symbols[stack->symbols[i]].name, 1u);
    putc('\n', script);
}

static void take_sample(uint32_t thread, request_t *request)
{
    // The square of an even distribution: few stacks are in many samples, many in few.
    uint64_t even = random_bits() >> 40, unequal = even * even >> 24;
    uint32_t part = STACKS / KINDS, number = request->kind * part + (uint32_t)(unequal * part >> 24);
    uint64_t jitter = random_bits() % 40000, weight = PERIOD_NS - 20000 + jitter;
    weight += below(200) == 0 ? PERIOD_NS : 0; // a tick that came late
    now_ns[thread] += weight + random_bits() % 2000;
    uint32_t stack = use(&stacks[number]);
    gp_sample_record_t *sample = add(GP_CHUNK_SAMPLES, sizeof(*sample));
    sample->time_ns = now_ns[thread];
    sample->weight_ns = weight;
    sample->coro_id = request->coro;
    sample->thread = thread + 1;
    sample->stack_id = stack;
    sample->trace = request->trace;
    request->ledger_ns += weight;
    process_ns += weight;
    if (script != NULL)
        print(&stacks[number], thread, now_ns[thread], weight);
}

// The work of a thread since the round before.
static void take_round(uint32_t thread)
{
    request_t *request = NULL;
    for (uint32_t i = 0; i < ROUND_SAMPLES; i++) {
        if (request == NULL || below(SLICE_SAMPLES) == 0) {
            request = &requests[thread * (CURRENT / THREADS) + below(CURRENT / THREADS)];
            request->switches++;
        }
        take_sample(thread, request);
        if (--request->left == 0) {
            report_ledger(request);
            begin_request(request);
        }
    }
}

static void finish_flush(uint64_t samples, bool last)
{
    for (uint32_t i = 0; i < CURRENT; i++)
        report_ledger(&requests[i]);
    for (uint32_t i = 0; i < THREADS; i++) {
        gp_thread_record_t *thread = add(GP_CHUNK_THREADS, sizeof(*thread));
        *thread = (gp_thread_record_t){.index = i + 1, .tid = 4242 + i, .cpu_ns = now_ns[i]};
        snprintf(thread->name, sizeof(thread->name), "worker-%u", i);
    }
    gp_counters_record_t *counters = add(GP_CHUNK_COUNTERS, sizeof(*counters) + GP_COUNTER_COUNT * sizeof(uint64_t));
    *counters = (gp_counters_record_t){.time_ns = now_ns[0], .process_cpu_ns = process_ns, .count = GP_COUNTER_COUNT};
    ((uint64_t *)(counters + 1))[GP_COUNTER_SIGNALS] = samples;
    ((uint64_t *)(counters + 1))[GP_COUNTER_SAMPLES] = samples;
    if (last)
        ((gp_end_record_t *)add(GP_CHUNK_END, sizeof(gp_end_record_t)))->time_ns = now_ns[0];
    flush();
}

static void run(uint64_t wanted)
{
    uint64_t samples = 0;
    for (uint32_t i = 0; i < CURRENT; i++)
        begin_request(&requests[i]);
    while (samples < wanted) {
        for (uint32_t round = 0; round < ROUNDS_A_FLUSH; round++)
            for (uint32_t thread = 0; thread < THREADS; thread++, samples += ROUND_SAMPLES)
                take_round(thread);
        finish_flush(samples, samples >= wanted);
    }
    struct stat status;
    if (fstat(writer.fd, &status) != 0)
        fail("fstat");
    printf("%" PRIu64 " %u %" PRIu64 " %.1f %lld\n", samples, stack_ids, coros, (double)write_ns / (double)samples,
           (long long)status.st_size);
}

int main(int argc, char **argv)
{
    gp_file_header_t header = {.version = GP_FILE_VERSION,
                               .header_bytes = sizeof(header),
                               .pid = 4242,
                               .frequency_hz = 1000,
                               .engine = GP_ENGINE_PERF,
                               .elf_machine = 62};
    if (argc < 4) {
        fputs("usage: bench_make_samples OUT SAMPLES SYMBOLS [--raw RAW] [--script SCRIPT]\n", stderr);
        return 2;
    }
    for (int i = 4; i + 1 < argc; i += 2) {
        FILE **file = strcmp(argv[i], "--raw") == 0 ? &raw : &script;
        if ((*file = fopen(argv[i + 1], "w")) == NULL)
            fail(argv[i + 1]);
    }
    memcpy(header.magic, GP_FILE_MAGIC, sizeof(header.magic));
    if (gp_writer_open(&writer, argv[1], &header) != 0)
        fail(argv[1]);
    read_symbols(argv[3]);
    make_stacks();
    run(strtoull(argv[2], NULL, 10));
    gp_writer_close(&writer);
    if ((raw != NULL && fclose(raw) != 0) || (script != NULL && fclose(script) != 0))
        fail("output");
    return 0;
}
