#include "report.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "command.h"
#include "export/text.h"

static const char usage[] =
    "usage: greenprof report FILE [OPTION...]\n\n"
    "Show a capture as a table, in the manner of Python's pstats. Calls are numbers of samples.\n\n"
    "  -s, --sort KEY[,KEY...]  calls, cumulative, filename, line, module, name, ncalls, nfl, "
    "pcalls,\n"
    "                           stdname, time, tottime (the default), cumtime; unique beginnings "
    "do\n"
    "  -n, --rows N             show N rows (default 40, 0 = all)\n"
    "      --by WHAT            function (the default), coroutine or trace\n"
    "      --trace ID           only what ran for this trace (32 hex digits, UUID, traceparent)\n"
    "      --coroutine ID       only this coroutine\n"
    "      --clock cpu|wall     CPU time (the default); wall where the capture has it\n"
    "  -h, --help\n";

enum { OPTION_TRACE = 256, OPTION_COROUTINE, OPTION_BY, OPTION_CLOCK };
enum { ROWS_DEFAULT = 40 };

static const struct option long_options[] = {
    {"sort", required_argument, NULL, 's'},
    {"rows", required_argument, NULL, 'n'},
    {"trace", required_argument, NULL, OPTION_TRACE},
    {"coroutine", required_argument, NULL, OPTION_COROUTINE},
    {"by", required_argument, NULL, OPTION_BY},
    {"clock", required_argument, NULL, OPTION_CLOCK},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

typedef struct report_arguments {
    const char *file;
    bool help;
    gp_source_options_t source;
    gp_table_options_t table;
} report_arguments_t;

void gp_print_text(const char *text)
{
    while (*text != '\0') {
        size_t len = gp_text_utf8_len(text);
        unsigned char c = (unsigned char)*text;
        if (len == 0 || c < ' ' || c == 0x7f || (c == 0xc2 && (unsigned char)text[1] < 0xa0))
            fputs("?", stdout); // C0 and C1 controls steer terminals
        else
            fwrite(text, 1, len, stdout);
        text += len ? len : 1;
    }
}

void gp_print_seconds(uint64_t ns, int width)
{
    char text[32];

    gp_text_decimal(text, ns, 1000000000, 3);
    printf("%*s", width, text);
}

static int set_sorts(gp_table_options_t *table, char *keys)
{
    char *save = NULL;

    table->sort_count = 0;
    for (char *key = strtok_r(keys, ",", &save); key; key = strtok_r(NULL, ",", &save)) {
        const gp_sort_key_t *found = gp_sort_key_find(key);
        if (found == NULL || table->sort_count == GP_SORTS_MAX) {
            fprintf(stderr,
                    "greenprof report: --sort %s: no such key, or not a unique one (keys:", key);
            for (const gp_sort_key_t *known = gp_sort_keys; known->name != NULL; known++)
                fprintf(stderr, " %s", known->name);
            fputs(")\n", stderr);
            return EXIT_USAGE;
        }
        table->sorts[table->sort_count++] = found;
    }
    return 0;
}

static int set_option(report_arguments_t *arguments, int option, char *value)
{
    switch (option) {
    case 's':
        return set_sorts(&arguments->table, value);
    case 'n':
        if (!gp_parse_number(value, 0, UINT32_MAX, &arguments->table.rows))
            return gp_usage_error("report", "-n %s: it must be a number of rows", value);
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
        fputs("Try 'greenprof report --help'.\n", stderr);
        return EXIT_USAGE;
    }
}

static int parse(report_arguments_t *arguments, int argc, char **argv)
{
    static char title[] = "greenprof report";
    int option;

    argv[0] = title; // getopt's messages begin with it
    while ((option = getopt_long(argc, argv, "s:n:h", long_options, NULL)) != -1) {
        int status = set_option(arguments, option, optarg);
        if (status != 0 || arguments->help)
            return status;
    }
    if (optind + 1 != argc)
        return gp_usage_error("report", optind < argc ? "one FILE at a time" : "which FILE?");
    arguments->file = argv[optind];
    return 0;
}

static int print(const gp_source_t *source, const gp_table_options_t *table)
{
    gp_report_options_t options = source->options;

    options.by = GP_BY_NONE; // the tables group by themselves
    gp_report_t *report = gp_report_from_capture(source->dataset, &options, source->symbolizer);
    if (report == NULL)
        return -1;
    gp_report_print_header(source, report);
    int result = source->options.by == GP_BY_COROUTINE ? gp_report_print_coroutines(source, table)
                 : source->options.by == GP_BY_TRACE   ? gp_report_print_traces(source, table)
                                                       : gp_report_print_functions(report, table);
    gp_report_free(report);
    return result;
}

int gp_command_report(int argc, char **argv)
{
    report_arguments_t arguments = {.table = {.rows = ROWS_DEFAULT}};
    gp_source_t source;
    int status = parse(&arguments, argc, argv);

    if (status != 0)
        return status;
    if (arguments.help)
        return gp_help(usage);
    if (arguments.table.sort_count == 0)
        arguments.table.sorts[arguments.table.sort_count++] = gp_sort_key_find("tottime");
    status = gp_source_open(&source, "report", arguments.file, &arguments.source, true);
    if (status != 0)
        return status;
    if (print(&source, &arguments.table) < 0)
        status = gp_fail(arguments.file, "not enough memory");
    gp_source_warn_changed(&source);
    gp_source_close(&source);
    return status != 0 ? status : gp_finish_stdout();
}
