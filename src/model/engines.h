// SPDX-License-Identifier: MIT
// Clock engines, what makes a thread receive the sampling signal: X(number, ID, name), in order of preference. The
// numbers are in capture files: they never change.
#pragma once

#define GP_ENGINES(X)                                                                                                  \
    X(1, PERF, perf)                                                                                                   \
    X(2, CPU, cpu)                                                                                                     \
    X(3, MONOTONIC, monotonic)

#define GP_ENGINE_ID(number, id, name) GP_ENGINE_##id = (number),
enum gp_engine { GP_ENGINE_NONE = 0, GP_ENGINES(GP_ENGINE_ID) };
#undef GP_ENGINE_ID

// "perf|cpu|monotonic", behind a bar.
#define GP_ENGINE_CHOICE(number, id, name) "|" #name
#define GP_ENGINE_CHOICES                  (&GP_ENGINES(GP_ENGINE_CHOICE)[1])
