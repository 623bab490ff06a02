#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "export/output.h"
#include "export_output.h"

static int unknown_format(const gp_arguments_t *arguments)
{
    fputs("greenprof export: ", stderr);
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

int gp_export_source(const gp_source_t *source, const gp_exporter_t *exporter, const char *output)
{
    gp_report_t *report =
        gp_report_from_capture(source->dataset, &source->options, source->symbolizer);

    if (report == NULL)
        return gp_fail(source->path, "not enough memory");
    int result = write_output(exporter, report, output);
    gp_report_free(report);
    if (result < 0)
        return gp_fail(strcmp(output, "-") == 0 ? "standard output" : output, "%s",
                       strerror(-result));
    return 0;
}

static int export(const gp_arguments_t *arguments, const gp_exporter_t *exporter)
{
    const char *output = arguments->output ? arguments->output : "-";
    gp_source_t source;

    if (exporter->binary && strcmp(output, "-") == 0 && isatty(STDOUT_FILENO))
        return gp_fail("standard output", "is a terminal and %s is binary; name a file with -o",
                       exporter->name);
    int status = gp_source_open(&source, arguments, exporter->wants);
    if (status != 0)
        return status;
    status = gp_export_source(&source, exporter, output);
    gp_source_warn_changed(&source);
    gp_source_close(&source);
    return status;
}

int gp_command_export(const gp_arguments_t *arguments)
{
    const gp_exporter_t *exporter = arguments->format ? gp_exporter_find(arguments->format) : NULL;

    return exporter != NULL ? export(arguments, exporter) : unknown_format(arguments);
}

int gp_command_flamegraph(const gp_arguments_t *arguments)
{
    return export(arguments, gp_exporter_find("flamegraph"));
}
