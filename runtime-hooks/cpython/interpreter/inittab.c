// SPDX-License-Identifier: MIT
#include "interpreter/inittab.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

typedef struct inittab { // struct _inittab
    const char *name;
    void *(*init)(void);
} inittab_t;

static struct {
    void *(*real)(void);
    void (*made)(void *definition);
} watched[GP_INITTAB_MAX];

static void *inittab_begin(size_t i)
{
    void *definition = watched[i].real();
    if (definition != NULL)
        watched[i].made(definition);
    return definition;
}

static void *inittab_first(void)
{
    return inittab_begin(0);
}

static void *inittab_second(void)
{
    return inittab_begin(1);
}

static void *inittab_third(void)
{
    return inittab_begin(2);
}

void gp_inittab_watch(const char *name, void (*made)(void *definition))
{
    static void *(*const mine[GP_INITTAB_MAX])(void) = {inittab_first, inittab_second, inittab_third};
    static size_t count;
    inittab_t **table = dlsym(RTLD_DEFAULT, "PyImport_Inittab");
    inittab_t *entry = table != NULL ? *table : NULL;
    while (entry != NULL && entry->name != NULL && strcmp(entry->name, name) != 0)
        entry++;
    if (entry == NULL || entry->name == NULL || count == GP_INITTAB_MAX)
        return;
    watched[count].real = entry->init;
    watched[count].made = made;
    entry->init = mine[count++];
}
