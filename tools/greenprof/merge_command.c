// SPDX-License-Identifier: MIT
#include <string.h>

#include "command.h"
#include "merge.h"
#include "message.h"
#include "output_guard.h"

static int merge_into(gp_output_t *output, void *context)
{
    const gp_arguments_t *arguments = context;
    if (output->temporary == NULL)
        return gp_fail(arguments->output, "is not a regular file");
    return gp_merge(output->temporary, arguments->output, arguments->operands, (size_t)arguments->operand_count);
}

int gp_command_merge(const gp_arguments_t *arguments)
{
    gp_arguments_t copy = *arguments;
    if (arguments->output == NULL)
        return gp_usage_error("merge", "missing --output");
    if (arguments->output[0] == '\0' || strcmp(arguments->output, "-") == 0)
        return gp_fail("-o", "a capture needs a file with a name");
    int result = gp_output_guarded(arguments->output, merge_into, &copy);
    return result < 0 ? gp_fail(arguments->output, "%s", strerror(-result)) : result;
}
