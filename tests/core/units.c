// SPDX-License-Identifier: MIT
// Units of the core in one executable, each with the main() of its own file: core_units NAME [ARGUMENT...]
//
// A unit may start itself again by /proc/self/exe with the arguments it was given, the first of which is its name.
#include <stdio.h>
#include <string.h>

typedef int units_main_t(int argc, char **argv);

#define UNIT(name) units_main_t name##_main;
#include "units.inc"
#undef UNIT

static const struct {
    const char *name;
    units_main_t *main;
} units[] = {
#define UNIT(name) {#name, name##_main},
#include "units.inc"
};

static units_main_t *units_find(const char *name)
{
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(units[i].name, name) == 0)
            return units[i].main;
    return NULL;
}

int main(int argc, char **argv)
{
    units_main_t *again = units_find(argv[0]), *named = argc > 1 ? units_find(argv[1]) : NULL;
    if (again != NULL)
        return again(argc, argv);
    if (named != NULL)
        return named(argc - 1, argv + 1);
    fprintf(stderr, "usage: core_units NAME [ARGUMENT...]\n");
    return 2;
}
