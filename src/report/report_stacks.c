// SPDX-License-Identifier: MIT
// Stacks of a capture as frames of a report.
#include <errno.h>

#include "report/report_pass.h"

static int add_function(const gp_pass_t *pass, gp_loc_t loc)
{
    const gp_dataset_t *dataset = pass->dataset;
    uint64_t offset = GP_LOC_OFFSET(loc);
    uint32_t number = gp_dataset_function_find(dataset, GP_LANGUAGE_FUNCTION(offset));
    if (number == GP_INDEX_NONE)
        return gp_builder_row_function(pass->builder, NULL, NULL, 0, 0);
    const gp_function_info_t *function = &dataset->functions[number];
    return gp_builder_row_function(pass->builder, function->name, function->file, function->first_line,
                                   GP_LANGUAGE_LINE(offset));
}

int gp_pass_add_loc(gp_pass_t *pass, gp_loc_t loc)
{
    if (GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE)
        return add_function(pass, loc);
    uint32_t number = gp_dataset_module_find(pass->dataset, GP_LOC_MODULE(loc));
    return gp_builder_row_loc(pass->builder, number != GP_INDEX_NONE ? pass->modules[number] : GP_SYMBOLIZER_NO_MODULE,
                              loc);
}

int gp_pass_add_stack(gp_pass_t *pass, const gp_dataset_stack_t *stack)
{
    int result = 0;
    if (!stack->defined)
        return gp_builder_row_pseudo(pass->builder, stack->id ? "[lost stack]" : "[no stack]");
    for (uint16_t i = stack->depth; i > 0 && result == 0; i--)
        result = gp_pass_add_loc(pass, stack->frames[i - 1]);
    return result;
}

static int take_stack(void *context, const gp_dataset_stack_t *stack)
{
    return gp_pass_add_stack(context, stack);
}

static int take_pseudo(void *context, const char *name)
{
    return gp_builder_row_pseudo(((gp_pass_t *)context)->builder, name);
}

int gp_pass_add_creators(gp_pass_t *pass, uint32_t coro)
{
    const gp_stitch_taker_t taker = {take_stack, take_pseudo, pass};
    return gp_stitches_take(&pass->stitches, pass->dataset, coro, &taker);
}

int gp_pass_add_leaf(gp_pass_t *pass, uint32_t kind)
{
    enum gp_pseudo leaf = gp_kind_leaf(kind);
    return leaf == 0 ? 0 : gp_builder_row_loc(pass->builder, GP_SYMBOLIZER_NO_MODULE, GP_LOC(GP_MODULE_PSEUDO, leaf));
}
