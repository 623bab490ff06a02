// SPDX-License-Identifier: MIT
// CPU time of this process and its threads, as profiles count it. Threads: any. Signals: safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

// CPU time of this process, greenprof's own threads left out, ns.
uint64_t gp_cpu_time_process(void);

// CPU time of a thread of this process, ns; 0 when it is gone.
uint64_t gp_cpu_time_thread(int tid);

// The process' time stands still at `process_ns`: the host took the sampling signal, and what runs from then on is not
// sampled. 0 = it goes on.
void gp_cpu_time_stand_at(uint64_t process_ns);
bool gp_cpu_time_stands(void);
