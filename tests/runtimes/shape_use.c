// SPDX-License-Identifier: MIT
// How a program uses the shapes' runtimes. One of SHAPE_* is defined.
#include <stdlib.h>

#include "shape.h"
#include "shape_runtime.h"

enum { COUNT = 4, BYTES = 65536 };

#if defined(SHAPE_GUARDED) // mappings, each with a page below that cannot be touched
#include <sys/mman.h>

static void *stack_memory(void)
{
    enum { GUARD = 4096 };
    char *memory = mmap(NULL, GUARD + BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    mprotect(memory, GUARD, PROT_NONE);
    return memory + GUARD;
}
#else
#define stack_memory() malloc(BYTES)
#endif

#if defined(SHAPE_BRPC)
static void *contexts[COUNT], *loop;
void shape_make(int id, void (*run)(void))
{
    char *memory = malloc(BYTES);
    contexts[id] = bthread_make_fcontext(memory + BYTES, BYTES, (void (*)(long))run);
}
void shape_enter(int id)
{
    bthread_jump_fcontext(&loop, contexts[id], 0, 0);
}
void shape_leave(int id)
{
    bthread_jump_fcontext(&contexts[id], loop, 0, 0);
}
#elif defined(SHAPE_LIBACO)
static aco_t *main_co, *all[COUNT];
void shape_make(int id, void (*run)(void))
{
    aco_share_stack_t *stack = malloc(sizeof(*stack));
    *stack = (aco_share_stack_t){stack_memory(), BYTES};
    if (main_co == NULL)
        main_co = aco_create(NULL, NULL, 0, NULL, NULL);
    all[id] = aco_create(main_co, stack, 0, run, NULL);
}
void shape_enter(int id)
{
    acosw(main_co, all[id]);
}
void shape_leave(int id)
{
    acosw(all[id], main_co);
}
#elif defined(SHAPE_LIBCO_TENCENT)
static coctx_t loop, all[COUNT];
void shape_make(int id, void (*run)(void))
{
    all[id].ss_sp = malloc(BYTES);
    all[id].ss_size = BYTES;
    coctx_make(&all[id], (void *(*)(void *, void *))run, NULL, NULL);
}
void shape_enter(int id)
{
    coctx_swap(&loop, &all[id]);
}
void shape_leave(int id)
{
    coctx_swap(&all[id], &loop);
}
#elif defined(SHAPE_LIBCO_HIGAN)
static void *loop, *all[COUNT];
void shape_make(int id, void (*run)(void))
{
    loop = co_active();
    all[id] = id % 2 ? co_create(BYTES, run) : co_derive(malloc(BYTES), BYTES, run);
}
void shape_enter(int id)
{
    co_switch(all[id]);
}
void shape_leave(int id)
{
    (void)id, co_switch(loop);
}
#elif defined(SHAPE_MINICORO)
static mco_coro *all[COUNT];
void shape_make(int id, void (*run)(void))
{
    mco_desc description = {(void (*)(mco_coro *))run, BYTES};
    mco_create(&all[id], &description);
}
void shape_enter(int id)
{
    mco_resume(all[id]);
}
void shape_leave(int id)
{
    mco_yield(all[id]);
}
#elif defined(SHAPE_PHOTON)
static photon_thread *all[COUNT];
static void *loop;
void shape_make(int id, void (*run)(void))
{
#ifdef SHAPE_PHOTON_FLAGS
    all[id] = photon_thread_create((void *(*)(void *))run, NULL, BYTES, 0, 0);
#else
    all[id] = photon_thread_create((void *(*)(void *))run, NULL, BYTES, 0);
#endif
}
void shape_enter(int id)
{
    shape_swap(&loop, *photon_stack_pointer(all[id]));
}
void shape_leave(int id)
{
    shape_swap(photon_stack_pointer(all[id]), loop);
}
#elif defined(SHAPE_LIBTASK)
static libtask_ucontext loop;
void shape_make(int id, void (*run)(void))
{
    if (taskcreate((void (*)(void *))run, NULL, BYTES) != id)
        abort();
}
void shape_enter(int id)
{
    libtask_swapcontext(&loop, task_context(id));
}
void shape_leave(int id)
{
    libtask_swapcontext(task_context(id), &loop);
}
#elif defined(SHAPE_LIBDILL)
static void *all[COUNT], *loop;
void shape_make(int id, void (*run)(void))
{
    void *context, *top = NULL;
    dill_prologue(&context, &top, 0, -1, __FILE__, 100 + id);
    all[id] = shape_stack((char *)top - BYTES, BYTES, run);
}
void shape_enter(int id)
{
    shape_swap(&loop, all[id]);
}
void shape_leave(int id)
{
    shape_swap(&all[id], loop);
}
#endif
