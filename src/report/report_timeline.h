// SPDX-License-Identifier: MIT
// The timeline of a capture, for the formats that want one. Private to src/export.
#pragma once

#include "report/timeline.h"

struct gp_pass;

// Set the report's timeline to what the pass, which was read, has chosen. Returns 0 or a negative errno value.
int gp_report_timeline(struct gp_pass *pass);

typedef struct gp_timeline_source gp_timeline_source_t;

int gp_timeline_source_activities(gp_timeline_source_t *source, gp_activity_taker_t *take, void *context);
