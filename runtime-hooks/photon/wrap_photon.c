// SPDX-License-Identifier: MIT
// thread_create() as it was first.
#include "photon_thread.h"

// photon::thread_create(void *(*)(void *), void *, unsigned long, unsigned short)
#define CREATE(prefix) prefix##_ZN6photon13thread_createEPFPvS0_ES0_mt
extern thread_t *CREATE(__real_)(start_t *start, void *argument, uint64_t stack_bytes, uint16_t reserved);
thread_t *CREATE(__wrap_)(start_t *start, void *argument, uint64_t stack_bytes, uint16_t reserved);

thread_t *CREATE(__wrap_)(start_t *start, void *argument, uint64_t stack_bytes, uint16_t reserved)
{
    return announce(CREATE(__real_)(start, argument, stack_bytes, reserved), start);
}
