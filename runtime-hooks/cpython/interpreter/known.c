// SPDX-License-Identifier: MIT
#include "interpreter/known.h"

#include <stdio.h>

#include "interpreter/layout.h"

bool gp_cpython_is_unknown(unsigned long version, bool is_free_threaded, char *text, size_t size)
{
    char name[48] = "before 3.11";
    if (gp_cpython_layout_find(version) != NULL && !is_free_threaded)
        return false;
    if (version != 0)
        snprintf(name, sizeof(name), "%lu.%lu.%lu%s", version >> 24 & 0xff, version >> 16 & 0xff, version >> 8 & 0xff,
                 is_free_threaded ? " without the global lock" : "");
    snprintf(text, size, "Python %s: not known, its code is seen as native frames, without functions or coroutines",
             name);
    return true;
}
