// SPDX-License-Identifier: MIT
// greenprof coroutines: live coroutines, how long each has waited, and where.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "census_print.h"
#include "command.h"
#include "control.h"
#include "coroutines.h"
#include "live_census.h"
#include "message.h"
#include "report/output_guard.h"

static int coroutines_show(const gp_input_t *source, const gp_arguments_t *arguments)
{
    gp_census_groups_t groups;
    int status = 0;
    if (source->dataset->census.count == 0 && gp_facts_meta(&source->dataset->facts, "merged") != NULL)
        return gp_fail(source->path, "a merged capture has no census: read the captures that it was made from");
    if (source->dataset->census.count == 0)
        return gp_fail(source->path,
                       "has no census: the process was killed early, or an older greenprof wrote the file");
    if (gp_census_groups_make(&groups, source) < 0)
        status = gp_fail(source->path, "%s", strerror(ENOMEM));
    else if (arguments->json)
        gp_census_print_json(&groups, source);
    else
        gp_census_print(&groups, source, arguments->rows, arguments->members);
    gp_census_groups_free(&groups);
    return status != 0 ? status : gp_finish_stdout();
}

int gp_coroutines_show(const gp_arguments_t *arguments, char *path, const char *subject)
{
    gp_arguments_t changed = *arguments;
    char *operands[] = {path, NULL};
    gp_input_t source;
    changed.operands = operands;
    changed.operand_count = 1;
    int status = gp_input_open(&source, &changed, GP_WANT_LABELS);
    if (status != 0)
        return status;
    source.path = subject;
    status = coroutines_show(&source, arguments);
    gp_input_warn_changed(&source);
    gp_input_close(&source);
    return status;
}

static int coroutines_copy_census(gp_output_t *output, void *context)
{
    const int *fd = context;
    char buffer[65536];
    ssize_t got;
    while ((got = read(*fd, buffer, sizeof(buffer))) > 0)
        if (fwrite(buffer, 1, (size_t)got, output->file) != (size_t)got)
            return gp_output_state(output->file);
    return got == 0 && lseek(*fd, 0, SEEK_SET) == 0 ? 0 : -errno;
}

static int coroutines_keep(int fd, const char *path)
{
    if (path[0] == '\0' || strcmp(path, "-") == 0)
        return gp_fail("-o", "a census needs a file with a name");
    int result = gp_output_guarded(path, coroutines_copy_census, &fd);
    return result == 0 ? 0 : gp_fail(path, "%s", strerror(-result));
}

int gp_command_coroutines(const gp_arguments_t *arguments)
{
    char *operand = arguments->operands[0], path[32];
    pid_t pid;
    int status = gp_choice_check(&arguments->choice, arguments->command->name, "");
    if (status != 0)
        return status;
    if (!gp_control_is_process(operand)) {
        if (arguments->output != NULL)
            return gp_usage_error(arguments->command->name, "--output is for the census of a process");
        return gp_coroutines_show(arguments, operand, operand);
    }
    status = gp_control_parse_pid(arguments, &pid);
    if (status != 0)
        return status;
    int fd = gp_live_census(pid, operand);
    if (fd < 0)
        return EXIT_FAILED;
    status = arguments->output != NULL ? coroutines_keep(fd, arguments->output) : 0;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    if (status == 0)
        status = gp_coroutines_show(arguments, path, operand);
    close(fd);
    return status;
}
