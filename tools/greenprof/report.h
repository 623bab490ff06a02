// The tables of `greenprof report`.
#ifndef GP_TOOLS_REPORT_H
#define GP_TOOLS_REPORT_H

#include "export/function_table.h"
#include "sort_key.h"
#include "source.h"

enum { GP_SORTS_MAX = 8 };

typedef struct gp_table_options {
    const gp_sort_key_t *sorts[GP_SORTS_MAX]; // the first decides, then the next
    size_t sort_count;
    uint64_t rows; // 0 = all
} gp_table_options_t;

// What the capture is, how much it holds, and what is missing: above every table.
void gp_report_print_header(const gp_source_t *source, const gp_report_t *report);

// The tables. Return 0 or -ENOMEM.
//   passed: which of the dataset's weights are in the report, see gp_report_options_t.
int gp_report_print_functions(const gp_report_t *report, const gp_table_options_t *options);
int gp_report_print_coroutines(const gp_source_t *source, const bool *passed,
                               const gp_table_options_t *options);
int gp_report_print_traces(const gp_source_t *source, const bool *passed,
                           const gp_table_options_t *options);

// Print a text so that a terminal shows it and nothing else: control characters and bad UTF-8
// replaced.
void gp_print_text(const char *text);

// Print nanoseconds as seconds with three decimals, right-aligned in `width`.
void gp_print_seconds(uint64_t ns, int width);

#endif
