// SPDX-License-Identifier: MIT
// The host's signal masks, which keep the sampling signal out; see host_mask.c.
#pragma once

#include <signal.h>
#include <stdbool.h>

// The calling thread is about to become another program, which inherits the mask believed in. And it did not.
void gp_host_mask_before_exec(void);
void gp_host_mask_after_failed_exec(void);

// The same of a child that has the mask it was born with (vfork()), if it has set none of its own since.
void gp_host_mask_before_childs_exec(void);

// Take the sampling signal out of the mask of an action that is about to be installed for signal `number`.
void gp_host_mask_filter_action(int number, struct sigaction *action);

// Does the program believe that the mask of its action for `number` has the sampling signal?
bool gp_host_mask_action_is_believed(int number);
