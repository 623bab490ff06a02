// SPDX-License-Identifier: MIT
// The parts of gp_explain(). Private to src/report/explain*.c and lock_waits.c.
#pragma once

#include "report/explain.h"
#include "report/long_slices.h"
#include "report/requests.h"

struct gp_explaining {
    const gp_dataset_t *dataset;
    gp_symbolizer_t *symbolizer;
    uint32_t trace; // 0 = all
    gp_findings_t *findings;
    gp_long_slices_t slices;
    gp_requests_t *requests;
    uint64_t latency_ns;           // of the requests that are asked about, together
    uint64_t first_request_ns;     // when the first of them began; UINT64_MAX = there are none
    uint64_t early_cpu_ns, cpu_ns; // sampled before that, and in all
    uint64_t nameless_ns;          // of cpu_ns, in functions without names
    const char *nameless_module;   // of one of these
    uint64_t *stack_ns;            // uint64_t[stacks]: of cpu_ns
};

// A new finding, at the end; NULL: there are enough.
gp_finding_t *gp_explain_add(gp_explaining_t *explaining, const char *kind, uint64_t cost_ns);

// The code of a path: the innermost function of the program's own, else the innermost of all.
//   path: gp_loc_t[depth], root first.
// Returns its level on the path; UINT32_MAX = it is not its own.
uint32_t gp_explain_place(const gp_explaining_t *explaining, const gp_loc_t *path, uint32_t depth,
                          gp_finding_t *finding);

// The same of a stack, but for its `less` innermost frames.
void gp_explain_place_of(const gp_explaining_t *explaining, const gp_facts_stack_t *stack, uint32_t less,
                         gp_finding_t *finding);

// Have a finding be about the same code as another one.
void gp_explain_about(gp_finding_t *finding, const gp_finding_t *code);

// "F (FILE:LINE)", with the end of FILE alone. Returns `text`.
const char *gp_explain_code(const gp_finding_t *finding, char *text, size_t size);

// "1.234 s", "56.7 ms". Returns `text`.
const char *gp_explain_time(uint64_t ns, char text[32]);

// An operation of a group, and the stacks in which the samples of each group's operations were for longest.
typedef struct gp_span_code {
    uint32_t coro, group; // numbers
    uint64_t from_ns, to_ns;
} gp_span_code_t;

// Reads the capture once more. Returns 0 or a negative errno value.
//   spans:  gp_span_code_t[count], in any order; they are sorted.
//   stacks: uint32_t[groups], to be set; 0 = no sample tells.
int gp_explain_span_code(const gp_explaining_t *explaining, gp_span_code_t *spans, size_t count, uint32_t *stacks,
                         size_t groups); // explain_span_code.c

// Each adds what it finds. Return 0 or a negative errno value.
int gp_explain_slices(gp_explaining_t *explaining);  // explain_slices.c
int gp_explain_machine(gp_explaining_t *explaining); // explain_time.c
int gp_explain_start(gp_explaining_t *explaining);
int gp_explain_hot(gp_explaining_t *explaining);
int gp_explain_spans(gp_explaining_t *explaining);     // explain_spans.c
int gp_explain_growth(gp_explaining_t *explaining);    // explain_growth.c
int gp_explain_losses(gp_explaining_t *explaining);    // explain_losses.c
int gp_explain_locks(gp_explaining_t *explaining);     // explain_locks.c
int gp_explain_deadlocks(gp_explaining_t *explaining); // explain_deadlocks.c
int gp_explain_pools(gp_explaining_t *explaining);     // explain_pools.c
