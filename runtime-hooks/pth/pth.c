// SPDX-License-Identifier: MIT
// GNU Pth: its threads are ucontexts, which are hooked already; what it adds are names and entry functions. Its
// scheduler is a thread as well, named by Pth itself.
//
// Source: Pth 2.0.7, pth.h.in, pth_lib.c (pth_spawn), pth_attr.c.
#include <string.h>

#include "interpose/interpose.h"

enum { PTH_ATTR_NAME = 1 };

typedef void *spawn_t(void *attributes, void *(*run)(void *), void *argument);
typedef int attr_get_t(void *attributes, int field, ...);

static const char *pth_name_in(void *attributes)
{
    char *name = NULL;
    if (attributes == NULL || !GP_ORIGINAL(attr_get_t, "pth_attr_get")(attributes, PTH_ATTR_NAME, &name) ||
        name == NULL)
        return NULL;
    return strcmp(name, "unknown") != 0 ? name : NULL; // pth_attr_init()'s default
}

PROF_API void *pth_spawn(void *attributes, void *(*run)(void *), void *argument);

void *pth_spawn(void *attributes, void *(*run)(void *), void *argument)
{
    gp_hook_maker_t maker = {.entry = (uintptr_t)run, .name = pth_name_in(attributes)};
    gp_hook_maker = &maker;
    void *thread = GP_ORIGINAL(spawn_t, "pth_spawn")(attributes, run, argument);
    gp_hook_maker = NULL;
    return thread;
}
