// SPDX-License-Identifier: MIT
// A report made by hand, with every kind of name that is hard on a writer.
#ifndef GP_TESTS_EXAMPLE_REPORT_H
#define GP_TESTS_EXAMPLE_REPORT_H

#include "report/report.h"

extern const gp_report_t example_report;
extern const gp_report_t empty_report;
extern const gp_report_t odd_report;
// More samples than fit into 31 bits, more time than into 53 bits of nanoseconds.
extern const gp_report_t huge_report;

#endif
