// SPDX-License-Identifier: MIT
// A census in memory, for a language to show in its own terms.
#pragma once

#include "interface.h"

// Every live coroutine: gp_coro_view_t[*count], NULL when memory is short. Takes the drain lock.
gp_coro_view_t *gp_census_views(size_t *count);
