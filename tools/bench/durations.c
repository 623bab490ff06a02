// SPDX-License-Identifier: MIT
#include "durations.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

// A handler that has to reprogram the timer takes some 20 us; being preempted takes longer than this.
enum { OUTLIER_NS = 100000 };

static int compare(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return x < y ? -1 : x > y;
}

void durations_take_mean(durations_t *durations, double *mean, double *error)
{
    size_t count = durations->count < DURATIONS_KEPT ? (size_t)durations->count : DURATIONS_KEPT, kept = 0;
    uint32_t *sorted = malloc((count + 1) * sizeof(*sorted));
    *mean = *error = 0;
    if (count == 0 || sorted == NULL) {
        free(sorted);
        return;
    }
    memcpy(sorted, durations->ns, count * sizeof(*sorted));
    durations->count = 0;
    qsort(sorted, count, sizeof(*sorted), compare);
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        if (sorted[i] > (uint64_t)sorted[count / 2] + OUTLIER_NS)
            break;
        sum += sorted[i];
        squares += (double)sorted[i] * sorted[i];
        kept++;
    }
    *mean = sum / (double)kept;
    *error = sqrt((squares / (double)kept - *mean * *mean) / (double)kept);
    free(sorted);
}
