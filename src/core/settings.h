// SPDX-License-Identifier: MIT
// The environment's settings (model/variables.h lists them), as they were when the core was loaded.
//
// A program that gains rights by being executed (AT_SECURE: set-user-ID, file capabilities) obeys none of it: its
// environment comes from a user with fewer rights. Threads: any; the first call is at load. Signals: not safe.
#pragma once

#include <stdbool.h>

#include "model/variables.h"

#define GP_SETTING_ID(id, value, low, high, standard, sentence) GP_SETTING_##id,
typedef enum gp_setting { GP_SETTINGS(GP_SETTING_ID) GP_SETTING_COUNT } gp_setting_t;
#undef GP_SETTING_ID

// Its value, kept for good; NULL = unset, or empty.
const char *gp_setting(gp_setting_t setting);

// Is it `value`, or unset and `value` the standard?
bool gp_setting_is(gp_setting_t setting, const char *value);

// As a number; where it is none within its bounds, the standard; 0 without one.
double gp_setting_number(gp_setting_t setting);

// Settings from a command that attaches to the process: lines of ID=VALUE, in the place of the environment's. The text
// stays where it is; its lines are taken apart. Before anything reads them.
void gp_settings_give(char *text);

// Does the process run with more rights than its environment?
bool gp_settings_are_refused(void);
