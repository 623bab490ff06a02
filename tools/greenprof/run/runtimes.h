// SPDX-License-Identifier: MIT
// The knowledge of `greenprof runtimes`, for others.
#pragma once

#include "facts/dataset.h"

// The reason why a stack was not announced, and what would name it, as far as the capture's modules tell: the ones
// still there are searched for runtimes linked in without their hook.
//   text: "no hook: link with greenprof-wrap-libaco or call prof_coro_create()".
// Returns `text`. Cost: reads the modules.
const char *gp_runtimes_hint(const gp_dataset_t *dataset, char *text, size_t size);

// The same of one coroutine (GP_CORO_FOUND), with what its memory says besides.
const char *gp_runtimes_hint_of(const gp_facts_coro_t *coro, const char *hint, char *text, size_t size);
