// SPDX-License-Identifier: MIT
// Beside the walker: the signal handler reads it.
#include "interpreter/task_step.h"

__thread gp_task_step_t gp_step_here __attribute__((tls_model("initial-exec")));
