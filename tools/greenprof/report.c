#include "report.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "command.h"
#include "export/text.h"

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

// Keys and commas.
static int set_sorts(gp_table_options_t *table, const char *keys)
{
    char *copy = strdup(keys), *save = NULL;
    int status = copy != NULL ? 0 : gp_fail("command line", "%s", strerror(ENOMEM));

    for (char *key = status == 0 ? strtok_r(copy, ",", &save) : NULL; key != NULL && status == 0;
         key = strtok_r(NULL, ",", &save)) {
        const gp_sort_key_t *found = gp_sort_key_find(key);
        if (found == NULL)
            status = gp_usage_error("report", "--sort %s: no such key, or not a unique one", key);
        else if (table->sort_count == GP_SORTS_MAX)
            status = gp_usage_error("report", "--sort %s: these are more than %d keys", keys,
                                    GP_SORTS_MAX);
        else
            table->sorts[table->sort_count++] = found;
    }
    if (status == 0 && table->sort_count == 0)
        status = gp_usage_error("report", "--sort: which key?");
    free(copy);
    return status;
}

static int print_table(const gp_source_t *source, const gp_report_t *report, const bool *passed,
                       const gp_table_options_t *table)
{
    switch (source->options.by) {
    case GP_BY_COROUTINE:
        return gp_report_print_coroutines(source, passed, table);
    case GP_BY_TRACE:
        return gp_report_print_traces(source, passed, table);
    case GP_BY_NONE:
        break;
    }
    return gp_report_print_functions(report, table);
}

static int print(const gp_source_t *source, const gp_table_options_t *table)
{
    gp_report_options_t options = source->options;
    int result = -ENOMEM;

    options.by = GP_BY_NONE; // the tables group by themselves
    options.passed = calloc(source->dataset->weight_count + 1, sizeof(bool));
    gp_report_t *report = options.passed != NULL ? gp_report_from_capture(source->dataset, &options,
                                                                          source->symbolizer)
                                                 : NULL;
    if (report != NULL) {
        gp_report_print_header(source, report);
        result = print_table(source, report, options.passed, table);
    }
    gp_report_free(report);
    free(options.passed);
    return result;
}

int gp_command_report(const gp_arguments_t *arguments)
{
    gp_table_options_t table = {.rows = arguments->rows};
    gp_source_t source;
    int status = set_sorts(&table, arguments->sort ? arguments->sort : "tottime");

    if (status == 0)
        status = gp_source_open(&source, arguments, 0);
    if (status != 0)
        return status;
    if (print(&source, &table) < 0)
        status = gp_fail(source.path, "not enough memory");
    gp_source_warn_changed(&source);
    gp_source_close(&source);
    return status != 0 ? status : gp_finish_stdout();
}
