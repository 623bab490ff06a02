// SPDX-License-Identifier: MIT
#include "report/report_calls.h"

#include <errno.h>

static gp_call_t *report_calls_new_call(gp_builder_t *builder)
{
    if (gp_grow(&builder->calls, &builder->call_capacity, builder->call_count, sizeof(*builder->calls)) < 0)
        return NULL;
    return &builder->calls[builder->call_count++];
}

int gp_builder_call(gp_builder_t *builder, const gp_call_count_t *record, uint32_t caller, uint32_t callee)
{
    if (callee == GP_INDEX_NONE || (record->caller_loc != 0 && caller == GP_INDEX_NONE))
        return -ENOMEM;
    gp_call_t *call = report_calls_new_call(builder);
    if (call == NULL)
        return -ENOMEM;
    *call = (gp_call_t){
        .caller = record->caller_loc != 0 ? caller : GP_CALL_NO_CALLER,
        .callee = callee,
        .calls = record->calls,
        .primitive_calls = record->calls - record->nested_calls,
        .primitive_edge_calls = record->calls - record->same_edge_calls,
        .self_cpu_ns = record->own_cpu_ns,
        .self_wait_ns = record->own_wait_ns,
        .cpu_ns = record->cpu_ns,
        .wait_ns = record->wait_ns,
        .edge_cpu_ns = record->cpu_ns + record->nested_cpu_ns,
        .edge_wait_ns = record->wait_ns + record->nested_wait_ns,
    };
    return 0;
}

int gp_builder_calls_finish(gp_builder_t *builder, uint64_t total_ns)
{
    uint64_t counted_ns = 0;
    for (size_t i = 0; i < builder->call_count; i++)
        counted_ns += builder->calls[i].self_cpu_ns;
    if (total_ns > counted_ns) {
        uint64_t rest = total_ns - counted_ns;
        gp_builder_row_begin(builder);
        int error = gp_builder_row_pseudo(builder, "[not instrumented]");
        uint32_t number = error == 0 ? builder->path[0] : GP_INDEX_NONE;
        gp_call_t *call = error == 0 ? report_calls_new_call(builder) : NULL;
        if (call == NULL || (builder->report.exact_rows && gp_builder_row_end(builder, rest, 0, 0) < 0))
            return -ENOMEM;
        *call = (gp_call_t){
            .caller = GP_CALL_NO_CALLER,
            .callee = number,
            .self_cpu_ns = rest,
            .cpu_ns = rest,
            .edge_cpu_ns = rest,
        };
    }
    builder->report.calls = builder->calls;
    builder->report.call_count = (uint32_t)builder->call_count;
    builder->report.exact_calls = true;
    return 0;
}
