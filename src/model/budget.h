// SPDX-License-Identifier: MIT
// Greenprof's share of a program's CPU time, as users write it: 1%, 0.5%.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/number.h"

#define GP_BUDGET_WORDS "a share of the program's CPU time from 0.1% to 50%, as 1% or 0.5%"

enum { GP_BUDGET_LEAST_PPM = 1000, GP_BUDGET_MOST_PPM = 500000 };

// Returns whether `text` is one; then ppm: millionths.
static inline bool gp_budget_parse(const char *text, uint32_t *ppm)
{
    const char *end;
    if (text[0] < '0' || text[0] > '9')
        return false;
    double percent = gp_number_read(text, &end);
    if (end[0] != '%' || end[1] != '\0' || !(percent * 10000 >= GP_BUDGET_LEAST_PPM - 0.5) ||
        percent * 10000 > GP_BUDGET_MOST_PPM)
        return false;
    *ppm = (uint32_t)(percent * 10000 + 0.5);
    return true;
}
