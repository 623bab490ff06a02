// SPDX-License-Identifier: MIT
// greenprof merge: several captures into one.
#include <errno.h>
#include <string.h>

#include "capture/write/writer.h"
#include "command.h"
#include "input.h"
#include "message.h"
#include "output_guard.h"
#include "progress.h"

static int merge_write_records(void *context, enum gp_chunk_type type, const void *records, size_t bytes)
{
    return gp_writer_put(context, type, records, bytes);
}

static int merge_write_merged(gp_captures_t *captures, const char *path, const char *name)
{
    gp_writer_t writer = GP_WRITER_INIT;
    char error[GP_READER_ERROR_SIZE] = "";
    int result = gp_writer_open(&writer, path, &captures->header), status = 0;
    if (result == 0)
        result = gp_captures_pass(captures, merge_write_records, &writer, error);
    int write_error = atomic_load_explicit(&writer.error, memory_order_relaxed);
    if (result != 0 && write_error == 0)
        status = gp_fail(captures->inputs[captures->at].path, "%s", error);
    if (result == 0)
        write_error = gp_writer_flush(&writer);
    if (write_error != 0)
        status = gp_fail(name, "%s", strerror(-write_error));
    gp_writer_abandon(&writer);
    return status;
}

static int merge_into(gp_output_t *output, void *context)
{
    const gp_arguments_t *arguments = context;
    gp_captures_t captures = {0};
    if (output->temporary == NULL)
        return gp_fail(arguments->output, "is not a regular file");
    int status = gp_input_open_captures(&captures, arguments, "merging", GP_WANT_LABELS);
    if (status == 0)
        status = merge_write_merged(&captures, output->temporary, arguments->output);
    gp_progress_end();
    for (size_t i = 0; i < captures.count && status == 0; i++)
        gp_input_warn_damage(captures.inputs[i].path, &captures.inputs[i].summary);
    gp_captures_free(&captures);
    return status;
}

int gp_command_merge(const gp_arguments_t *arguments)
{
    gp_arguments_t copy = *arguments;
    if (arguments->output == NULL)
        return gp_usage_error("merge", "missing --output");
    if (arguments->output[0] == '\0' || strcmp(arguments->output, "-") == 0)
        return gp_fail("-o", "a capture needs a file with a name");
    int result = gp_output_guarded_named(arguments->output, merge_into, &copy);
    return result < 0 ? gp_fail(arguments->output, "%s", strerror(-result)) : result;
}
