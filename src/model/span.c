// SPDX-License-Identifier: MIT
#include "model/span.h"

#include <string.h>

#include "greenprof/consumer.h"

static_assert((int)PROF_SPAN_RECORD_REMOTE_PARENT == (int)GP_SPAN_REMOTE_PARENT &&
                  (int)PROF_SPAN_RECORD_OPEN == (int)GP_SPAN_OPEN &&
                  (int)PROF_SPAN_RECORD_REPAIRED == (int)GP_SPAN_REPAIRED &&
                  (int)PROF_SPAN_RECORD_IMPLICIT == (int)GP_SPAN_IMPLICIT &&
                  (int)PROF_SPAN_RECORD_FAILED == (int)GP_SPAN_FAILED &&
                  (int)PROF_SPAN_RECORD_NO_TIMES == (int)GP_SPAN_NO_TIMES &&
                  (int)PROF_SPAN_RECORD_ASKED == (int)GP_SPAN_ASKED &&
                  (int)PROF_SPAN_RECORD_RESTED == (int)GP_SPAN_RESTED,
              "the public flags are those of captures");

const gp_span_flag_name_t gp_span_flag_names[] = {
    {GP_SPAN_OPEN, "open"},           {GP_SPAN_REPAIRED, "repaired"},   {GP_SPAN_FAILED, "failed"},
    {GP_SPAN_IMPLICIT, "implicit"},   {GP_SPAN_NO_TIMES, "no_times"},   {GP_SPAN_RESTED, "rested"},
    {GP_TREE_CRITICAL, "critical"},   {GP_TREE_LOST, "parent_missing"}, {GP_TREE_CIRCLE, "circle"},
    {GP_TREE_TWICE, "id_used_twice"}, {GP_TREE_BACKWARDS, "backwards"}, {0, NULL},
};

void gp_span_publish(const gp_span_t *span, uint64_t start_unix_ns, uint64_t end_unix_ns,
                     struct prof_span_record *record)
{
#define SHOW(field, shown, key) .shown = span->field,
    *record = (prof_span_record_t){
        .size = sizeof(*record),
        .id = span->id,
        .parent_id = span->parent_id,
        .start_unix_ns = start_unix_ns,
        .end_unix_ns = end_unix_ns,
        .cpu_ns = span->times.cpu_ns,
        .blocked_ns = span->times.blocked_ns,
        .preempted_ns = gp_ledger_kind_ns(&span->times, GP_KIND_PREEMPTED),
        .ready_ns = span->times.ready_ns,
        .parked_ns = span->times.parked_ns,
        .waiting_ns = span->times.waiting_ns,
        .switches = span->times.switches,
        .kind = span->kind,
        .flags = span->flags,
        GP_SPAN_SHOWN(SHOW) // numbers
    };
    memcpy(record->trace.bytes, span->trace, sizeof(span->trace));
}
