// SPDX-License-Identifier: MIT
// A census in memory, for a language to show in its own terms: see gp_coro_view_t.
#ifndef GP_SESSION_CENSUS_VIEW_H
#define GP_SESSION_CENSUS_VIEW_H

// Let the core's interface know how.
void gp_census_view_init(void);

#endif
