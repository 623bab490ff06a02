// SPDX-License-Identifier: MIT
// The writers that the exporter table (formats.gperf) lists; see gp_exporter_t.write in model.h.
#ifndef GP_EXPORT_FORMATS_H
#define GP_EXPORT_FORMATS_H

#include "report/report.h"

int gp_pstats_write(const gp_report_t *report, FILE *out);
int gp_folded_write(const gp_report_t *report, FILE *out);
int gp_flamegraph_write(const gp_report_t *report, FILE *out);
int gp_callgrind_write(const gp_report_t *report, FILE *out);
int gp_chrome_write(const gp_report_t *report, FILE *out);
int gp_perfetto_write(const gp_report_t *report, FILE *out);
int gp_firefox_write(const gp_report_t *report, FILE *out);
int gp_json_write(const gp_report_t *report, FILE *out);
int gp_otlp_write(const gp_report_t *report, FILE *out);
int gp_speedscope_write(const gp_report_t *report, FILE *out);
int gp_pprof_write(const gp_report_t *report, FILE *out);

// What the rows without calls and time of a .prof say: what its numbers are.
//   notes: const char *[GP_PSTATS_NOTES_MAX].
// Returns how many there are.
enum { GP_PSTATS_NOTES_MAX = 2 };
size_t gp_pstats_notes(const gp_report_t *report, const char **notes);

#endif
