// SPDX-License-Identifier: MIT
// A signal by which users ask a running process for something.
#pragma once

#include <stdbool.h>

// Have `handler` called for the signal of this name (base/signal_name.h; NULL = none), unless the program handles it or
// samples are taken by it. At load. Returns whether it is.
bool gp_asked_signal_take(const char *name, void (*handler)(int number));
