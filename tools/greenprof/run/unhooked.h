// SPDX-License-Identifier: MIT
// Runtimes in files that the hooks do not know: the tables of these say so (runtime-hooks/unhooked,
// runtime-hooks/cpython), as they do to the core.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// The `number`th thing that the file has and no hook knows, in a sentence. False where there are no more; for what is
// no object of this machine.
bool gp_unhooked_in(const char *path, size_t number, char *text, size_t size);

// Has the file an interpreter of Python that is not known?
bool gp_unhooked_is_python(const char *path);
