#include <errno.h>
#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "export/output.h"
#include "source.h"

static const char export_usage[] = "usage: greenprof export FILE --format FORMAT [OPTION...]\n\n"
                                   "Write a capture in another format.\n\n"
                                   "  -f, --format FORMAT      one of:\n";

static const char flamegraph_usage[] = "usage: greenprof flamegraph FILE [OPTION...]\n\n"
                                       "Write a capture as a flame graph (SVG).\n\n";

static const char options_usage[] =
    "  -o, --output OUT         file to write; '-', the default, is standard output\n"
    "      --trace ID           only what ran for this trace (32 hex digits, UUID, traceparent)\n"
    "      --coroutine ID       only this coroutine\n"
    "      --by coroutine|trace put the coroutine or the trace at the root of every stack\n"
    "      --clock cpu|wall     CPU time (the default); wall where the capture has it\n"
    "  -h, --help\n";

enum { OPTION_TRACE = 256, OPTION_COROUTINE, OPTION_BY, OPTION_CLOCK };

static const struct option long_options[] = {
    {"format", required_argument, NULL, 'f'},
    {"output", required_argument, NULL, 'o'},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"coroutine", required_argument, NULL, OPTION_COROUTINE},
    {"by", required_argument, NULL, OPTION_BY},
    {"clock", required_argument, NULL, OPTION_CLOCK},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

typedef struct export_arguments {
    const char *command;
    const char *file;
    const char *format;
    const char *output;
    bool help;
    gp_source_options_t source;
} export_arguments_t;

static int set_option(export_arguments_t *arguments, int option, char *value)
{
    switch (option) {
    case 'f':
        arguments->format = value;
        return 0;
    case 'o':
        arguments->output = value;
        return 0;
    case OPTION_TRACE:
        arguments->source.trace = value;
        return 0;
    case OPTION_COROUTINE:
        arguments->source.coroutine = value;
        return 0;
    case OPTION_BY:
        arguments->source.by = value;
        return 0;
    case OPTION_CLOCK:
        arguments->source.clock = value;
        return 0;
    case 'h':
        arguments->help = true;
        return 0;
    default:
        fprintf(stderr, "Try 'greenprof %s --help'.\n", arguments->command);
        return EXIT_USAGE;
    }
}

static int parse(export_arguments_t *arguments, int argc, char **argv)
{
    static char title[64];
    int option, status = 0;

    snprintf(title, sizeof(title), "greenprof %s", argv[0]);
    arguments->command = argv[0];
    argv[0] = title; // getopt's messages begin with it
    while ((option = getopt_long(argc, argv, "f:o:h", long_options, NULL)) != -1) {
        status = set_option(arguments, option, optarg);
        if (status != 0 || arguments->help)
            return status;
    }
    if (optind + 1 != argc)
        return gp_usage_error(arguments->command,
                              optind < argc ? "one FILE at a time" : "which FILE?");
    arguments->file = argv[optind];
    return 0;
}

static int unknown_format(const export_arguments_t *arguments)
{
    fprintf(stderr, "greenprof %s: ", arguments->command);
    if (arguments->format != NULL)
        fprintf(stderr, "unknown format '%s'", arguments->format);
    else
        fputs("which --format?", stderr);
    fputs(" (known:", stderr);
    for (const gp_exporter_t *exporter = gp_exporter_table(); exporter->name; exporter++)
        fprintf(stderr, " %s", exporter->name);
    fputs(")\n", stderr);
    return EXIT_USAGE;
}

// What is half written when a signal ends the command is taken away.
static char *volatile half_written;

static void clean_up(int signal_number)
{
    unlink(half_written);
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void clean_up_on_signals(char *path)
{
    static const int signals[] = {SIGHUP, SIGINT, SIGTERM};
    const struct sigaction action = {.sa_handler = path ? clean_up : SIG_DFL};
    struct sigaction old;

    half_written = path;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        if (sigaction(signals[i], NULL, &old) == 0 && old.sa_handler != SIG_IGN) // nohup
            sigaction(signals[i], &action, NULL);
}

static void hold_signals(int how)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGHUP);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(how, &signals, NULL);
}

// As gp_output_write(), with an eye on signals: they are held while the temporary file comes and
// goes.
static int write_output(const gp_exporter_t *exporter, const gp_report_t *report, const char *path)
{
    gp_output_t output;

    hold_signals(SIG_BLOCK);
    int result = gp_output_open(&output, path);
    if (result == 0) {
        clean_up_on_signals(output.temporary);
        hold_signals(SIG_UNBLOCK);
        result = exporter->write(report, output.file);
        hold_signals(SIG_BLOCK);
        clean_up_on_signals(NULL);
        if (result < 0)
            gp_output_abort(&output);
        else
            result = gp_output_commit(&output);
    }
    hold_signals(SIG_UNBLOCK);
    return result;
}

static int write_report(const export_arguments_t *arguments, const gp_exporter_t *exporter,
                        const gp_source_t *source)
{
    gp_report_t *report =
        gp_report_from_capture(source->dataset, &source->options, source->symbolizer);

    if (report == NULL)
        return gp_fail(arguments->file, "not enough memory");
    int result = write_output(exporter, report, arguments->output);
    gp_report_free(report);
    if (result < 0)
        return gp_fail(strcmp(arguments->output, "-") == 0 ? "standard output" : arguments->output,
                       "%s", strerror(-result));
    return 0;
}

static int run_export(export_arguments_t *arguments)
{
    const gp_exporter_t *exporter = arguments->format ? gp_exporter_find(arguments->format) : NULL;
    gp_source_t source;

    if (exporter == NULL)
        return unknown_format(arguments);
    if (arguments->output == NULL)
        arguments->output = "-";
    if (exporter->binary && strcmp(arguments->output, "-") == 0 && isatty(STDOUT_FILENO))
        return gp_fail("standard output", "is a terminal and %s is binary; name a file with -o",
                       exporter->name);
    arguments->source.wants = exporter->wants;
    int status =
        gp_source_open(&source, arguments->command, arguments->file, &arguments->source, false);
    if (status != 0)
        return status;
    status = write_report(arguments, exporter, &source);
    gp_source_warn_changed(&source);
    gp_source_close(&source);
    return status;
}

static int help(bool with_formats)
{
    fputs(with_formats ? export_usage : flamegraph_usage, stdout);
    for (const gp_exporter_t *exporter = gp_exporter_table(); with_formats && exporter->name;
         exporter++)
        printf("                             %-12s %s\n", exporter->name, exporter->what);
    return gp_help(options_usage);
}

int gp_command_export(int argc, char **argv)
{
    export_arguments_t arguments = {0};
    int status = parse(&arguments, argc, argv);

    if (status != 0)
        return status;
    return arguments.help ? help(true) : run_export(&arguments);
}

int gp_command_flamegraph(int argc, char **argv)
{
    export_arguments_t arguments = {.format = "flamegraph"};
    int status = parse(&arguments, argc, argv);

    if (status != 0)
        return status;
    return arguments.help ? help(false) : run_export(&arguments);
}
