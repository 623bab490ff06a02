// SPDX-License-Identifier: MIT
#include "wrap/wrap.h"

#include <dlfcn.h>

typedef prof_coro_t *announce_t(const void *lo, size_t bytes, const void *entry, const char *name,
                                const prof_park_t *creator);
typedef void unseen_t(prof_coro_t *coro);
typedef int entry_t(const void *code_low, const void *code_high);
typedef void switch_t(uintptr_t target_sp, const prof_park_t *park);
typedef void ontop_t(uintptr_t target_sp, uintptr_t record, const prof_park_t *park);

static const int resting;
const int *gp_wrap_active = &resting;

// Made by the linker, where there is such a function.
extern const char __start_gp_wrap_entry[] __attribute__((weak)), __stop_gp_wrap_entry[] __attribute__((weak));

static announce_t *announce;
static unseen_t *unseen;
static entry_t *stacks_end;
static switch_t *switch_to_stack;
static ontop_t *switch_ontop;

// The core is there before the program's own constructors run, or it is not there at all.
__attribute__((constructor(101))) static void wrap_find_core(void)
{
    const int *active = dlsym(RTLD_DEFAULT, "prof_coro_active");
    announce = (announce_t *)(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_announce_for");
    unseen = (unseen_t *)(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_unseen");
    switch_to_stack = (switch_t *)(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_switch_to_stack");
    switch_ontop = (ontop_t *)(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_switch_ontop");
    stacks_end = (entry_t *)(uintptr_t)dlsym(RTLD_DEFAULT, "prof_coro_entry");
    if (active == NULL || announce == NULL || switch_to_stack == NULL)
        return;
    gp_wrap_active = active;
    gp_wrap_stacks_end((uintptr_t)__start_gp_wrap_entry, (uintptr_t)__stop_gp_wrap_entry);
}

void gp_wrap_stacks_end(uintptr_t code_low, uintptr_t code_high)
{
    if (gp_wrap_active != &resting && stacks_end != NULL && code_low != code_high)
        stacks_end((const void *)code_low, (const void *)code_high);
}

void gp_wrap_announce_for(const void *lo, size_t bytes, const void *entry, const char *name, prof_park_t creator)
{
    if (gp_wrap_active != &resting)
        announce(lo, bytes, entry, name, &creator);
}

void gp_wrap_announce_unseen_for(const void *lo, size_t bytes, const void *entry, const char *name, prof_park_t creator)
{
    prof_coro_t *coro = gp_wrap_active != &resting ? announce(lo, bytes, entry, name, &creator) : NULL;
    if (coro != NULL && unseen != NULL)
        unseen(coro);
}

void gp_wrap_switch(uintptr_t target_sp, const prof_park_t *park)
{
    switch_to_stack(target_sp, park);
}

// A core of an earlier version is not told of ends.
void gp_wrap_ontop(uintptr_t target_sp, const prof_park_t *park, uintptr_t record)
{
    if (switch_ontop != NULL)
        switch_ontop(target_sp, record, park);
    else
        switch_to_stack(target_sp, park);
}
