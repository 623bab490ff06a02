// SPDX-License-Identifier: MIT
#include "info_json.h"

#include "report/losses.h"
#include "report/report_words.h"
#include "report_json.h"
#include "tables.h"

static void info_json_text(gp_json_t *json, const gp_dataset_t *dataset, const char *key, const char *name)
{
    const gp_facts_meta_t *meta = gp_facts_meta(&dataset->facts, key);
    gp_json_key(json, name);
    if (meta != NULL)
        gp_json_text(json, meta->value);
    else
        gp_json_null(json);
}

// The price of a signal is null where it was not measured.
static void info_json_cost(gp_json_t *json, const gp_dataset_t *dataset)
{
    const uint64_t *counters = dataset->facts.counters;
    bool is_measured = counters[GP_COUNTER_DELIVERY_NS] > 0 && counters[GP_COUNTER_SIGNALS] > 0;
    gp_json_key(json, "cost");
    gp_json_open(json, '{');
    gp_json_key_uint(json, "ppm", (uint64_t)(gp_losses_own_share(dataset) * 1e6));
    gp_json_key_uint(json, "threads_ns", dataset->facts.totals.own_cpu_ns);
    gp_json_key_uint(json, "handler_ns", counters[GP_COUNTER_HANDLER_NS]);
    gp_json_key_uint(json, "hooks_ns", counters[GP_COUNTER_HOOK_NS]);
    gp_report_json_known(json, "signals_ns", is_measured, counters[GP_COUNTER_DELIVERY_NS]);
    gp_report_json_known(json, "signal_ns", is_measured,
                         is_measured ? counters[GP_COUNTER_DELIVERY_NS] / counters[GP_COUNTER_SIGNALS] : 0);
    gp_json_close(json, '}');
}

static void info_json_counters(gp_json_t *json, const gp_dataset_t *dataset)
{
    gp_json_key(json, "counters");
    gp_json_open(json, '{');
    for (uint32_t i = 0; i < GP_COUNTER_COUNT; i++)
        if (gp_counter_name(i) != NULL && dataset->facts.counters[i] > 0)
            gp_json_key_uint(json, gp_counter_name(i), dataset->facts.counters[i]);
    gp_json_close(json, '}');
}

static void info_json_contents(gp_json_t *json, const gp_dataset_t *dataset)
{
    size_t coros = 0;
    for (size_t i = 0; i < dataset->facts.coros.count; i++)
        coros += dataset->facts.coros.items[i].record.kind != GP_CORO_THREAD;
    gp_json_key_uint(json, "samples", dataset->samples);
    gp_json_key_uint(json, "stacks", dataset->facts.stacks.count - 1); // number 0 is "no stack"
    gp_json_key_uint(json, "coroutines", coros);
    gp_json_key_uint(json, "traces", dataset->facts.traces.count - 1);
    gp_json_key_uint(json, "spans", dataset->spans.count);
    gp_json_key_uint(json, "threads", dataset->facts.threads.count);
    gp_json_key_uint(json, "modules", dataset->facts.modules.count);
    gp_json_key_uint(json, "bytes", dataset->summary.bytes);
    gp_json_key(json, "damaged");
    gp_json_bool(json,
                 dataset->summary.chunks_damaged + dataset->summary.chunks_missing + dataset->summary.records_bad > 0);
    gp_json_key(json, "ended");
    gp_json_bool(json, dataset->summary.ended);
}

void gp_info_json(gp_json_t *json, const char *path, const gp_dataset_t *dataset)
{
    const gp_file_header_t *header = &dataset->facts.header;
    uint64_t ledger_ns = 0;
    for (size_t i = 0; i < dataset->shares.count; i++)
        ledger_ns += dataset->shares.items[i].ledger.cpu_ns;
    gp_json_open(json, '{');
    gp_json_key_uint(json, "version", GP_REPORT_JSON_VERSION);
    gp_json_key_text(json, "file", path);
    gp_json_key_text(json, "program", dataset->facts.exe);
    gp_report_json_known(json, "pid", header->pid != 0, header->pid);
    info_json_text(json, dataset, "hostname", "host");
    info_json_text(json, dataset, "greenprof", "greenprof");
    gp_json_key(json, "started");
    gp_json_seconds(json, header->start_realtime_ns);
    gp_json_key_uint(json, "duration_ns", dataset->facts.end_ns);
    gp_json_key_uint(json, "frequency_hz", header->frequency_hz);
    gp_json_key_text(json, "engine", gp_report_engine_name(header->engine));
    info_json_text(json, dataset, "budget", "budget");
    gp_json_key_uint(json, "cpu_ns", dataset->facts.totals.process_cpu_ns);
    gp_json_key_uint(json, "ledger_ns", ledger_ns);
    gp_json_key_uint(json, "sampled_ns", dataset->sampled_ns);
    info_json_contents(json, dataset);
    info_json_cost(json, dataset);
    info_json_counters(json, dataset);
    gp_json_close(json, '}');
    fputc('\n', json->out);
    json->comma = false; // an object a line
}
