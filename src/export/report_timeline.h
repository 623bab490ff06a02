// The timeline of a capture, for the formats that want one. Private to src/export/report*.c.
#ifndef GP_EXPORT_REPORT_TIMELINE_H
#define GP_EXPORT_REPORT_TIMELINE_H

#include "export/report_builder.h"

// Set the report's timeline to what the options choose of the dataset's.
//   stacks: gp_timed_stack_t[weight_count], by weight, in the builder's arena; the tracks of those
//           that are chosen are numbers of coroutines in the dataset, and are replaced.
// Returns 0 or -ENOMEM.
int gp_report_timeline(gp_builder_t *builder, const gp_dataset_t *dataset,
                       const gp_report_options_t *options, gp_timed_stack_t *stacks);

#endif
