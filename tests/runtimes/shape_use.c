// SPDX-License-Identifier: MIT
// How a program uses each of the shapes' runtimes, and schedulers that tell of their coroutines by <greenprof/coro.h>;
// `--shape NAME` says which. SHAPE_ROWS, where defined, are the rows of a program without the others.
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <greenprof/coro.h>

#include "shape.h"
#include "shape_runtime.h"

enum { COUNT = 4, BYTES = 65536, GUARD = 4096 };

static void *loop, *all[COUNT]; // what each runtime calls a coroutine, or its stack pointer

#define TURNS(name, to_it, back)                                                                                       \
    static void name##_enter(int id)                                                                                   \
    {                                                                                                                  \
        to_it;                                                                                                         \
    }                                                                                                                  \
    static void name##_leave(int id)                                                                                   \
    {                                                                                                                  \
        (void)id;                                                                                                      \
        back;                                                                                                          \
    }

static void brpc_make(int id, void (*run)(void))
{
    all[id] = bthread_make_fcontext((char *)malloc(BYTES) + BYTES, BYTES, (void (*)(long))run);
}
TURNS(brpc, bthread_jump_fcontext(&loop, all[id], 0, 0), bthread_jump_fcontext(&all[id], loop, 0, 0))

static void libaco_make_on(int id, char *memory, void (*run)(void))
{
    aco_share_stack_t *stack = malloc(sizeof(*stack));
    *stack = (aco_share_stack_t){memory, BYTES};
    if (loop == NULL)
        loop = aco_create(NULL, NULL, 0, NULL, NULL);
    all[id] = aco_create(loop, stack, 0, run, NULL);
}
static void libaco_make(int id, void (*run)(void))
{
    libaco_make_on(id, malloc(BYTES), run);
}
TURNS(libaco, acosw(loop, all[id]), acosw(all[id], loop))

// libaco's on mappings, each with a page below that cannot be touched.
static void guarded_make(int id, void (*run)(void))
{
    char *memory = mmap(NULL, GUARD + BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    mprotect(memory, GUARD, PROT_NONE);
    libaco_make_on(id, memory + GUARD, run);
}
#define guarded_enter libaco_enter
#define guarded_leave libaco_leave

static coctx_t tencent_loop, tencent[COUNT];
static void libco_tencent_make(int id, void (*run)(void))
{
    tencent[id].ss_sp = malloc(BYTES);
    tencent[id].ss_size = BYTES;
    coctx_make(&tencent[id], (void *(*)(void *, void *))run, NULL, NULL);
}
TURNS(libco_tencent, coctx_swap(&tencent_loop, &tencent[id]), coctx_swap(&tencent[id], &tencent_loop))

static void libco_higan_make(int id, void (*run)(void))
{
    loop = co_active();
    all[id] = id % 2 ? co_create(BYTES, run) : co_derive(malloc(BYTES), BYTES, run);
}
TURNS(libco_higan, co_switch(all[id]), co_switch(loop))

static void minicoro_make(int id, void (*run)(void))
{
    mco_desc description = {(void (*)(mco_coro *))run, BYTES};
    mco_create((mco_coro **)&all[id], &description);
}
TURNS(minicoro, mco_resume(all[id]), mco_yield(all[id]))

static void photon_make(int id, void (*run)(void))
{
    all[id] = photon_thread_create((void *(*)(void *))run, NULL, BYTES, 0);
}
TURNS(photon, shape_swap(&loop, *photon_stack_pointer(all[id])), shape_swap(photon_stack_pointer(all[id]), loop))
static void photon_flags_make(int id, void (*run)(void))
{
    all[id] = photon_thread_create_flags((void *(*)(void *))run, NULL, BYTES, 0, 0);
}
#define photon_flags_enter photon_enter
#define photon_flags_leave photon_leave

static libtask_ucontext libtask_loop;
static void libtask_make(int id, void (*run)(void))
{
    if (taskcreate((void (*)(void *))run, NULL, BYTES) != id)
        abort();
}
TURNS(libtask, libtask_swapcontext(&libtask_loop, task_context(id)),
      libtask_swapcontext(task_context(id), &libtask_loop))

static void libdill_make(int id, void (*run)(void))
{
    void *context, *top = NULL;
    dill_prologue(&context, &top, 0, -1, __FILE__, 100 + id);
    all[id] = shape_stack((char *)top - BYTES, BYTES, run);
}
TURNS(libdill, shape_swap(&loop, all[id]), shape_swap(&all[id], loop))

// A stack each; the switch routine has no symbol that anything could stand before.
static const char *const names[COUNT] = {"entry_alpha", "entry_beta", "entry_gamma", "entry_idle"};
static prof_coro_t *announced[COUNT];
static void nameless_make(int id, void (*run)(void))
{
    char *memory = calloc(1, BYTES);
    announced[id] = prof_coro_create(memory, BYTES, names[id]);
    all[id] = shape_stack(memory, BYTES, run);
}
TURNS(nameless, prof_coro_switch(announced[id]); shape_swap(&loop, all[id]), prof_coro_switch(NULL);
      shape_swap(&all[id], loop))

// A single stack for all, copied when another wants it: Tencent's occupy_co; coost's.
static char *stack;
static int owner = -1; // its frames are on the stack
static struct {
    char *bytes;
    size_t len;
} saved[COUNT];

static void keep(void)
{
    if (owner < 0)
        return;
    size_t len = (size_t)(stack + BYTES - (char *)all[owner]);
    if (len > saved[owner].len)
        saved[owner].bytes = realloc(saved[owner].bytes, len);
    saved[owner].len = len;
    memcpy(saved[owner].bytes, all[owner], len);
    memset(stack, 0xa5, BYTES); // a reader finds nothing there
    owner = -1;
}
static void shared_libco_make(int id, void (*run)(void))
{
    if (stack == NULL)
        stack = calloc(1, BYTES);
    announced[id] = prof_coro_create_shared(stack, BYTES, names[id]);
    keep();
    all[id] = shape_stack(stack, BYTES, run);
    owner = id;
}
static void shared_libco_enter(int id)
{
    if (owner != id) {
        keep();
        memcpy(all[id], saved[id].bytes, saved[id].len);
        owner = id;
    }
    nameless_enter(id);
}
#define shared_libco_leave nameless_leave

// The same, copied out by the loop after each turn: aco_yield() to the main coroutine.
#define shared_libaco_make shared_libco_make
static void shared_libaco_enter(int id)
{
    shared_libco_enter(id);
    keep();
}
#define shared_libaco_leave nameless_leave

#define SHAPE(name) {#name, name##_make, name##_enter, name##_leave},
#if !defined(SHAPE_ROWS)
#define SHAPE_ROWS                                                                                                     \
    SHAPE(brpc)                                                                                                        \
    SHAPE(libaco)                                                                                                      \
    SHAPE(libco_tencent)                                                                                               \
    SHAPE(libco_higan)                                                                                                 \
    SHAPE(minicoro)                                                                                                    \
    SHAPE(photon)                                                                                                      \
    SHAPE(photon_flags)                                                                                                \
    SHAPE(libtask)                                                                                                     \
    SHAPE(libdill)                                                                                                     \
    SHAPE(nameless)                                                                                                    \
    SHAPE(shared_libco)                                                                                                \
    SHAPE(shared_libaco)
#endif

static const struct shape {
    const char *name;
    void (*make)(int id, void (*run)(void));
    void (*enter)(int id), (*leave)(int id);
} shapes[] = {SHAPE_ROWS};
static const struct shape *shape = shapes;

int shape_choose(const char *name)
{
    for (size_t i = 0; i < sizeof(shapes) / sizeof(shapes[0]); i++)
        if (strcmp(shapes[i].name, name) == 0) {
            shape = &shapes[i];
            return 1;
        }
    return 0;
}

void shape_make(int id, void (*run)(void))
{
    shape->make(id, run);
}
void shape_enter(int id)
{
    shape->enter(id);
}
void shape_leave(int id)
{
    shape->leave(id);
}
