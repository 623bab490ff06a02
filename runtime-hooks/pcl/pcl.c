// SPDX-License-Identifier: MIT
// PCL, the Portable Coroutine Library: its coroutines are ucontexts, which are hooked already; what it adds are the
// entry functions. The first coroutine to exit makes PCL create one more, on which exited ones are deleted.
//
// Source: PCL 1.12, pcl.h, pcl.c (co_create, co_exit_to, co_del_helper).
#include <dlfcn.h>
#include <stdbool.h>

#include "interpose/interpose.h"

typedef void *create_t(void (*run)(void *), void *data, void *stack, int size);

static bool pcl_in_same_object(uintptr_t a, uintptr_t b)
{
    Dl_info of_a, of_b;
    return dladdr((void *)a, &of_a) != 0 && dladdr((void *)b, &of_b) != 0 && of_a.dli_fbase == of_b.dli_fbase;
}

PROF_API void *co_create(void (*run)(void *), void *data, void *stack, int size);

void *co_create(void (*run)(void *), void *data, void *stack, int size)
{
    create_t *real = GP_ORIGINAL(create_t, "co_create");
    gp_hook_maker_t maker = {.entry = (uintptr_t)run};
    if (pcl_in_same_object((uintptr_t)__builtin_return_address(0), (uintptr_t)real))
        maker.name = "[deletes others]";
    gp_hook_maker = &maker;
    void *coroutine = real(run, data, stack, size);
    gp_hook_maker = NULL;
    return coroutine;
}
