// SPDX-License-Identifier: MIT
#include "coro/lock.h"

__thread unsigned gp_locks_held __attribute__((tls_model("initial-exec")));
