// SPDX-License-Identifier: MIT
// The runtimes themselves: what would be in their archives.
#include <stdlib.h>

#include "shape.h"
#include "shape_runtime.h"

long bthread_jump_fcontext(void **from, void *to, long value, _Bool preserve_fpu)
{
    (void)preserve_fpu;
    shape_swap(from, to);
    return value;
}

void *bthread_make_fcontext(void *top, size_t size, void (*run)(long))
{
    return shape_stack((char *)top - size, size, (void (*)(void))run);
}

void acosw(aco_t *from, aco_t *to)
{
    shape_swap(&from->reg[5], to->reg[5]);
}

aco_t *aco_create(aco_t *main_co, aco_share_stack_t *stack, size_t save_size, void (*run)(void), void *argument)
{
    aco_t *co = calloc(1, sizeof(*co));
    (void)save_size, (void)argument;
    if (main_co != NULL)
        co->reg[5] = shape_stack(stack->ptr, stack->sz, run);
    return co;
}

void coctx_swap(coctx_t *from, coctx_t *to)
{
    shape_swap(&from->regs[13], to->regs[13]);
}

int coctx_make(coctx_t *context, void *(*run)(void *, void *), const void *first, const void *second)
{
    (void)first, (void)second;
    context->regs[13] = shape_stack(context->ss_sp, context->ss_size, (void (*)(void))run);
    return 0;
}

static void *active;

void co_switch(void *to)
{
    void *from = active;
    active = to;
    shape_swap(from, *(void **)to);
}

void *co_create(unsigned bytes, void (*run)(void))
{
    char *memory = malloc(bytes);
    *(void **)(void *)memory = shape_stack(memory, bytes, run);
    return memory;
}

void *co_derive(void *memory, unsigned bytes, void (*run)(void))
{
    *(void **)memory = shape_stack(memory, bytes, run);
    return memory;
}

void *co_active(void)
{
    static void *main_thread[64];
    return active = active != NULL ? active : (void *)main_thread;
}

// The context of its resumer lies beside the coroutine's own, behind mco_coro.
typedef struct contexts {
    void *own, *back;
} contexts_t;

int mco_create(mco_coro **out, mco_desc *description)
{
    mco_coro *co = calloc(1, sizeof(*co));
    contexts_t *contexts = calloc(1, sizeof(*contexts));
    co->context = contexts;
    co->func = description->func;
    co->stack_size = description->stack_size;
    co->stack_base = malloc(co->stack_size);
    contexts->own = shape_stack(co->stack_base, co->stack_size, (void (*)(void))co->func);
    *out = co;
    return 0;
}

int mco_resume(mco_coro *co)
{
    contexts_t *contexts = co->context;
    shape_swap(&contexts->back, contexts->own);
    return 0;
}

int mco_yield(mco_coro *co)
{
    contexts_t *contexts = co->context;
    shape_swap(&contexts->own, contexts->back);
    return 0;
}

// The thread lies at the top of its own stack; its stack pointer is behind the links.
static photon_thread *photon_make(void *(*start)(void *), void *argument, unsigned long stack_size, unsigned reserved)
{
    enum { PAGE = 4096 };
    stack_size = (stack_size + sizeof(photon_thread) + PAGE - 1) / PAGE * PAGE;
    char *memory = aligned_alloc(PAGE, stack_size);
    photon_thread *thread = (photon_thread *)(void *)(memory + (stack_size - sizeof(photon_thread)) / 64 * 64);
    *thread = (photon_thread){
        .argument = argument, .start = start, .buf = memory, .stackful_alloc_top = memory, .stack_size = stack_size};
    char *top = (char *)thread - reserved;
    *photon_stack_pointer(thread) = shape_stack(memory, (unsigned long)(top - memory), (void (*)(void))start);
    return thread;
}

photon_thread *photon_thread_create(void *(*start)(void *), void *argument, unsigned long stack_size,
                                    unsigned short reserved)
{
    return photon_make(start, argument, stack_size, reserved);
}

photon_thread *photon_thread_create_flags(void *(*start)(void *), void *argument, unsigned long stack_size,
                                          unsigned reserved, unsigned long flags)
{
    (void)flags;
    return photon_make(start, argument, stack_size, reserved);
}

void **photon_stack_pointer(photon_thread *thread)
{
    return (void **)(void *)&thread->links_and_state[3];
}

void libtask_makecontext(libtask_ucontext *context, void (*run)(void), int count, ...)
{
    (void)count;
    context->rsp = (unsigned long)shape_stack(context->uc_stack.ss_sp, context->uc_stack.ss_size, run);
}

int libtask_swapcontext(libtask_ucontext *from, const libtask_ucontext *to)
{
    shape_swap((void **)&from->rsp, (void *)to->rsp);
    return 0;
}

int dill_prologue(void **context, void **top, size_t bytes, int bundle, const char *file, int line)
{
    enum { STACK_BYTES = 256 * 1024 };
    (void)context, (void)bytes, (void)bundle, (void)file, (void)line;
    *top = (char *)aligned_alloc(4096, STACK_BYTES) + STACK_BYTES - 512;
    return 1;
}
