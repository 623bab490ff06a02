// SPDX-License-Identifier: MIT
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "command.h"
#include "export.h"
#include "input.h"
#include "message.h"
#include "nearest.h"
#include "output_guard.h"
#include "progress.h"

static int export_unknown_format(const gp_arguments_t *arguments)
{
    fputs("greenprof export: ", stderr);
    if (arguments->format != NULL)
        gp_say("unknown format '%s'", arguments->format);
    else if (arguments->output != NULL && gp_exporter_has_suffix(arguments->output))
        gp_say("no format has the suffix of '%s': which --format?", arguments->output);
    else
        fputs("which --format?", stderr);
    fputs(" (known:", stderr);
    gp_nearest_t nearest = {.of = "format", .word = arguments->format != NULL ? arguments->format : ""};
    for (const gp_exporter_t *exporter = gp_exporter_table(); exporter->name; exporter++) {
        fprintf(stderr, " %s", exporter->name);
        gp_nearest_try(&nearest, exporter->name);
    }
    fputs(")\n", stderr);
    if (nearest.name != NULL)
        fprintf(stderr, "Did you mean '%s'?\n", nearest.name);
    return EXIT_USAGE;
}

typedef struct request {
    const gp_exporter_t *exporter;
    const gp_report_t *report;
} request_t;

static int export_write_report(gp_output_t *output, void *context)
{
    const request_t *request = context;
    return request->exporter->write(request->report, output->file);
}

static int export_source(const gp_input_t *source, const gp_exporter_t *exporter, const char *output)
{
    gp_report_t *report = gp_input_report(source, &source->options);
    if (report == NULL)
        return gp_input_fail(source, errno);
    int status = gp_input_check_part(source, report);
    if (report->is_unknown && strcmp(exporter->name, "json") != 0) // JSON has a place for unknown values
        status = gp_fail(source->path, "delays are not known: %s", gp_input_unknown_ready);
    if (status != 0) {
        gp_report_free(report);
        return status;
    }
    request_t request = {exporter, report};
    if (strcmp(output, "-") != 0)
        gp_progress_begin("writing", output, -1);
    int result = gp_output_guarded(output, export_write_report, &request);
    gp_progress_end();
    gp_report_free(report);
    if (result < 0)
        return gp_fail(strcmp(output, "-") == 0 ? "standard output" : output, "%s", strerror(-result));
    return 0;
}

int gp_export_write(const gp_arguments_t *arguments, const gp_exporter_t *exporter, const char *output)
{
    output = output != NULL ? output : "-";
    gp_input_t source;
    if (exporter->binary && strcmp(output, "-") == 0 && isatty(STDOUT_FILENO))
        return gp_fail("standard output", "is a terminal and %s is binary; name a file with -o", exporter->name);
    int status = gp_input_open(&source, arguments, exporter->wants);
    if (status != 0)
        return status;
    status = export_source(&source, exporter, output);
    gp_input_warn_changed(&source);
    gp_input_close(&source);
    return status;
}

int gp_command_export(const gp_arguments_t *arguments)
{
    const gp_exporter_t *exporter = NULL;
    if (arguments->format != NULL)
        exporter = gp_exporter_find(arguments->format);
    else if (arguments->output != NULL)
        exporter = gp_exporter_of_file(arguments->output);
    return exporter != NULL ? gp_export_write(arguments, exporter, arguments->output)
                            : export_unknown_format(arguments);
}

// A page of numbers and marks is for no terminal.
static int export_refuse_terminal(const gp_arguments_t *arguments)
{
    const char *output = arguments->output != NULL ? arguments->output : "-";
    if (strcmp(output, "-") != 0 || !isatty(STDOUT_FILENO))
        return 0;
    return gp_usage_error("flamegraph", "standard output is a terminal: name a file, -o OUT.html or -o OUT.svg, or let "
                                        "'greenprof view' open the page");
}

int gp_command_flamegraph(const gp_arguments_t *arguments)
{
    const gp_exporter_t *page = gp_exporter_find("html"), *graph = gp_exporter_find("flamegraph"), *exporter = graph;
    if (arguments->output != NULL && gp_exporter_has_suffix(arguments->output))
        exporter = gp_exporter_of_file(arguments->output);
    if (exporter != page && exporter != graph)
        return gp_usage_error("flamegraph", "%s: a flame graph is written as .html, a page, or as .svg",
                              arguments->output);
    int status = export_refuse_terminal(arguments);
    return status != 0 ? status : gp_export_write(arguments, exporter, arguments->output);
}
