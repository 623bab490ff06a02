// SPDX-License-Identifier: MIT
// The header of a page's data: what the profile is, its texts, and where the columns are.
#include <greenprof/prof.h>

#include <inttypes.h>
#include <stdio.h>

#include "export/write/endpoint_json.h"
#include "page/page.h"
#include "report/explain_words.h"
#include "report/losses.h"
#include "report/report_words.h"

static void header_put_texts(gp_json_t *json, const char *key, const gp_string_table_t *table)
{
    gp_json_key(json, key);
    gp_json_open(json, '[');
    for (size_t i = 0; i < table->count; i++)
        gp_json_text(json, table->texts[i]);
    gp_json_close(json, ']');
}

static void header_put_totals(const gp_page_writer_t *writer, gp_json_t *json)
{
    const gp_report_t *report = writer->report;
    double error_ns = 1.96 * gp_root_of(report->variance_ns2); // 95 %
    gp_json_key(json, "totals");
    gp_json_open(json, '{');
    gp_json_key_uint(json, "cpu_ns", report->cpu_ns);
    gp_json_key_uint(json, "sampled_ns", report->sampled_ns);
    gp_json_key_uint(json, "error_ns", error_ns < 0x1p53 ? (uint64_t)error_ns : 0);
    gp_json_key_uint(json, "samples", report->samples);
    gp_json_key_uint(json, "total_ns", report->total_ns);
    gp_json_key_text(json, "basis", gp_basis_name(report->basis));
    gp_json_key_uint(json, "own_ppm", (uint64_t)(report->own_share * 1e6));
    gp_json_key(json, "exact_calls");
    gp_json_bool(json, report->exact_rows);
    gp_json_close(json, '}');
}

static void header_put_sides(const gp_page_writer_t *writer, gp_json_t *json)
{
    gp_json_key(json, "sides");
    gp_json_open(json, '[');
    for (size_t i = 0; i < writer->side_count; i++) {
        const gp_report_t *side = writer->sides[i];
        gp_json_open(json, '{');
        gp_json_key_text(json, "file", side->source != NULL ? side->source : side->title);
        gp_json_key_uint(json, "total_ns", side->total_ns);
        gp_json_key_uint(json, "samples", side->samples);
        gp_json_key_uint(json, "duration_ns", side->duration_ns);
        gp_json_key(json, "per");
        gp_json_open(json, '[');
        gp_json_uint(json, side->per[0]);
        gp_json_uint(json, side->per[1]);
        gp_json_close(json, ']');
        gp_json_close(json, '}');
    }
    gp_json_close(json, ']');
}

static void header_put_counters(const gp_report_t *report, gp_json_t *json)
{
    gp_json_key(json, "counters");
    gp_json_open(json, '[');
    for (uint32_t i = 0; i < report->counter_count; i++) {
        if (report->counters[i] == 0 || gp_counter_name(i) == NULL)
            continue;
        gp_json_open(json, '[');
        gp_json_text(json, gp_counter_name(i));
        gp_json_uint(json, report->counters[i]);
        gp_json_text(json, gp_counter_meaning(i));
        gp_json_bool(json, gp_losses_are_told(report->counters, report->process_cpu_ns, i));
        gp_json_close(json, ']');
    }
    gp_json_close(json, ']');
}

static void header_put_not_known(const gp_report_t *report, gp_json_t *json)
{
    gp_json_key(json, "not_known");
    gp_json_open(json, '[');
    for (size_t i = 0; report->not_known != NULL && report->not_known[i] != NULL; i++)
        gp_json_text(json, report->not_known[i]);
    gp_json_close(json, ']');
}

static void header_put_endpoints(const gp_page_writer_t *writer, gp_json_t *json)
{
    const gp_requests_t *requests = writer->page != NULL ? writer->page->requests : NULL;
    char text[256];
    gp_json_key(json, "endpoints");
    gp_json_open(json, '[');
    for (size_t i = 0; requests != NULL && i < requests->endpoint_count; i++) {
        const gp_endpoint_t *endpoint = &requests->endpoints[i];
        gp_json_open(json, '{');
        gp_json_key_text(json, "text", gp_endpoint_text(endpoint, text, sizeof(text)));
        gp_json_key_uint(json, "count", endpoint->count);
        gp_endpoint_put_figures(json, endpoint);
        gp_json_close(json, '}');
    }
    gp_json_close(json, ']');
}

static void header_put_heat(const gp_page_writer_t *writer, gp_json_t *json)
{
    gp_json_key(json, "heat");
    if (writer->heat_columns == 0) {
        gp_json_null(json);
        return;
    }
    gp_json_open(json, '{');
    gp_json_key_uint(json, "columns", writer->heat_columns);
    gp_json_key_uint(json, "column_ns", writer->heat_column_ns);
    gp_json_key(json, "edges_ns");
    gp_json_open(json, '[');
    for (size_t i = 0; i <= GP_HEAT_ROWS; i++)
        gp_json_uint(json, gp_heat_edges[i]);
    gp_json_close(json, ']');
    gp_json_close(json, '}');
}

static void header_put_finding(const gp_page_writer_t *writer, const gp_finding_t *finding, gp_json_t *json)
{
    static const char *const ranks[] = {[GP_FINDING_CAVEAT] = "caveat",
                                        [GP_FINDING_FAULT] = "finding",
                                        [GP_FINDING_MACHINE] = "machine",
                                        [GP_FINDING_NOTE] = "note"};
    const char *source = writer->report->source != NULL ? writer->report->source : writer->report->title;
    char text[GP_VERDICT_SENTENCE], command[1024];
    gp_json_open(json, '{');
    gp_json_key_text(json, "rank", ranks[finding->rank]);
    gp_json_key_text(json, "sentence", gp_verdict_sentence(finding, text));
    gp_json_key_text(json, "hurt", finding->hurt);
    gp_json_key_text(json, "sure", finding->sure);
    gp_json_key_text(json, "command", gp_verdict_command(finding, source, command, sizeof(command)));
    gp_json_close(json, '}');
}

static void header_put_verdict(const gp_page_writer_t *writer, gp_json_t *json)
{
    const gp_findings_t *findings = writer->page != NULL && writer->side_count == 1 ? writer->page->findings : NULL;
    gp_json_key(json, "verdict");
    if (findings == NULL) {
        gp_json_null(json);
        return;
    }
    gp_json_open(json, '[');
    for (size_t i = 0; i < findings->count; i++)
        header_put_finding(writer, &findings->items[i], json);
    gp_json_close(json, ']');
}

static void header_put_columns(const gp_page_writer_t *writer, gp_json_t *json)
{
    char name[64], encoding[2] = "";
    gp_json_key(json, "columns");
    gp_json_open(json, '[');
    for (size_t i = 0; i < GP_PAGE_TABLES; i++) {
        for (size_t j = 0; j < writer->tables[i].count; j++) {
            const gp_column_t *column = &writer->tables[i].columns[j];
            snprintf(name, sizeof(name), "%s.%s", column->table, writer->tables[i].names[j]);
            encoding[0] = column->encoding;
            gp_json_open(json, '[');
            gp_json_text(json, name);
            gp_json_text(json, encoding);
            gp_json_uint(json, column->count);
            gp_json_uint(json, column->bytes.len);
            gp_json_close(json, ']');
        }
    }
    gp_json_close(json, ']');
}

static const char *header_first_weight(const gp_page_writer_t *writer)
{
    static const char *const weights[] = {[GP_MEASURE_CPU] = "cpu",
                                          [GP_MEASURE_WALL] = "wall",
                                          [GP_MEASURE_DELAY] = "delay",
                                          [GP_MEASURE_LATENCY] = "path"};
    return weights[writer->page != NULL ? writer->page->first_measure : writer->report->measure];
}

static void header_put_facts(const gp_page_writer_t *writer, gp_json_t *json)
{
    const gp_report_t *report = writer->report;
    const gp_coarseness_t *coarse = &writer->rows.coarse;
    bool ticks = writer->page != NULL && writer->side_count == 1 && !coarse->no_ticks;
    char start[24], made_by[32];
    snprintf(start, sizeof(start), "%" PRIu64, report->start_realtime_ns);
    gp_json_key_uint(json, "version", 1);
    gp_json_key_text(json, "title", report->title);
    gp_json_key_text(json, "command", report->command != NULL ? report->command : "prof_dump(\"html\")");
    snprintf(made_by, sizeof(made_by), "greenprof %d.%d", PROF_VERSION_MAJOR, PROF_VERSION_MINOR);
    gp_json_key_text(json, "made_by", made_by);
    gp_json_key_uint(json, "duration_ns", report->duration_ns);
    gp_json_key_text(json, "start_realtime_ns", start);
    gp_json_key_uint(json, "frequency_hz", report->frequency_hz);
    gp_json_key_uint(json, "tick_ns", ticks ? writer->page->tick_ns << coarse->tick_shift : 0);
    gp_json_key_text(json, "weight", header_first_weight(writer));
    gp_json_key_text(json, "unit", report->unit != NULL ? report->unit : "");
    gp_json_key_text(json, "root", report->root_by != NULL ? report->root_by : "");
    gp_json_key(json, "delays_known");
    gp_json_bool(json, writer->page == NULL || writer->page->delays == NULL || !writer->page->delays->is_unknown);
}

void gp_page_header(const gp_page_writer_t *writer, gp_json_t *json)
{
    static const char *const states[] = {"running", "preempted", "parked", "ready", "waiting",
                                         "blocked", "gil",       "lock",   "queued"};
    gp_json_open(json, '{');
    header_put_facts(writer, json);
    gp_json_key(json, "states");
    gp_json_open(json, '[');
    for (size_t i = 0; i < GP_KIND_COUNT; i++)
        gp_json_text(json, states[i]);
    gp_json_close(json, ']');
    header_put_totals(writer, json);
    header_put_sides(writer, json);
    header_put_counters(writer->report, json);
    header_put_not_known(writer->report, json);
    gp_json_key(json, "notes");
    gp_json_open(json, '[');
    for (size_t i = 0; i < writer->note_count; i++)
        gp_json_text(json, writer->notes[i]);
    gp_json_close(json, ']');
    header_put_texts(json, "names", &writer->nodes.names);
    header_put_texts(json, "files", &writer->nodes.files);
    header_put_texts(json, "modules", &writer->nodes.modules);
    header_put_texts(json, "threads", &writer->threads);
    header_put_texts(json, "traces", &writer->traces);
    header_put_texts(json, "coroutines", &writer->coro_names);
    header_put_endpoints(writer, json);
    header_put_heat(writer, json);
    header_put_verdict(writer, json);
    gp_json_key(json, "sources");
    gp_json_open(json, '[');
    gp_page_sources(writer, json);
    gp_json_close(json, ']');
    header_put_columns(writer, json);
    gp_json_close(json, '}');
}
