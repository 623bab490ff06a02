// SPDX-License-Identifier: MIT
// The timeline of a capture, for the formats that want one. Private to src/export.
#pragma once

#include "report/timeline.h"

struct gp_sample_rows;
struct gp_reading;

// Collect what the pass has chosen from the reading of its samples; set the report's timeline to it. Each returns 0 or
// a negative errno value.
int gp_report_timeline_begin(struct gp_sample_rows *pass, struct gp_reading *reading);
int gp_report_timeline_end(struct gp_sample_rows *pass);

typedef struct gp_timeline_source gp_timeline_source_t;

int gp_timeline_source_activities(gp_timeline_source_t *source, gp_activity_taker_t *take, void *context);
