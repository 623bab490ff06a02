// SPDX-License-Identifier: MIT
// Requests for a census come from the program, by prof_coro_dump(); from the command, by `greenprof coroutines PID`;
// and from the program's death by a fatal signal, where GREENPROF_CENSUS names a file for it. The collector's thread
// answers all of them.
#pragma once

// Begin, at load. GREENPROF_CENSUS: path of the file that a fatal signal leaves; %p is the process id.
void gp_census_service_start(void);

// The user's directory (live/census_place.h), made where there is none: its descriptor, or a negative errno value.
// Collector only.
int gp_census_service_place(void);

// The process ends: no more requests are answered. Signals: safe.
void gp_census_service_end(void);
