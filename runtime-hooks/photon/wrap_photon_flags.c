// SPDX-License-Identifier: MIT
// thread_create() since it has flags; a file of its own, as a program has one of the two.
#include "photon_thread.h"

// photon::thread_create(void *(*)(void *), void *, unsigned long, unsigned int, unsigned long)
#define CREATE(prefix) prefix##_ZN6photon13thread_createEPFPvS0_ES0_mjm
extern thread_t *CREATE(__real_)(start_t *start, void *argument, uint64_t stack_bytes, uint32_t reserved,
                                 uint64_t flags);
thread_t *CREATE(__wrap_)(start_t *start, void *argument, uint64_t stack_bytes, uint32_t reserved, uint64_t flags);

thread_t *CREATE(__wrap_)(start_t *start, void *argument, uint64_t stack_bytes, uint32_t reserved, uint64_t flags)
{
    return announce(CREATE(__real_)(start, argument, stack_bytes, reserved, flags), start);
}
