// SPDX-License-Identifier: MIT
// write_example REPORT FORMAT: the example reports through the exporters, on standard output.
#include <stdio.h>
#include <string.h>

#include "example_report.h"

int main(int argc, char **argv)
{
    const gp_exporter_t *exporter = argc == 3 ? gp_exporter_find(argv[2]) : NULL;
    const gp_report_t *report = &example_report;
    if (exporter == NULL)
        return 2;
    if (strcmp(argv[1], "empty") == 0)
        report = &empty_report;
    else if (strcmp(argv[1], "huge") == 0)
        report = &huge_report;
    else if (strcmp(argv[1], "odd") == 0)
        report = &odd_report;
    return exporter->write(report, stdout) == 0 && fflush(stdout) == 0 ? 0 : 1;
}
