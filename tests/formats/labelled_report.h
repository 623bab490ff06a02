// SPDX-License-Identifier: MIT
// A report made by hand that has what only some formats want: labels, addresses, mappings, inlined
// functions, counters.
#ifndef GP_TESTS_LABELLED_REPORT_H
#define GP_TESTS_LABELLED_REPORT_H

#include "report/report.h"

extern const gp_report_t labelled_report;

#endif
