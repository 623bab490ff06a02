// SPDX-License-Identifier: MIT
#include <greenprof/prof.h>

#include "worker.h"

int worker_exact_start(void)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    options.mode = PROF_MODE_EXACT;
    return prof_start(&options) != NULL ? 0 : -1;
}

int worker_sampling_start(unsigned frequency_hz)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    options.frequency_hz = frequency_hz;
    return prof_start(&options) != NULL ? 0 : -1;
}
