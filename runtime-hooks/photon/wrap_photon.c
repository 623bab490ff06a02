// PhotonLibOS, linked into the program: photon::thread_create() tells the stacks. Its switch routines are local symbols,
// called by inline assembly, which nothing can stand before: the stack pointer decides who runs.
// Source: PhotonLibOS 0.6 to 0.9, thread/thread.cpp (struct thread, thread_create).
#include "wrap.h"

typedef void *start_t(void *);

typedef struct thread { // its beginning; it lies at the top of its stack
    uint64_t links_and_state[8];
    void *argument;
    start_t *start;
    char *stack_low;
    char *stackful_alloc_top;
    size_t stack_bytes;
} thread_t;

// photon::thread_create(void *(*)(void *), void *, unsigned long, unsigned short)
extern thread_t *__real__ZN6photon13thread_createEPFPvS0_ES0_mt(start_t *start, void *argument, uint64_t stack_bytes,
                                                                uint16_t reserved);
thread_t *__wrap__ZN6photon13thread_createEPFPvS0_ES0_mt(start_t *start, void *argument, uint64_t stack_bytes,
                                                         uint16_t reserved);

// Is a thread as this file knows them?
static int is_understood(const thread_t *thread, start_t *start)
{
    uintptr_t at = (uintptr_t)thread, lo = (uintptr_t)thread->stack_low;
    return thread->start == start && lo < at && at - lo < thread->stack_bytes;
}

thread_t *__wrap__ZN6photon13thread_createEPFPvS0_ES0_mt(start_t *start, void *argument, uint64_t stack_bytes,
                                                         uint16_t reserved)
{
    thread_t *thread = __real__ZN6photon13thread_createEPFPvS0_ES0_mt(start, argument, stack_bytes, reserved);
    if (thread != NULL && is_understood(thread, start))
        gp_wrap_announce(thread->stack_low, thread->stack_bytes, (const void *)(uintptr_t)start, NULL);
    return thread;
}
