// SPDX-License-Identifier: MIT
// greenprof run: check everything, set the environment that libgreenprof-core reads, and become the
// program. The process keeps its id, so that its exit status is the program's.
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "command.h"
#include "environment.h"
#include "message.h"
#include "patchable.h"
#include "run_checks.h"
#include "run_sanitizer.h"
#include "run_watch.h"
#include "store/slow.h"

// Bounds of the capture that slow requests are made of: as much as the shortest of them needs, on a bounded disk.
static void run_set_bounds(void)
{
    setenv("GREENPROF_ROTATE", "1m", 0);
    setenv("GREENPROF_KEEP", "5", 0);
}

static void run_set_environment(const gp_arguments_t *arguments, const char *output, const char *core)
{
    const char *preloaded = getenv("LD_PRELOAD");
    char number[32], session[GP_RUN_SESSION_SIZE];
    char *preload = NULL;
    if (preloaded == NULL || preloaded[0] == '\0')
        setenv("LD_PRELOAD", core, 1);
    else if (asprintf(&preload, "%s:%s", core, preloaded) >= 0)
        setenv("LD_PRELOAD", preload, 1);
    free(preload);
    setenv("GREENPROF_OUTPUT", output, 1);
    gp_environment_set(arguments);
    if (arguments->rotate == NULL && arguments->slow != NULL)
        run_set_bounds();
    unsetenv("GREENPROF_STARTED"); // of a run around this one
    gp_run_session(session);
    setenv("GREENPROF_SESSION", session, 1);
    snprintf(number, sizeof(number), "%ld", (long)getpid());
    setenv("GREENPROF_PID", number, 1);
}

static bool run_is_set_to(const char *variable, const char *value)
{
    const char *set = getenv(variable);
    return set != NULL && strcmp(set, value) == 0;
}

// The capture's, as the user has it.
static void run_make_name(const gp_arguments_t *arguments, char name[PATH_MAX])
{
    const char *program = arguments->operands[0], *slash = strrchr(program, '/');
    if (arguments->output != NULL)
        snprintf(name, PATH_MAX, "%s", arguments->output);
    else
        snprintf(name, PATH_MAX, "%s.greenprof", slash != NULL ? slash + 1 : program);
}

// Tell the library what it needs for the closing line; see src/core/record/closing_line.h.
static void run_set_last_word(const gp_arguments_t *arguments, const char *name)
{
    struct stat status;
    char *say = NULL;
    if (fstat(STDERR_FILENO, &status) == 0 &&
        asprintf(&say, "%ju:%ju:%s:%s", (uintmax_t)status.st_dev, (uintmax_t)status.st_ino,
                 arguments->quiet ? "failure" : "end", name) >= 0)
        setenv("GREENPROF_SAY", say, 1);
    else
        unsetenv("GREENPROF_SAY"); // of a run around this one
    free(say);
}

static int run_check(const gp_arguments_t *arguments, gp_slow_wish_t *wish, char core[PATH_MAX], char output[PATH_MAX])
{
    const char *program = arguments->operands[0];
    int status = gp_environment_check();
    bool is_musl = false;
    bool rotates = arguments->rotate != NULL || arguments->rotate_signal != NULL;
    if (status == 0 && (arguments->keep != 0 || arguments->keep_size != NULL) && !rotates)
        status = gp_usage_error("run", "--keep is of captures that --rotate puts aside");
    if (status == 0 && rotates && arguments->exact)
        status = gp_usage_error("run", "--rotate does not go with --exact: calls are counted from the start on");
    if (status == 0 && arguments->slow != NULL && arguments->exact)
        status = gp_usage_error("run", "--slow does not go with --exact: it needs captures in parts");
    if (status == 0 && arguments->slow != NULL)
        status = gp_slow_wish(wish, arguments->slow, "run", false);
    if (status == 0)
        status = gp_run_output_path(arguments->output, program, output);
    if (status == 0)
        status = gp_run_check_program(program, &is_musl);
    if (status == 0)
        status = gp_run_find_core(program, is_musl, core);
    if (status == 0)
        status = gp_run_patch(arguments->patch, program);
    if (status == 0)
        status = gp_run_check_engine(arguments->engine != NULL ? arguments->engine : getenv("GREENPROF_ENGINE"));
    return status != 0 ? status : gp_run_put_old_away(output);
}

int gp_command_run(const gp_arguments_t *arguments)
{
    char core[PATH_MAX], output[PATH_MAX], name[PATH_MAX];
    const char *program = arguments->operands[0];
    gp_slow_wish_t wish = {0};
    int status = run_check(arguments, &wish, core, output);
    if (status == 0 && arguments->slow != NULL)
        status = gp_slow_follow(&wish, output, arguments);
    gp_slow_wish_free(&wish);
    if (status != 0)
        return status;
    run_set_environment(arguments, output, core);
    run_make_name(arguments, name);
    bool is_stopped = arguments->stopped || run_is_set_to("GREENPROF_CONTROL", "stopped");
    if (is_stopped)
        unsetenv("GREENPROF_SAY");
    else
        run_set_last_word(arguments, name);
    gp_run_prepare_sanitizer(program);
    if (!arguments->quiet && !is_stopped)
        gp_run_watch(output, name, arguments);
    execvp(program, arguments->operands);
    int error = errno;
    gp_run_take_old_back();
    gp_fail(program, "%s", strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
