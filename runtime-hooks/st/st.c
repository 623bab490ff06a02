// SPDX-License-Identifier: MIT
// State Threads: its switch routines are hidden, but it calls back before a thread is left and after one is entered
// again. A thread's first entry is not called back; our own entry function tells it.
//
// A switch is reported once, after it has happened, with the place that the callback before it has noted.
// Source: State Threads 1.9, common.h (struct _st_thread, _ST_SWITCH_CONTEXT), sched.c (st_thread_create).
#include <stdbool.h>
#include <stddef.h>

#include "coro/announce.h"
#include "coro/threads.h"
#include "interpose/interpose.h"
#include "signal/region.h"
#include "unwind/unwind.h"

typedef void callback_t(void);
typedef callback_t *set_callback_t(callback_t *);
typedef int init_t(void);
typedef void *start_t(void *);
typedef struct st_thread *create_t(start_t *, void *, int, int);

typedef struct st_stack {
    void *links[2];
    char *vaddr;
    int vaddr_size, stk_size;
    char *stk_bottom, *stk_top;
    void *sp;
} st_stack_t;

struct st_thread { // its beginning
    int state, flags;
    start_t *start;
    void *argument, *result;
    st_stack_t *stack;
};

static callback_t *program_in, *program_out; // the program's own callbacks
static bool in_init;
static __thread gp_park_t left __attribute__((tls_model("initial-exec"))); // where the last thread was left

static void st_told_out(void)
{
    if (program_out != NULL)
        program_out();
    const uintptr_t *frame = __builtin_frame_address(0);
    left = (gp_park_t){.pc = (uintptr_t)__builtin_return_address(0), .sp = (uintptr_t)(frame + 2), .fp = frame[0]};
}

static void st_entered(uintptr_t sp)
{
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) && left.sp != 0)
        gp_switch_to_stack(sp, &left);
}

static void st_told_in(void)
{
    st_entered((uintptr_t)__builtin_frame_address(0));
    if (program_in != NULL)
        program_in();
}

// The function that a thread was to run. Cells are used again; where there is none, the first entry is not reported.
typedef struct cell {
    struct cell *next;
    start_t *start;
    void *argument;
} cell_t;

static cell_t cells[4096], *free_cells;
static unsigned used_cells;

static cell_t *st_take_cell(void)
{
    gp_lock(&gp_registry_lock);
    cell_t *cell = free_cells;
    if (cell != NULL)
        free_cells = cell->next;
    else if (used_cells < sizeof(cells) / sizeof(cells[0]))
        cell = &cells[used_cells++];
    gp_unlock(&gp_registry_lock);
    return cell;
}

static void st_give_cell(cell_t *cell)
{
    gp_lock(&gp_registry_lock);
    cell->next = free_cells;
    free_cells = cell;
    gp_unlock(&gp_registry_lock);
}

// Its caller is where a stack ends: st_thread_create()'s frame is long gone, and nothing stands above.
GP_ENTRY_CODE static void *st_run(void *argument)
{
    static bool entry_known;
    uintptr_t caller = (uintptr_t)__builtin_return_address(0);
    cell_t cell = *(cell_t *)argument;
    st_give_cell(argument);
    if (!entry_known)
        gp_unwind_entry_add(caller - 1, caller);
    entry_known = true;
    st_entered((uintptr_t)__builtin_frame_address(0));
    return cell.start(cell.argument);
}

// Is this a thread as this file knows them, at the top of its own stack?
static bool st_is_understood(const struct st_thread *thread)
{
    uintptr_t at = (uintptr_t)thread, stack = (uintptr_t)thread->stack;
    if (stack == 0 || stack % sizeof(void *) != 0)
        return false;
    uintptr_t lo = (uintptr_t)thread->stack->stk_bottom, hi = (uintptr_t)thread->stack->stk_top;
    return at >= lo && at < hi && hi - lo == (uintptr_t)thread->stack->stk_size;
}

PROF_API struct st_thread *st_thread_create(start_t *start, void *argument, int joinable, int stack_size);
PROF_API int st_init(void);
PROF_API callback_t *st_set_switch_in_cb(callback_t *callback);
PROF_API callback_t *st_set_switch_out_cb(callback_t *callback);

struct st_thread *st_thread_create(start_t *start, void *argument, int joinable, int stack_size)
{
    create_t *real = GP_ORIGINAL(create_t, "st_thread_create");
    cell_t *cell = st_take_cell();
    if (cell == NULL)
        return real(start, argument, joinable, stack_size);
    *cell = (cell_t){.start = start, .argument = argument};
    struct st_thread *thread = real(st_run, cell, joinable, stack_size);
    if (thread == NULL)
        st_give_cell(cell);
    else if (st_is_understood(thread))
        gp_coro_announce((uintptr_t)thread->stack->stk_bottom, (uintptr_t)thread->stack->stk_top, (uintptr_t)start,
                         in_init ? "[idle]" : NULL);
    return thread;
}

int st_init(void)
{
    set_callback_t *set_in = gp_interpose_find("st_set_switch_in_cb"),
                   *set_out = gp_interpose_find("st_set_switch_out_cb");
    in_init = true;
    int result = GP_ORIGINAL(init_t, "st_init")();
    in_init = false;
    if (result == 0 && set_in != NULL && set_out != NULL) {
        callback_t *before = set_in(st_told_in);
        program_in = before != st_told_in ? before : program_in;
        before = set_out(st_told_out);
        program_out = before != st_told_out ? before : program_out;
    }
    return result;
}

callback_t *st_set_switch_in_cb(callback_t *callback)
{
    return __atomic_exchange_n(&program_in, callback, __ATOMIC_ACQ_REL);
}

callback_t *st_set_switch_out_cb(callback_t *callback)
{
    return __atomic_exchange_n(&program_out, callback, __ATOMIC_ACQ_REL);
}
