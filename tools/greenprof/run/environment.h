// SPDX-License-Identifier: MIT
// What the library reads from the environment (model/variables.h).
#pragma once

// Is all of it valid? The library would have to pass over in silence what is not. Returns 0, or EXIT_FAILED with a
// message.
int gp_environment_check(void);

// What there is and what it does: `greenprof help environment`.
int gp_environment_help(void);
