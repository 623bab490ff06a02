// SPDX-License-Identifier: MIT
// State Threads from libst.a: a switch is a jump to the saved context of the next thread.
// Source: State Threads 1.9, common.h (struct _st_thread, _st_stack, _st_vp), md.S (JB_RSP), sched.c
// (st_thread_create).
#include "wrap/wrap.h"

#include <stdlib.h>

typedef void *start_t(void *);

typedef struct st_stack {
    void *links[2];
    char *mapping;
    int mapping_bytes, bytes;
    char *low, *high;
} st_stack_t;

typedef struct st_thread { // its beginning; it lies at the top of its stack
    int state, flags;
    start_t *start;
    void *argument, *result;
    st_stack_t *stack;
} st_thread_t;

typedef struct st_vp { // its beginning
    st_thread_t *idle_thread;
} st_vp_t;

extern st_vp_t _st_this_vp;
extern int __real_st_init(void);
int __wrap_st_init(void);
extern st_thread_t *__real_st_thread_create(start_t *start, void *argument, int joinable, int stack_bytes);
st_thread_t *__wrap_st_thread_create(start_t *start, void *argument, int joinable, int stack_bytes);

typedef struct begin { // a thread's function
    start_t *start;
    void *argument;
} begin_t;

// Its caller is in st_thread_create(), a frame that is long gone.
GP_WRAP_ENTRY static void *wrap_st_run(void *argument)
{
    static int caller_is_known;
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    if (!caller_is_known)
        gp_wrap_stacks_end(caller - 1, caller); // of the idle thread, too
    caller_is_known = 1;
    begin_t begin = *(begin_t *)argument;
    free(argument);
    void *result = begin.start(begin.argument);
    __asm__ volatile("" : "+r"(result)); // no tail call: this frame is where the stack ends
    return result;
}

// Is a thread as this file knows them?
static int wrap_st_is_understood(const st_thread_t *thread)
{
    uintptr_t at = (uintptr_t)thread, stack = (uintptr_t)thread->stack;
    if (stack == 0 || stack % sizeof(void *) != 0)
        return 0;
    uintptr_t lo = (uintptr_t)thread->stack->low, hi = (uintptr_t)thread->stack->high;
    return at >= lo && at < hi && hi - lo == (uintptr_t)thread->stack->bytes;
}

static void wrap_st_announce(const st_thread_t *thread, start_t *start, const char *name)
{
    if (wrap_st_is_understood(thread))
        gp_wrap_announce(thread->stack->low, (size_t)thread->stack->bytes, (const void *)(uintptr_t)start, name);
}

// The idle thread is made by a call within one object, which nothing can stand before.
int __wrap_st_init(void)
{
    int result = __real_st_init();
    if (result == 0 && _st_this_vp.idle_thread != NULL)
        wrap_st_announce(_st_this_vp.idle_thread, NULL, "[idle]");
    return result;
}

st_thread_t *__wrap_st_thread_create(start_t *start, void *argument, int joinable, int stack_bytes)
{
    begin_t *begin = malloc(sizeof(*begin));
    if (begin == NULL)
        return __real_st_thread_create(start, argument, joinable, stack_bytes);
    *begin = (begin_t){start, argument};
    st_thread_t *thread = __real_st_thread_create(wrap_st_run, begin, joinable, stack_bytes);
    if (thread == NULL)
        free(begin);
    else
        wrap_st_announce(thread, start, NULL);
    return thread;
}
