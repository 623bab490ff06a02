// SPDX-License-Identifier: MIT
#include <errno.h>

#include "worker.h"

int worker_sampling_start(unsigned frequency_hz)
{
    (void)frequency_hz;
    errno = ENOSYS;
    return -1;
}

int worker_exact_start(void)
{
    return -1;
}
