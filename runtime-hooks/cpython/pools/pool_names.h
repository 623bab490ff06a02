// SPDX-License-Identifier: MIT
// Which pool a call is handed to, and which function it is. Caller holds the interpreter lock everywhere.
#pragma once

#include <stdint.h>

#include "interpreter/api.h"

// The number (collect/pools.h) of the executor whose submit() is the calling thread's innermost frame; 0 = there is
// none. Its name is the prefix of its threads' names: a given one, or else "ThreadPoolExecutor-0". Cost: ~0.2 us.
uint32_t gp_pool_of_submit(void);

// Does a text object end so?
bool gp_py_text_ends(gp_py_t *object, const char *end);

// The code object of the function that `callable` calls in the end, borrowed; NULL = not known.
gp_py_t *gp_pool_code(gp_py_t *callable);

// The name of that function, which lives as long as it does. NULL = not known.
const char *gp_pool_function_name(gp_py_t *callable);

// Is it in a file whose path ends so?
bool gp_pool_is_of_file(gp_py_t *callable, const char *file);

// An argument of the calling thread's innermost frame, where that is of a function whose name ends so (".submit"), and
// the path of its file, too. Borrowed; NULL = it is another one.
gp_py_t *gp_pool_argument_of(const char *name, const char *file, size_t number);

// Is that a method of this name: its end, such as ".submit"?
bool gp_pool_is_method(gp_py_t *callable, const char *name);

// The frame word of the function that `callable` calls in the end, as an entry (prof_coro.entry); 0 = not known.
// Nothing of the program runs.
uintptr_t gp_pool_entry(gp_py_t *callable);
