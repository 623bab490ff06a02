// greenprof run: check everything, set the environment that libgreenprof-core reads, and become the
// program. The process keeps its id, so that its exit status is the program's.
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <greenprof/prof.h>

#include "command.h"
#include "run.h"

static const char usage[] =
    "usage: greenprof run [OPTION...] [--] PROGRAM [ARGUMENT...]\n\n"
    "Run a program, unchanged, and record where its CPU time goes. The exit status is the "
    "program's.\n\n"
    "  -o, --output FILE        capture to write (default: PROGRAM.greenprof in this directory);\n"
    "                           %p stands for the process id; children write FILE.PID unless it is "
    "there\n"
    "  -F, --frequency HZ       samples a second of CPU time and thread, 1 to 20000 (default "
    "1000)\n"
    "      --clock cpu|wall     cpu is the default; wall is not supported yet\n"
    "      --engine perf|cpu|monotonic\n"
    "                           what drives the samples (default: the first of them that works)\n"
    "      --depth FRAMES       frames kept of a stack, 2 to 512 (default 512): of a deeper one, its leaf "
    "and root end\n"
    "  -h, --help\n";

enum { OPTION_CLOCK = 256, OPTION_ENGINE, OPTION_DEPTH, DEPTH_MAX = 512 };

static const struct option long_options[] = {
    {"output", required_argument, NULL, 'o'},
    {"frequency", required_argument, NULL, 'F'},
    {"clock", required_argument, NULL, OPTION_CLOCK},
    {"engine", required_argument, NULL, OPTION_ENGINE},
    {"depth", required_argument, NULL, OPTION_DEPTH},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

typedef struct run_arguments {
    const char *output;
    const char *engine;
    uint64_t frequency_hz, depth;
    bool wall, help;
    char **program; // and its arguments, ended by NULL
} run_arguments_t;

static int set_engine(run_arguments_t *arguments, const char *value)
{
    if (strcmp(value, "perf") != 0 && strcmp(value, "cpu") != 0 && strcmp(value, "monotonic") != 0)
        return gp_usage_error("run", "--engine %s: it can be perf, cpu or monotonic", value);
    arguments->engine = value;
    return 0;
}

static int set_option(run_arguments_t *arguments, int option, const char *value)
{
    switch (option) {
    case 'o':
        arguments->output = value;
        return 0;
    case 'F':
        if (!gp_parse_number(value, 1, PROF_FREQUENCY_MAX_HZ, &arguments->frequency_hz))
            return gp_usage_error("run", "-F %s: the frequency is a whole number from 1 to %d Hz",
                                  value, PROF_FREQUENCY_MAX_HZ);
        return 0;
    case OPTION_CLOCK:
        if (strcmp(value, "cpu") != 0 && strcmp(value, "wall") != 0)
            return gp_usage_error("run", "--clock %s: it can be cpu or wall", value);
        arguments->wall = strcmp(value, "wall") == 0;
        return 0;
    case OPTION_ENGINE:
        return set_engine(arguments, value);
    case OPTION_DEPTH:
        if (!gp_parse_number(value, 2, DEPTH_MAX, &arguments->depth))
            return gp_usage_error("run", "--depth %s: it is a whole number from 2 to %d", value, DEPTH_MAX);
        return 0;
    case 'h':
        arguments->help = true;
        return 0;
    default:
        fputs("Try 'greenprof run --help'.\n", stderr);
        return EXIT_USAGE;
    }
}

static int parse(run_arguments_t *arguments, int argc, char **argv)
{
    static char title[] = "greenprof run";
    int option;

    argv[0] = title; // getopt's messages begin with it
    // '+': what follows PROGRAM is the program's.
    while ((option = getopt_long(argc, argv, "+o:F:h", long_options, NULL)) != -1) {
        int status = set_option(arguments, option, optarg);
        if (status != 0 || arguments->help)
            return status;
    }
    if (optind >= argc)
        return gp_usage_error("run", "which PROGRAM?");
    arguments->program = argv + optind;
    return 0;
}

static void set_environment(const run_arguments_t *arguments, const char *output, const char *core)
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
    snprintf(number, sizeof(number), "%" PRIu64, arguments->frequency_hz);
    setenv("GREENPROF_FREQUENCY", number, 1);
    if (arguments->engine != NULL)
        setenv("GREENPROF_ENGINE", arguments->engine, 1);
    if (arguments->depth != 0) {
        snprintf(number, sizeof(number), "%" PRIu64, arguments->depth);
        setenv("GREENPROF_DEPTH", number, 1);
    }
    gp_run_session(session);
    setenv("GREENPROF_SESSION", session, 1);
    snprintf(number, sizeof(number), "%ld", (long)getpid());
    setenv("GREENPROF_PID", number, 1);
}

static int run(const run_arguments_t *arguments)
{
    char core[PATH_MAX], output[PATH_MAX];
    const char *program = arguments->program[0];

    if (arguments->wall)
        return gp_fail("run", "--clock wall is not supported yet");
    int status = gp_run_output_path(arguments->output, program, output);
    if (status == 0)
        status = gp_run_check_program(program);
    if (status == 0)
        status = gp_run_find_core(core);
    if (status != 0)
        return status;
    set_environment(arguments, output, core);
    execvp(program, arguments->program);
    int error = errno;
    gp_fail(program, "%s", strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

int gp_command_run(int argc, char **argv)
{
    run_arguments_t arguments = {.frequency_hz = PROF_FREQUENCY_DEFAULT_HZ};
    int status = parse(&arguments, argc, argv);

    if (status != 0)
        return status;
    return arguments.help ? gp_help(usage) : run(&arguments);
}
