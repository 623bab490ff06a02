// SPDX-License-Identifier: MIT
// Where time went that no code below is to blame for: the machine, the start, and the CPU.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/explain_parts.h"

enum { LEAST_NS = 100000000, STARVED_PERCENT = 25, START_PERCENT = 30, HOT_PERCENT = 40, BUSY_PERCENT = 50 };

// Threads and coroutines could run, and others ran: other processes, or a limit of the cgroup.
int gp_explain_machine(gp_explaining_t *explaining)
{
    const gp_dataset_t *dataset = explaining->dataset;
    uint64_t preempted_ns = 0, cpu_ns = 0;
    char lost[32], wanted[32];
    for (size_t i = 0; i < dataset->shares.count; i++) {
        const gp_dataset_share_t *share = &dataset->shares.items[i];
        if (explaining->trace != 0 && share->trace != explaining->trace)
            continue;
        preempted_ns += gp_ledger_kind_ns(&share->ledger, GP_KIND_PREEMPTED);
        cpu_ns += share->ledger.cpu_ns;
    }
    uint64_t wanted_ns = preempted_ns + cpu_ns;
    gp_finding_t *finding = preempted_ns >= LEAST_NS && preempted_ns >= wanted_ns / 100 * STARVED_PERCENT
                                ? gp_explain_add(explaining, "starved", preempted_ns)
                                : NULL;
    if (finding == NULL)
        return 0;
    finding->rank = GP_FINDING_MACHINE;
    snprintf(
        finding->sentence, sizeof(finding->sentence),
        "the machine gave it too little CPU: for %s of the %s that it could run it did not get a processor (%.0f %%)",
        gp_explain_time(preempted_ns, lost), gp_explain_time(wanted_ns, wanted),
        (double)preempted_ns * 100 / (double)wanted_ns);
    snprintf(finding->hurt, sizeof(finding->hurt), "all of it");
    snprintf(
        finding->sure, sizeof(finding->sure),
        "by the kernel's clocks; whether other processes, a limit or its own threads had the processors is not known");
    snprintf(finding->show, sizeof(finding->show), "report --by coroutine --clock wall --sort preempted");
    return 0;
}

// Before the first request: in a short run it hides what serving takes.
int gp_explain_start(gp_explaining_t *explaining)
{
    char early[32], all[32];
    bool is_much = explaining->first_request_ns != UINT64_MAX && explaining->early_cpu_ns >= LEAST_NS &&
                   explaining->early_cpu_ns >= explaining->cpu_ns / 100 * START_PERCENT;
    gp_finding_t *finding = is_much ? gp_explain_add(explaining, "start-up", explaining->early_cpu_ns) : NULL;
    if (finding == NULL)
        return 0;
    finding->rank = GP_FINDING_NOTE;
    snprintf(finding->sentence, sizeof(finding->sentence),
             "%s of the %s of CPU time is start-up, before the first request: what serving takes is behind it",
             gp_explain_time(explaining->early_cpu_ns, early), gp_explain_time(explaining->cpu_ns, all));
    uint64_t from_ms = (explaining->first_request_ns + 500000) / 1000000;
    snprintf(finding->show, sizeof(finding->show), "report --from %" PRIu64 ".%03u", from_ms / 1000,
             (unsigned)(from_ms % 1000));
    return 0;
}

typedef struct hot_code {
    gp_finding_t code;
    uint64_t ns;
} hot_code_t;

static int explain_time_by_name(const void *left, const void *right)
{
    const gp_finding_t *a = &((const hot_code_t *)left)->code, *b = &((const hot_code_t *)right)->code;
    int order = strcmp(a->function, b->function);
    return order != 0 ? order : strcmp(a->file, b->file);
}

static void explain_time_root_first(const gp_facts_stack_t *stack, gp_loc_t *path)
{
    for (uint32_t i = 0; i < stack->depth; i++)
        path[i] = stack->frames[stack->depth - 1 - i];
}

// The heaviest stacks are enough: what has nearly half of all time has some of these.
static size_t explain_time_gather(const gp_explaining_t *explaining, hot_code_t *codes, size_t room)
{
    const gp_facts_t *facts = &explaining->dataset->facts;
    uint64_t least_ns = explaining->cpu_ns / room;
    size_t count = 0;
    for (size_t i = 1; i < facts->stacks.count && count < room; i++) {
        if (explaining->stack_ns[i] <= least_ns)
            continue;
        const gp_facts_stack_t *stack = &facts->stacks.items[i];
        gp_loc_t *path = malloc(((size_t)stack->depth + 1) * sizeof(*path));
        if (path == NULL)
            break;
        explain_time_root_first(stack, path);
        codes[count] = (hot_code_t){.ns = explaining->stack_ns[i]};
        gp_explain_place(explaining, path, stack->depth, &codes[count].code);
        free(path);
        count++;
    }
    return count;
}

static const hot_code_t *explain_time_hottest(hot_code_t *codes, size_t count)
{
    hot_code_t *hottest = NULL, *sum = NULL;
    qsort(codes, count, sizeof(*codes), explain_time_by_name);
    for (size_t i = 0; i < count; i++) {
        if (sum == NULL || explain_time_by_name(sum, &codes[i]) != 0)
            sum = &codes[i];
        else
            sum->ns += codes[i].ns;
        if (hottest == NULL || sum->ns > hottest->ns)
            hottest = sum;
    }
    return hottest;
}

int gp_explain_hot(gp_explaining_t *explaining)
{
    enum { CODES = 1000 };
    char code[384], time[32];
    bool is_busy =
        explaining->cpu_ns >= LEAST_NS && explaining->cpu_ns >= explaining->dataset->facts.end_ns / 100 * BUSY_PERCENT;
    hot_code_t *codes = is_busy ? calloc(CODES, sizeof(*codes)) : NULL;
    if (codes == NULL)
        return is_busy ? -ENOMEM : 0;
    const hot_code_t *hottest = explain_time_hottest(codes, explain_time_gather(explaining, codes, CODES));
    gp_finding_t *finding = hottest != NULL && hottest->ns >= explaining->cpu_ns / 100 * HOT_PERCENT
                                ? gp_explain_add(explaining, "hot-code", hottest->ns)
                                : NULL;
    if (finding != NULL) {
        gp_explain_about(finding, &hottest->code);
        finding->rank = GP_FINDING_NOTE;
        snprintf(finding->sentence, sizeof(finding->sentence),
                 "%s and what it calls took %s of CPU time, %.0f %% of all",
                 gp_explain_code(finding, code, sizeof(code)), gp_explain_time(hottest->ns, time),
                 (double)hottest->ns * 100 / (double)explaining->cpu_ns);
        snprintf(finding->sure, sizeof(finding->sure), "sampled");
        snprintf(finding->show, sizeof(finding->show), "report --sort cumtime");
    }
    free(codes);
    return 0;
}
