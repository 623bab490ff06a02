// SPDX-License-Identifier: MIT
#include "interpreter/known.h"

#include <stdio.h>
#include <string.h>

enum { TYPE_SIZE = 32 }; // PyTypeObject.tp_basicsize

static size_t known_size_of(gp_cpython_find_t *find, void *where, const char *type)
{
    size_t size = 0;
    const char *bytes = find(where, type, TYPE_SIZE + sizeof(size));
    if (bytes != NULL)
        memcpy(&size, bytes + TYPE_SIZE, sizeof(size));
    return size;
}

gp_cpython_seen_t gp_cpython_see(gp_cpython_find_t *find, void *where)
{
    const void *version = find(where, "Py_Version", sizeof(unsigned long)); // 3.11 on
    gp_cpython_seen_t seen = {
        .runtime = find(where, "_PyRuntime", GP_CPYTHON_PUBLISHED_BYTES),
        .is_free_threaded = find(where, GP_CPYTHON_FREE_THREADED, 0) != NULL,
        .code_size = known_size_of(find, where, "PyCode_Type"),
        .tuple_size = known_size_of(find, where, "PyTuple_Type"),
        .generator_size = known_size_of(find, where, "PyGen_Type"),
        .text_size = known_size_of(find, where, "PyUnicode_Type"),
    };
    if (version != NULL)
        memcpy(&seen.version, version, sizeof(seen.version));
    return seen;
}

void gp_cpython_say_unknown(const gp_cpython_seen_t *seen, const char *why, char *text, size_t size)
{
    char name[48] = "before 3.11", reason[80] = "";
    if (seen->version != 0)
        snprintf(name, sizeof(name), "%lu.%lu.%lu%s", seen->version >> 24 & 0xff, seen->version >> 16 & 0xff,
                 seen->version >> 8 & 0xff, seen->is_free_threaded ? " without the global lock" : "");
    if (seen->version != 0 && !seen->is_free_threaded)
        snprintf(reason, sizeof(reason), " (it %s)", why);
    snprintf(text, size, "Python %s: not known%s, its code is seen as native frames, without functions or coroutines",
             name, reason);
}

bool gp_cpython_is_unknown(const gp_cpython_seen_t *seen, char *text, size_t size)
{
    const char *why = NULL;
    if (gp_cpython_layout_find(seen, &why) != NULL)
        return false;
    gp_cpython_say_unknown(seen, why, text, size);
    return true;
}
