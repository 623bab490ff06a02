// SPDX-License-Identifier: MIT
// greenprof info: what is in a capture, and what is missing in it.
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "command.h"
#include "info_json.h"
#include "message.h"
#include "print.h"
#include "progress.h"
#include "report/losses.h"
#include "run/runtimes.h"
#include "tables.h"

static const char *info_machine_name(uint32_t machine)
{
    return machine == EM_AARCH64 ? "aarch64" : "x86-64"; // a reader takes no other
}

static void info_print_label(const char *label)
{
    printf("  %-10s ", label);
}

// Arguments are separated by NULs.
static void info_print_arguments(const gp_facts_meta_t *meta)
{
    size_t at = 0;
    while (at < meta->value_len) {
        printf("%s", at > 0 ? " " : "");
        gp_print_text(meta->value + at);
        at += strlen(meta->value + at) + 1;
    }
    printf("\n");
}

static void info_print_text(const gp_dataset_t *dataset, const char *label, const char *key)
{
    const gp_facts_meta_t *meta = gp_facts_meta(&dataset->facts, key);
    if (meta == NULL)
        return;
    info_print_label(label);
    gp_print_text(meta->value);
    printf("\n");
}

static void info_print_process(const gp_dataset_t *dataset)
{
    const gp_facts_meta_t *command = gp_facts_meta(&dataset->facts, "cmdline");
    info_print_text(dataset, "program", "exe");
    if (command != NULL) {
        info_print_label("command");
        info_print_arguments(command);
    }
    for (size_t i = 0; i < dataset->facts.metas.count; i++) {
        if (strcmp(dataset->facts.metas.items[i].key, "merged") != 0)
            continue;
        info_print_label("merged");
        gp_print_text(dataset->facts.metas.items[i].value);
        printf("\n");
    }
    if (dataset->facts.header.pid != 0) {
        info_print_label("process");
        printf("%" PRIu32 ", child of %" PRIu32 "\n", dataset->facts.header.pid, dataset->facts.header.ppid);
    }
    info_print_text(dataset, "host", "hostname");
}

static void info_print_date(uint64_t realtime_ns)
{
    time_t seconds = (time_t)(realtime_ns / 1000000000u);
    struct tm utc;
    char text[64];
    if (gmtime_r(&seconds, &utc) != NULL && strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &utc) > 0)
        printf("%s.%03" PRIu64 " UTC", text, realtime_ns / 1000000 % 1000);
}

static void info_print_times(const gp_dataset_t *dataset)
{
    if (dataset->facts.header.start_realtime_ns != 0) {
        info_print_label("started");
        info_print_date(dataset->facts.header.start_realtime_ns);
        printf("\n");
    }
    info_print_label("duration");
    gp_print_seconds(dataset->facts.end_ns, 0);
    printf(" s\n");
}

static void info_print_end(const gp_dataset_t *dataset)
{
    info_print_label("end");
    if (!dataset->summary.ended)
        printf("none: the program still runs, was killed, or left by a system call of its own\n");
    else if (dataset->facts.end.reason == GP_END_EXIT)
        printf("the process ended\n");
    else if (dataset->facts.end.reason == GP_END_STOPPED)
        printf("sampling was stopped\n");
    else if (dataset->facts.end.reason == GP_END_EXEC)
        printf("the process became another program\n");
    else if (dataset->facts.end.reason == GP_END_FULL)
        printf("the capture has the size that it was to have at most: recording was stopped\n");
    else if (dataset->facts.end.reason == GP_END_ASKED)
        printf("recording was stopped by a command or a signal\n");
    else if (dataset->facts.end.reason == GP_END_TURNED)
        printf("the recording goes on in the next part\n");
    else if (dataset->facts.end.reason == GP_END_KILLED)
        printf("the program was killed, or left by a system call of its own; recovered\n");
    else if (dataset->facts.end.reason == GP_END_CENSUS)
        printf("a census alone: nothing was recorded over time\n");
    else
        printf("the capture could not be written any further\n");
}

static void info_print_sampling(const gp_dataset_t *dataset)
{
    const gp_file_header_t *header = &dataset->facts.header;
    info_print_label("sampling");
    printf("asked for %" PRIu32 " Hz, %s clock", header->frequency_hz, gp_report_engine_name(header->engine));
    if (dataset->sampled_ns > 0)
        printf("; %.1f samples a second of CPU time", (double)dataset->samples * 1e9 / (double)dataset->sampled_ns);
    printf("\n");
    info_print_label("machine");
    printf("%s, 64 bits, little-endian", info_machine_name(header->elf_machine));
    if (header->tick_hz != 0)
        printf(", switch clock %.3f GHz", (double)header->tick_hz / 1e9);
    printf("\n");
}

static void info_print_difference(uint64_t is, uint64_t should)
{
    if (should > 0)
        printf(" (%+.2f %%)", ((double)is - (double)should) * 100 / (double)should);
}

// The self-audit: the kernel's clocks, the switch ledger and the samples, each on its own.
static void info_print_audit(const gp_dataset_t *dataset)
{
    uint64_t all = dataset->facts.totals.process_cpu_ns, rested = dataset->facts.counters[GP_COUNTER_REST_CPU_NS],
             ledger = 0;
    uint64_t exact = all > rested ? all - rested : 0;
    for (size_t i = 0; i < dataset->shares.count; i++)
        ledger += dataset->shares.items[i].ledger.cpu_ns;
    info_print_label("CPU time");
    gp_print_seconds(all, 0);
    printf(" s exact");
    if (rested > 0) {
        printf(", of it ");
        gp_print_seconds(exact, 0);
        printf(" s while recorded");
    }
    printf("; ledger ");
    gp_print_seconds(ledger, 0);
    printf(" s");
    info_print_difference(ledger, exact);
    printf("; sampled ");
    gp_print_seconds(dataset->sampled_ns, 0);
    printf(" s");
    info_print_difference(dataset->sampled_ns, exact);
    printf("\n");
}

static void info_print_part(const char *what, uint64_t ns)
{
    printf("%s ", what);
    gp_print_seconds(ns, 0);
    printf(" s");
}

// greenprof's measure of its own cost. Captures of older versions have its threads alone.
static void info_print_own_cost(const gp_dataset_t *dataset)
{
    const uint64_t *counters = dataset->facts.counters;
    info_print_label("own cost");
    if (counters[GP_COUNTER_HANDLER_NS] == 0) {
        gp_print_seconds(dataset->facts.totals.own_cpu_ns, 0);
        printf(" s of CPU time in greenprof's own threads\n");
        return;
    }
    printf("%.2f %% of the program's:", gp_losses_own_share(dataset) * 100);
    info_print_part(" its own threads", dataset->facts.totals.own_cpu_ns);
    info_print_part(", handler", counters[GP_COUNTER_HANDLER_NS]);
    info_print_part(", hooks", counters[GP_COUNTER_HOOK_NS]);
    if (counters[GP_COUNTER_DELIVERY_NS] > 0 && counters[GP_COUNTER_SIGNALS] > 0) {
        info_print_part(", signals", counters[GP_COUNTER_DELIVERY_NS]);
        printf(" (%.1f us each, as measured at the start)\n",
               (double)counters[GP_COUNTER_DELIVERY_NS] / (double)counters[GP_COUNTER_SIGNALS] / 1e3);
    } else {
        printf("; without what signals take to arrive, which was not measured: the program used too little CPU time\n");
    }
}

static void info_print_count(uint64_t count, const char *what, const char *separator)
{
    printf("%" PRIu64 " %s%s%s", count, what, count == 1 ? "" : "s", separator);
}

static void info_print_contents(const gp_dataset_t *dataset)
{
    size_t coros = 0;
    for (size_t i = 0; i < dataset->facts.coros.count; i++)
        coros += dataset->facts.coros.items[i].record.kind != GP_CORO_THREAD;
    info_print_label("holds");
    info_print_count(dataset->samples, "sample", "");
    if (dataset->facts.counters[GP_COUNTER_WAIT_SAMPLES] > 0)
        printf(" on the CPU and %" PRIu64 " of waits", dataset->facts.counters[GP_COUNTER_WAIT_SAMPLES]);
    printf(", ");
    info_print_count(dataset->facts.stacks.count - 1, "stack", ", "); // number 0 is "no stack"
    info_print_count(coros, "coroutine", ", ");
    info_print_count(dataset->facts.traces.count - 1, "trace", ", "); // number 0 is "no trace"
    info_print_count(dataset->spans.count, "span", ", ");
    info_print_count(dataset->facts.threads.count, "thread", ", ");
    info_print_count(dataset->facts.modules.count, "module", "\n");
}

static void info_print_polled(const gp_dataset_t *dataset)
{
    size_t polled = 0;
    for (size_t i = 0; i < dataset->facts.coros.count; i++)
        polled += dataset->facts.coros.items[i].record.kind == GP_CORO_POLLED;
    if (polled == 0)
        return;
    info_print_label("polled");
    info_print_count(polled, "coroutine", ": read at samples; switches and waits are not known\n");
}

// Stacks that no hook announced.
static void info_print_found(const gp_dataset_t *dataset)
{
    enum { SHOWN_MAX = 10, HINT_SIZE = 256 };
    char hint[HINT_SIZE], text[HINT_SIZE + 128];
    size_t found = 0;
    for (size_t i = 0; i < dataset->facts.coros.count; i++) {
        const gp_coro_record_t *record = &dataset->facts.coros.items[i].record;
        if (record->kind != GP_CORO_FOUND)
            continue;
        if (found++ == 0)
            gp_runtimes_hint(dataset, hint, sizeof(hint));
        if (found > SHOWN_MAX)
            continue;
        info_print_label(found == 1 ? "found" : "");
        printf("stack@0x%" PRIx64 "-0x%" PRIx64 " (%s)\n", record->stack_lo, record->stack_lo + record->stack_bytes,
               gp_runtimes_hint_of(&dataset->facts.coros.items[i], hint, text, sizeof(text)));
    }
    if (found > SHOWN_MAX) {
        info_print_label("");
        printf("and %zu more stacks that no hook announced\n", found - SHOWN_MAX);
    }
}

static void info_print_losses(const gp_dataset_t *dataset)
{
    info_print_label("signals");
    printf("%" PRIu64 ", of them %" PRIu64 " samples and %" PRIu64 " dropped\n",
           dataset->facts.counters[GP_COUNTER_SIGNALS], dataset->facts.counters[GP_COUNTER_SAMPLES],
           gp_counters_dropped(dataset->facts.counters));
    gp_report_print_counters(dataset);
}

static void info_print_file(const gp_dataset_t *dataset)
{
    const gp_reader_summary_t *summary = &dataset->summary;
    info_print_label("file");
    printf("%" PRIu64 " bytes, ", summary->bytes);
    info_print_count(summary->chunks, "chunk", "");
    if (dataset->samples > 0)
        printf(", %.1f bytes a sample", (double)summary->bytes / (double)dataset->samples);
    const gp_facts_meta_t *version = gp_facts_meta(&dataset->facts, "greenprof");
    if (version != NULL) {
        printf("; written by greenprof ");
        gp_print_text(version->value);
    }
    printf("\n");
    if (summary->chunks_damaged > 0 || summary->chunks_missing > 0 || summary->records_bad > 0) {
        info_print_label("damage");
        info_print_count(summary->chunks_damaged, "bad place", ", ");
        info_print_count(summary->chunks_missing, "missing chunk", ", ");
        info_print_count(summary->records_bad, "bad record", ", ");
        info_print_count(summary->bytes_skipped, "byte", " skipped\n");
    }
    if (summary->chunks_unknown > 0) {
        info_print_label("");
        info_print_count(summary->chunks_unknown, "chunk",
                         " of a kind that this greenprof does not "
                         "know\n");
    }
    if (summary->truncated) {
        info_print_label("cut off");
        printf("the last chunk is not whole\n");
    }
}

static void info_print_threads(const gp_dataset_t *dataset)
{
    printf("\n  threads:     tid       cpu     start       end  name\n");
    for (size_t i = 0; i < dataset->facts.threads.count; i++) {
        const gp_thread_record_t *thread = &dataset->facts.threads.items[i];
        printf("          %8" PRIu32, thread->tid);
        gp_print_seconds(thread->cpu_ns, 10);
        gp_print_seconds(thread->start_ns, 10);
        if (thread->end_ns != 0)
            gp_print_seconds(thread->end_ns, 10);
        else
            printf("%10s", "-");
        printf("  ");
        gp_print_text(thread->name);
        printf("\n");
    }
}

static void info_print_modules(const gp_dataset_t *dataset)
{
    printf("\n  modules:  build-id                                  path\n");
    for (size_t i = 0; i < dataset->facts.modules.count; i++) {
        const gp_module_info_t *module = &dataset->facts.modules.items[i];
        char id[2 * sizeof(module->build_id) + 1] = "-";
        for (size_t j = 0; j < module->build_id_len && j < sizeof(module->build_id); j++)
            snprintf(id + 2 * j, 3, "%02x", module->build_id[j]);
        printf("            %-40s  ", id);
        gp_print_text(module->path);
        printf("\n");
    }
}

static void info_print_dataset(const gp_dataset_t *dataset, const gp_arguments_t *arguments)
{
    info_print_process(dataset);
    info_print_times(dataset);
    info_print_end(dataset);
    info_print_sampling(dataset);
    info_print_audit(dataset);
    info_print_own_cost(dataset);
    gp_report_print_budget(dataset);
    info_print_contents(dataset);
    info_print_polled(dataset);
    info_print_found(dataset);
    info_print_losses(dataset);
    info_print_file(dataset);
    if (arguments->verbose) {
        info_print_threads(dataset);
        info_print_modules(dataset);
    }
}

static void info_print_named(const char *path, const gp_dataset_t *dataset, const gp_arguments_t *arguments,
                             bool is_next)
{
    if (is_next)
        printf("\n");
    gp_print_text(path);
    printf("\n");
    info_print_dataset(dataset, arguments);
}

static gp_dataset_t *info_load(const char *path, char error[GP_READER_ERROR_SIZE])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        strcpy(error, strerror(errno));
        return NULL;
    }
    gp_progress_begin("reading", path, fd);
    gp_dataset_t *dataset = gp_dataset_load_fd(fd, GP_KEEP_SPANS, error);
    gp_progress_end();
    close(fd);
    return dataset;
}

int gp_command_info(const gp_arguments_t *arguments)
{
    char error[GP_READER_ERROR_SIZE];
    gp_json_t json = {.out = stdout};
    int status = 0;
    for (int i = 0; i < arguments->operand_count; i++) {
        const char *path = arguments->operands[i];
        gp_dataset_t *dataset = info_load(path, error);
        if (dataset == NULL) {
            status = gp_fail(path, "%s", error);
            continue;
        }
        if (arguments->json)
            gp_info_json(&json, path, dataset);
        else
            info_print_named(path, dataset, arguments, i > 0);
        gp_dataset_free(dataset);
    }
    return status != 0 ? status : gp_finish_stdout();
}
