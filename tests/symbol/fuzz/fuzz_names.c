// SPDX-License-Identifier: MIT
// Any bytes as a symbol's name, through both demanglers.
#include <stdlib.h>
#include <string.h>

#include "fuzz.h"
#include "symbol/demangle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gp_arena_t arena = {0};
    char *name = malloc(size + 1);
    if (name == NULL)
        return 0;
    memcpy(name, data, size);
    name[size] = '\0';
    const char *text = gp_demangle(&arena, name);
    if (text == NULL || (name[0] != '\0' && text[0] == '\0'))
        abort();
    gp_arena_free(&arena);
    free(name);
    return 0;
}
