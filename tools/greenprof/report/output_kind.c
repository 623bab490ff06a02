// SPDX-License-Identifier: MIT
#include "output_kind.h"

#include <string.h>
#include <strings.h>

#include "export/formats.h"
#include "message.h"

// Does the command write a capture?
static bool output_kind_is_capture(const gp_command_t *command)
{
    static const gp_command_id_t writers[] = {GP_COMMAND_RUN,     GP_COMMAND_ATTACH, GP_COMMAND_START,
                                              GP_COMMAND_RECOVER, GP_COMMAND_MERGE,  GP_COMMAND_DUMP};
    for (size_t i = 0; i < sizeof(writers) / sizeof(writers[0]); i++)
        if (command == &gp_commands[writers[i]])
            return true;
    return false;
}

static bool output_kind_is_picture(const char *path)
{
    static const char *const suffixes[] = {".png", ".pdf", ".jpg", ".jpeg", ".gif", ".webp"};
    const char *dot = strrchr(path, '.');
    for (size_t i = 0; dot != NULL && i < sizeof(suffixes) / sizeof(suffixes[0]); i++)
        if (strcasecmp(dot, suffixes[i]) == 0)
            return true;
    return false;
}

int gp_output_kind_check(const gp_arguments_t *arguments)
{
    const char *command = arguments->command->name, *output = arguments->output;
    if (output == NULL || !output_kind_is_capture(arguments->command))
        return 0;
    const gp_exporter_t *exporter = gp_exporter_of_file(output);
    if (output_kind_is_picture(output))
        return gp_usage_error(
            command,
            "-o %s: a capture is written, FILE.greenprof; 'greenprof flamegraph FILE -o OUT.svg' makes a "
            "picture of it",
            output);
    if (exporter == NULL)
        return 0;
    bool is_graph = strcmp(exporter->name, "html") == 0 || strcmp(exporter->name, "flamegraph") == 0;
    return gp_usage_error(command,
                          "-o %s: a capture is written, FILE.greenprof; 'greenprof %s FILE -o OUT%s' makes %s of it",
                          output, is_graph ? "flamegraph" : "export", exporter->suffix,
                          strcmp(exporter->name, "html") == 0 ? "a page"
                          : is_graph                          ? "a picture"
                                                              : exporter->name);
}
