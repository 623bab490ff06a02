// SPDX-License-Identifier: MIT
#include "coro/hook_returns.h"

#include <stddef.h>

// The linker's: of the section in which stubs list themselves; none where there are no stubs.
extern const gp_stub_t __start_gp_stubs[] __attribute__((weak, visibility("hidden")));
extern const gp_stub_t __stop_gp_stubs[] __attribute__((weak, visibility("hidden")));

void gp_hook_returns_hook(bool hooked)
{
    // cppcheck-suppress comparePointers ; both are ends of one section
    for (const gp_stub_t *stub = __start_gp_stubs; stub < __stop_gp_stubs; stub++) {
        void *next = hooked ? stub->hooked : __atomic_load_n(stub->original, __ATOMIC_ACQUIRE);
        __atomic_store_n(stub->next, next, __ATOMIC_RELEASE);
    }
}

void gp_hook_returns_found(void **original, void *function)
{
    __atomic_store_n(original, function, __ATOMIC_RELEASE);
    // cppcheck-suppress comparePointers ; both are ends of one section
    for (const gp_stub_t *stub = __start_gp_stubs; stub < __stop_gp_stubs; stub++) {
        void *next = __atomic_load_n(stub->next, __ATOMIC_RELAXED);
        if (stub->original == original && next != stub->hooked)
            __atomic_compare_exchange_n(stub->next, &next, function, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
    }
}
