// SPDX-License-Identifier: MIT
// Findings in words, as JSON, and as an exit status.
#include "verdict.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "explain_conditions.h"
#include "explain_junit.h"
#include "export/verdict_text.h"
#include "export/write/json_text.h"
#include "live/control.h"
#include "message.h"
#include "print.h"

enum { EXIT_FOUND = 3, JSON_VERSION = 1 };

static const char *const rank_names[] = {[GP_FINDING_CAVEAT] = "caveat",
                                         [GP_FINDING_FAULT] = "finding",
                                         [GP_FINDING_MACHINE] = "machine",
                                         [GP_FINDING_NOTE] = "note"};

static void verdict_print_totals(const gp_input_t *source, const gp_findings_t *findings)
{
    const gp_dataset_t *dataset = source->dataset;
    gp_print_text(dataset->facts.exe[0] != '\0' ? dataset->facts.exe : source->path);
    printf(": ");
    gp_print_seconds(dataset->facts.end_ns, 0);
    printf(" s, of it CPU time ");
    gp_print_seconds(gp_dataset_exact_ns(dataset), 0);
    printf(" s");
    if (findings->requests > 0) {
        printf("; %zu request%s, p99 ", findings->requests, findings->requests == 1 ? "" : "s");
        gp_print_ms(findings->p99_ns, 0);
        printf(" ms");
    }
    if (findings->victim_ns > 0) {
        printf("; others waited ");
        gp_print_seconds(findings->victim_ns, 0);
        printf(" s for long slices");
    }
    printf("\n");
}

static size_t verdict_columns(void)
{
    size_t columns = gp_print_columns();
    return columns > 0 && columns < GP_VERDICT_COLUMNS ? columns : GP_VERDICT_COLUMNS;
}

static void verdict_print(const gp_input_t *source, const gp_findings_t *findings)
{
    verdict_print_totals(source, findings);
    gp_verdict_write(stdout, findings, source->path, verdict_columns());
}

static void verdict_json_finding(gp_json_t *json, const gp_finding_t *finding, const char *path)
{
    char command[1024];
    gp_json_open(json, '{');
    gp_json_key_text(json, "kind", finding->kind);
    gp_json_key_text(json, "rank", rank_names[finding->rank]);
    gp_json_key_text(json, "sentence", finding->sentence);
    gp_json_key_uint(json, "cost_ns", finding->cost_ns);
    gp_json_key_uint(json, "times", finding->times);
    gp_json_key_text(json, "function", finding->function);
    gp_json_key_text(json, "file", finding->file);
    gp_json_key_uint(json, "line", finding->line);
    gp_json_key_text(json, "hurt", finding->hurt);
    gp_json_key_text(json, "sure", finding->sure);
    gp_json_key_text(json, "command", gp_verdict_command(finding, path, command, sizeof(command)));
    gp_json_close(json, '}');
    gp_json_line(json);
}

// The unknown is null.
static void verdict_json_known(gp_json_t *json, const char *key, bool is_known, uint64_t value)
{
    gp_json_key(json, key);
    if (is_known)
        gp_json_uint(json, value);
    else
        gp_json_null(json);
}

static void verdict_print_json(const gp_input_t *source, const gp_findings_t *findings)
{
    gp_json_t json = {.out = stdout};
    gp_json_open(&json, '{');
    gp_json_key_uint(&json, "version", JSON_VERSION);
    gp_json_key_text(&json, "file", source->path);
    gp_json_key_text(&json, "program", source->dataset->facts.exe);
    gp_json_key_uint(&json, "duration_ns", source->dataset->facts.end_ns);
    gp_json_key_uint(&json, "requests", findings->requests);
    verdict_json_known(&json, "p99_ns", findings->requests > 0, findings->p99_ns);
    verdict_json_known(&json, "victim_ns", findings->is_victim_known, findings->victim_ns);
    gp_json_key(&json, "findings");
    gp_json_open(&json, '[');
    gp_json_line(&json);
    for (size_t i = 0; i < findings->count; i++)
        verdict_json_finding(&json, &findings->items[i], source->path);
    gp_json_close(&json, ']');
    gp_json_close(&json, '}');
    printf("\n");
}

gp_findings_t *gp_explain_source(const gp_input_t *source, const char *trace)
{
    prof_trace_id_t id;
    uint32_t number =
        trace != NULL && prof_trace_parse(trace, &id) == 0 ? gp_dataset_trace_find(source->dataset, id.bytes) : 0;
    return gp_explain(source->dataset, source->symbolizer, number != GP_INDEX_NONE ? number : 0);
}

void gp_explain_print_first(const gp_input_t *source)
{
    char text[GP_VERDICT_SENTENCE + 64];
    if (source->choice[0] != '\0')
        return;
    gp_findings_t *findings = gp_explain_beside(source->dataset, &source->options, source->symbolizer);
    const gp_finding_t *first = findings != NULL ? gp_verdict_first(findings) : NULL;
    if (first != NULL) {
        gp_verdict_sentence(first, text);
        strcat(text, " 'greenprof explain' has more");
        printf("  verdict    ");
        gp_verdict_wrap(stdout, text, 13, verdict_columns());
        printf("\n");
    }
    gp_findings_free(findings);
}

// Returns 0, EXIT_FOUND where a condition holds, or EXIT_FAILED with a message.
static int verdict_judge(const gp_input_t *source, const gp_arguments_t *arguments, const gp_findings_t *findings)
{
    gp_condition_outcome_t outcomes[GP_CONDITIONS_MAX];
    const char *conditions = arguments->fail_on != NULL ? arguments->fail_on : "findings>0";
    size_t count = gp_explain_conditions(conditions, findings, outcomes);
    int status = 0;
    for (size_t i = 0; i < count && arguments->fail_on != NULL; i++) {
        if (outcomes[i].why[0] == '\0')
            continue;
        gp_fail(source->path, "--fail-on %s: %s", outcomes[i].text, outcomes[i].why);
        status = !outcomes[i].is_known ? EXIT_FAILED : status == 0 ? EXIT_FOUND : status;
    }
    if (arguments->junit != NULL && gp_explain_junit(arguments->junit, source->path, findings, outcomes, count) != 0)
        status = EXIT_FAILED;
    return status;
}

static int verdict_tell(const gp_input_t *source, const gp_arguments_t *arguments, const char *trace)
{
    gp_findings_t *findings = gp_explain_source(source, trace);
    if (findings == NULL)
        return gp_input_fail(source, errno);
    if (arguments->json)
        verdict_print_json(source, findings);
    else
        verdict_print(source, findings);
    int status =
        arguments->fail_on != NULL || arguments->junit != NULL ? verdict_judge(source, arguments, findings) : 0;
    gp_findings_free(findings);
    return gp_finish_stdout() != 0 ? EXIT_FAILED : status;
}

static int verdict_file(const gp_arguments_t *arguments, char *path)
{
    gp_arguments_t changed = *arguments;
    char *operands[] = {path, NULL}, *trace = arguments->operand_count > 1 ? arguments->operands[1] : NULL;
    const char *traces[] = {trace};
    gp_input_t source;
    changed.operands = operands;
    changed.operand_count = 1;
    if (trace != NULL)
        changed.choice.traces = (gp_texts_t){traces, 1};
    int status = gp_input_open(&source, &changed, 0);
    if (status != 0)
        return status;
    status = verdict_tell(&source, arguments, trace);
    gp_input_warn_changed(&source);
    gp_input_close(&source);
    return status;
}

int gp_command_explain(const gp_arguments_t *arguments)
{
    char path[GP_CONTROL_PATH_SIZE];
    int fd = -1;
    int status = arguments->fail_on != NULL ? gp_explain_conditions_check(arguments->fail_on) : 0;
    if (status != 0)
        return status;
    if (!gp_control_is_process(arguments->operands[0]))
        return verdict_file(arguments, arguments->operands[0]);
    status = gp_control_open_capture(arguments, path, &fd);
    if (status == 0)
        status = verdict_file(arguments, path);
    if (fd >= 0)
        close(fd);
    return status;
}
