// SPDX-License-Identifier: MIT
#include "interpreters.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct program {
    const char *name;
    gp_interpreter_t interpreter;
} program_t;

#define COROUTINES_ARE "; coroutines are"

static const program_t programs[] = {
    {"ruby", {"Ruby", COROUTINES_ARE}},
    {"php", {"PHP", COROUTINES_ARE}},
    {"luajit", {"LuaJIT", ", nor are coroutines"}},
    {"lua", {"Lua", COROUTINES_ARE}},
    {"perl", {"Perl", ""}},
    {"tcl", {"Tcl", ""}},
    {"tclsh", {"Tcl", ""}},
    {"R", {"R", ""}},
    {"guile", {"Guile", ""}},
};

// Does a version follow the name, perhaps behind what the program is for?
static bool interpreters_is_version(const char *rest)
{
    static const char *const kinds[] = {"-fpm", "-cgi", "-cli"};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strncmp(rest, kinds[i], strlen(kinds[i])) == 0)
            rest += strlen(kinds[i]);
    rest += *rest == '-';
    return *rest == '\0' || *rest == '.' || (*rest >= '0' && *rest <= '9');
}

const gp_interpreter_t *gp_interpreter_of(const char *module)
{
    const char *slash = strrchr(module, '/'), *base = slash != NULL ? slash + 1 : module;
    base += strncmp(base, "lib", 3) == 0 ? 3 : 0;
    for (size_t i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
        size_t len = strlen(programs[i].name);
        if (strncmp(base, programs[i].name, len) == 0 && interpreters_is_version(base + len))
            return &programs[i].interpreter;
    }
    return NULL;
}
