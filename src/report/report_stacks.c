// SPDX-License-Identifier: MIT
// Stacks of a capture as frames of a report.
#include <errno.h>

#include "report/sample_rows.h"

int gp_sample_rows_add_stack(gp_sample_rows_t *pass, const gp_facts_stack_t *stack)
{
    int result = 0;
    if (!stack->defined)
        return gp_builder_row_pseudo(pass->builder, stack->id ? "[lost stack]" : "[no stack]");
    for (uint16_t i = stack->depth; i > 0 && result == 0; i--)
        result = gp_builder_row_loc(pass->builder, stack->frames[i - 1]);
    return result;
}

static int report_stacks_take_stack(void *context, const gp_facts_stack_t *stack)
{
    return gp_sample_rows_add_stack(context, stack);
}

static int report_stacks_take_pseudo(void *context, const char *name)
{
    return gp_builder_row_pseudo(((gp_sample_rows_t *)context)->builder, name);
}

int gp_sample_rows_add_creators(gp_sample_rows_t *pass, uint32_t coro)
{
    const gp_stitch_taker_t taker = {report_stacks_take_stack, report_stacks_take_pseudo, pass};
    return gp_stitches_take(&pass->stitches, pass->dataset, coro, &taker);
}

int gp_sample_rows_add_leaf(gp_sample_rows_t *pass, uint32_t kind)
{
    enum gp_pseudo leaf = gp_kind_leaf(kind);
    return leaf == 0 ? 0 : gp_builder_row_loc(pass->builder, GP_LOC(GP_MODULE_PSEUDO, leaf));
}
