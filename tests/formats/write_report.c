// SPDX-License-Identifier: MIT
// write_report REPORT FORMAT: the reports made by hand through the exporters, on standard output.
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "example_report.h"
#include "labelled_report.h"

static const struct {
    const char *name;
    const gp_report_t *report;
} reports[] = {
    {"example", &example_report}, {"labelled", &labelled_report}, {"empty", &empty_report},
    {"huge", &huge_report},       {"odd", &odd_report},
};

int main(int argc, char **argv)
{
    const gp_exporter_t *exporter = argc == 3 ? gp_exporter_find(argv[2]) : NULL;
    setlocale(LC_ALL, ""); // as a host may: numbers must not change
    for (size_t i = 0; i < sizeof(reports) / sizeof(reports[0]) && exporter != NULL; i++)
        if (strcmp(argv[1], reports[i].name) == 0)
            return exporter->write(reports[i].report, stdout) == 0 && fflush(stdout) == 0 ? 0 : 1;
    return 2;
}
