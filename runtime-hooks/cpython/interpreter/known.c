// SPDX-License-Identifier: MIT
#include "interpreter/known.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "interpreter/layout.h"

enum {
    PUBLISHED_BYTES = 1024, // of _PyRuntime, the head of which tells offsets
    TYPE_SIZE = 32,         // PyTypeObject.tp_basicsize
    OLD = 0x03000000,       // some version before 3.11, the first that has Py_Version
};

static size_t size_of(gp_cpython_variable_t *variable, const void *object, const char *type_name)
{
    const char *type = variable(object, type_name, TYPE_SIZE + sizeof(size_t));
    size_t bytes = 0;
    if (type != NULL)
        memcpy(&bytes, type + TYPE_SIZE, sizeof(bytes));
    return bytes;
}

bool gp_cpython_is_unknown(gp_cpython_variable_t *variable, const void *object, char *text, size_t size)
{
    const unsigned long *published = variable(object, "Py_Version", sizeof(*published));
    const gp_cpython_seen_t seen = {
        .version = published != NULL ? *published : OLD,
        .runtime = variable(object, "_PyRuntime", PUBLISHED_BYTES),
        .code_size = size_of(variable, object, "PyCode_Type"),
        .tuple_size = size_of(variable, object, "PyTuple_Type"),
        .generator_size = size_of(variable, object, "PyGen_Type"),
        .text_size = size_of(variable, object, "PyUnicode_Type"),
    };
    const char *why;
    if (gp_cpython_layout_find(&seen, &why) != NULL)
        return false;
    gp_cpython_sentence(seen.version, why, text, size);
    return true;
}

int gp_cpython_sentence(unsigned long version, const char *why, char *text, size_t size)
{
    enum { MAJOR = 24, MINOR = 16, MICRO = 8, BYTE = 0xff };
    char number[32] = "";
    if ((version >> MINOR & BYTE) != 0)
        snprintf(number, sizeof(number), " %lu.%lu.%lu", version >> MAJOR & BYTE, version >> MINOR & BYTE,
                 version >> MICRO & BYTE);
    return snprintf(text, size, "CPython%s %s: native frames only", number, why);
}
