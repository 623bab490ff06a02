// SPDX-License-Identifier: MIT
#include "report/explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/explain_parts.h"

gp_finding_t *gp_explain_add(gp_explaining_t *explaining, const char *kind, uint64_t cost_ns)
{
    gp_findings_t *findings = explaining->findings;
    if (findings->count == GP_FINDINGS_MAX)
        return NULL;
    gp_finding_t *finding = &findings->items[findings->count++];
    *finding = (gp_finding_t){.kind = kind, .rank = GP_FINDING_FAULT, .cost_ns = cost_ns};
    return finding;
}

const char *gp_explain_time(uint64_t ns, char text[32])
{
    uint64_t hundredths = (ns + 5000000) / 10000000, tenths = (ns + 50000) / 100000; // whatever the locale's point
    if (ns >= 1000000000)
        snprintf(text, 32, "%" PRIu64 ".%02u s", hundredths / 100, (unsigned)(hundredths % 100));
    else
        snprintf(text, 32, "%" PRIu64 ".%u ms", tenths / 10, (unsigned)(tenths % 10));
    return text;
}

// --- where a path is in the program's own code

static bool explain_begins(const char *text, const char *const *beginnings, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (strncmp(text, beginnings[i], strlen(beginnings[i])) == 0)
            return true;
    return false;
}

// Libraries of the system and of the language are called by what is wrong, and are not it.
static bool explain_is_own(const gp_symbol_t *symbol, bool is_pseudo)
{
    static const char *const places[] = {"/usr/lib", "/lib", "/usr/include", "<frozen", "linux-vdso", "[vdso]"};
    static const char *const names[] = {"std::", "boost::", "__gnu_cxx::", "folly::", "_start", "__libc_start"};
    static const char *const parts[] = {"/site-packages/", "/dist-packages/", "/lib/python3"};
    if (is_pseudo || explain_begins(symbol->module, places, sizeof(places) / sizeof(places[0])) ||
        explain_begins(symbol->file, places, sizeof(places) / sizeof(places[0])) ||
        explain_begins(symbol->function, names, sizeof(names) / sizeof(names[0])))
        return false;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(symbol->file, parts[i]) != NULL)
            return false;
    return true;
}

static void explain_take_symbol(gp_finding_t *finding, const gp_symbol_t *symbol)
{
    bool has_source = strcmp(symbol->file, symbol->module) != 0 && symbol->line != 0;
    snprintf(finding->function, sizeof(finding->function), "%s", symbol->function);
    snprintf(finding->file, sizeof(finding->file), "%s", symbol->file);
    finding->line = has_source ? symbol->line : 0;
}

uint32_t gp_explain_place(const gp_explaining_t *explaining, const gp_loc_t *path, uint32_t depth,
                          gp_finding_t *finding)
{
    gp_namer_t namer = {.facts = &explaining->dataset->facts, .symbolizer = explaining->symbolizer};
    gp_name_t name;
    for (uint32_t i = depth; i-- > 0;) {
        if (gp_facts_name(&namer, path[i], &name) < 0)
            continue;
        const gp_symbol_t *symbol = name.symbol; // what is inlined there comes first
        while (symbol->outer != NULL && !explain_is_own(symbol, name.is_pseudo))
            symbol = symbol->outer;
        bool is_own = explain_is_own(symbol, name.is_pseudo);
        if (is_own || (finding->function[0] == '\0' && !name.is_pseudo))
            explain_take_symbol(finding, symbol);
        if (is_own)
            return i;
    }
    return UINT32_MAX;
}

void gp_explain_place_of(const gp_explaining_t *explaining, const gp_facts_stack_t *stack, uint32_t less,
                         gp_finding_t *finding)
{
    uint32_t depth = stack->depth > less ? stack->depth - less : 0;
    gp_loc_t *path = depth > 0 ? malloc(depth * sizeof(*path)) : NULL;
    if (path == NULL)
        return;
    for (uint32_t i = 0; i < depth; i++)
        path[i] = stack->frames[stack->depth - 1 - i];
    gp_explain_place(explaining, path, depth, finding);
    free(path);
}

void gp_explain_about(gp_finding_t *finding, const gp_finding_t *code)
{
    memcpy(finding->function, code->function, sizeof(finding->function));
    memcpy(finding->file, code->file, sizeof(finding->file));
    finding->line = code->line;
}

const char *gp_explain_code(const gp_finding_t *finding, char *text, size_t size)
{
    const char *slash = strrchr(finding->file, '/'), *file = slash != NULL ? slash + 1 : finding->file;
    if (finding->line != 0)
        snprintf(text, size, "%s (%s:%u)", finding->function, file, (unsigned)finding->line);
    else if (finding->file[0] != '\0')
        snprintf(text, size, "%s (in %s)", finding->function, file);
    else
        snprintf(text, size, "%s", finding->function[0] != '\0' ? finding->function : "code without samples");
    return text;
}

// --- one reading for all

// "libz.so.1+0x1234" is all there is to say of it.
static bool explain_is_nameless(const gp_symbol_t *symbol)
{
    const char *slash = strrchr(symbol->module, '/'), *base = slash != NULL ? slash + 1 : symbol->module;
    size_t length = strlen(base);
    return length > 0 && strncmp(symbol->function, base, length) == 0 &&
           strncmp(symbol->function + length, "+0x", strlen("+0x")) == 0;
}

static int explain_take_samples(void *context, const gp_sample_record_t *samples, size_t count)
{
    gp_explaining_t *explaining = context;
    gp_namer_t namer = {.facts = &explaining->dataset->facts, .symbolizer = explaining->symbolizer};
    gp_name_t name;
    for (size_t i = 0; i < count; i++) {
        if (samples[i].kind != GP_KIND_CPU || !gp_dataset_has_sample(explaining->dataset, &samples[i]))
            continue;
        explaining->cpu_ns += samples[i].weight_ns;
        uint32_t stack = gp_dataset_stack_find(explaining->dataset, samples[i].stack_id);
        if (stack != GP_INDEX_NONE)
            explaining->stack_ns[stack] += samples[i].weight_ns;
        if (samples[i].time_ns < explaining->first_request_ns)
            explaining->early_cpu_ns += samples[i].weight_ns;
        const gp_facts_stack_t *at = stack != GP_INDEX_NONE ? &explaining->dataset->facts.stacks.items[stack] : NULL;
        if (at == NULL || at->depth == 0 || gp_facts_name(&namer, at->frames[0], &name) < 0 || name.is_pseudo)
            continue;
        if (!explain_is_nameless(name.symbol))
            continue;
        explaining->nameless_ns += samples[i].weight_ns;
        explaining->nameless_module = name.symbol->module;
    }
    return 0;
}

static int explain_by_latency(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

// Nearest rank.
static int explain_sum_up_requests(gp_explaining_t *explaining)
{
    const gp_requests_t *requests = explaining->requests;
    uint64_t *latencies = calloc(requests->count + 1, sizeof(*latencies));
    if (latencies == NULL)
        return -ENOMEM;
    for (size_t i = 0; i < requests->count; i++) {
        const gp_request_t *request = &requests->items[i];
        latencies[i] = request->end_ns - request->start_ns;
        explaining->latency_ns += explaining->trace == 0 || request->trace == explaining->trace ? latencies[i] : 0;
        if (request->start_ns < explaining->first_request_ns)
            explaining->first_request_ns = request->start_ns;
    }
    qsort(latencies, requests->count, sizeof(*latencies), explain_by_latency);
    if (requests->count > 0)
        explaining->findings->p99_ns = latencies[(requests->count * 99 + 99) / 100 - 1];
    explaining->findings->requests = requests->count;
    free(latencies);
    return 0;
}

static int explain_begin_parts(gp_explaining_t *explaining, gp_reading_t *reading)
{
    static const gp_reader_handlers_t handlers = {.samples = explain_take_samples};
    explaining->findings = calloc(1, sizeof(*explaining->findings));
    explaining->stack_ns = calloc(explaining->dataset->facts.stacks.count + 1, sizeof(*explaining->stack_ns));
    if (explaining->findings == NULL || explaining->stack_ns == NULL)
        return -ENOMEM;
    explaining->findings->items = calloc(GP_FINDINGS_MAX, sizeof(*explaining->findings->items));
    explaining->requests = gp_requests_create(explaining->dataset, false);
    if (explaining->findings->items == NULL || explaining->requests == NULL)
        return -ENOMEM;
    int result = explain_sum_up_requests(explaining);
    if (result == 0)
        result = gp_long_slices_begin(&explaining->slices, explaining->dataset, explaining->symbolizer,
                                      explaining->trace, reading);
    if (result == 0)
        gp_reading_add(reading, &handlers, explaining);
    return result;
}

// The findings stay. NULL is allowed.
static void explain_free(gp_explaining_t *explaining)
{
    if (explaining == NULL)
        return;
    gp_long_slices_free(&explaining->slices);
    gp_requests_free(explaining->requests);
    free(explaining->stack_ns);
    free(explaining);
}

gp_explaining_t *gp_explain_begin(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, uint32_t trace,
                                  gp_reading_t *reading)
{
    gp_explaining_t *explaining = calloc(1, sizeof(*explaining));
    size_t takers = reading->count;
    if (explaining != NULL)
        *explaining = (gp_explaining_t){
            .dataset = dataset, .symbolizer = symbolizer, .trace = trace, .first_request_ns = UINT64_MAX};
    int result = explaining != NULL ? explain_begin_parts(explaining, reading) : -ENOMEM;
    if (result == 0)
        return explaining;
    reading->count = takers; // none of them is there any more
    gp_findings_free(explaining != NULL ? explaining->findings : NULL);
    explain_free(explaining);
    errno = -result;
    return NULL;
}

static int explain_by_cost(const void *left, const void *right)
{
    const gp_finding_t *a = left, *b = right;
    if (a->rank != b->rank)
        return a->rank < b->rank ? -1 : 1;
    if (a->cost_ns != b->cost_ns)
        return a->cost_ns > b->cost_ns ? -1 : 1;
    return strcmp(a->sentence, b->sentence);
}

gp_findings_t *gp_explain_end(gp_explaining_t *explaining, int result)
{
    static int (*const parts[])(gp_explaining_t *) = {
        gp_explain_deadlocks, gp_explain_losses, gp_explain_slices, gp_explain_machine, gp_explain_spans,
        gp_explain_pools,     gp_explain_growth, gp_explain_start,  gp_explain_hot,     gp_explain_locks};
    gp_findings_t *findings = explaining->findings;
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]) && result == 0; i++)
        result = parts[i](explaining);
    explain_free(explaining);
    if (result == 0) {
        qsort(findings->items, findings->count, sizeof(*findings->items), explain_by_cost);
        return findings;
    }
    gp_findings_free(findings);
    errno = -result;
    return NULL;
}

gp_findings_t *gp_explain(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, uint32_t trace)
{
    gp_reading_t reading = {.count = 0};
    gp_explaining_t *explaining = gp_explain_begin(dataset, symbolizer, trace, &reading);
    return explaining != NULL ? gp_explain_end(explaining, gp_dataset_read(dataset, &reading)) : NULL;
}

uint32_t gp_explain_trace_beside(const gp_dataset_t *dataset, const gp_report_options_t *options)
{
    const gp_selection_t *selection = &options->selection;
    uint32_t found = 0;
    if (dataset->samples_read + dataset->activities_read > GP_EXPLAIN_UNASKED_MOST || dataset->windowed ||
        selection->coros != NULL || selection->threads != NULL ||
        options->stacks.focus_count + options->stacks.ignore_count > 0)
        return GP_INDEX_NONE;
    for (uint32_t i = 0; selection->traces != NULL && i < dataset->facts.traces.count; i++) {
        if (selection->traces[i] && found != 0)
            return GP_INDEX_NONE;
        found = selection->traces[i] ? i : found;
    }
    return selection->traces != NULL && found == 0 ? GP_INDEX_NONE : found;
}

gp_findings_t *gp_explain_beside(const gp_dataset_t *dataset, const gp_report_options_t *options,
                                 gp_symbolizer_t *symbolizer)
{
    uint32_t trace = gp_explain_trace_beside(dataset, options);
    return trace == GP_INDEX_NONE ? NULL : gp_explain(dataset, symbolizer, trace);
}

void gp_findings_free(gp_findings_t *findings)
{
    if (findings != NULL)
        free(findings->items);
    free(findings);
}
