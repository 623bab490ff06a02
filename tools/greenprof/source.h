// Where `report` and `export` take their data from: a capture file, and the options that choose a
// part of it.
#ifndef GP_TOOLS_SOURCE_H
#define GP_TOOLS_SOURCE_H

#include "export/report.h"

typedef struct gp_source_options { // as given on the command line
    const char *trace;             // NULL = all
    const char *coroutine;         // NULL = all
    const char *clock;             // NULL = cpu
    const char *by;                // NULL = none
    unsigned wants;                // not an option: enum gp_want bits of the format
} gp_source_options_t;

typedef struct gp_source {
    const char *path;
    gp_dataset_t *dataset;
    gp_symbolizer_t *symbolizer;
    gp_report_options_t options;
} gp_source_t;

// Check the options' form, then read the capture and look up what they name.
//   command: for messages.
//   by_function: whether --by function is a choice.
// Returns 0 or an exit status, with a message; damage in the capture is a warning only.
int gp_source_open(gp_source_t *source, const char *command, const char *path,
                   const gp_source_options_t *options, bool by_function);

// After the reports: say which modules are not the ones that were profiled any more.
void gp_source_warn_changed(const gp_source_t *source);

void gp_source_close(gp_source_t *source);

#endif
