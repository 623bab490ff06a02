// SPDX-License-Identifier: MIT
// Threads created while greenprof is loaded: pthread_create is interposed, so each has its alternate stack before its
// first coroutine runs.
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "coro/main_stack.h"
#include "coro/process_id.h"
#include "coro/registry.h"
#include "coro/threads.h"
#include "coro/tsan_hints.h"
#include "signal/mask.h"

typedef int create_t(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

static create_t *real_create;
static bool is_behind_checker;

typedef struct descriptor_stack { // of struct pthread
    uintptr_t block;
    size_t bytes, guard;
} descriptor_stack_t;

#ifdef __GLIBC__
// The descriptor that pthread_self() points to says where the thread's stack is: a block, at its upper end the
// descriptor itself, at its lower end the guard. The place in the descriptor is found by what it must say of the stack
// under this call. pthread_getattr_np() tells the same, but allocates: the C library gives the thread a heap for it, 64
// MB of address space, which the program may never ask for. Source: glibc, nptl/descr.h: stackblock, stackblock_size,
// guardsize.
static bool thread_hook_read_descriptor(uintptr_t here, uintptr_t *lo, uintptr_t *hi)
{
    enum { DESCRIPTOR_BYTES = 2048, ABOVE_BYTES = 1 << 20, PAGE_MASK = 4095 }; // less than any glibc's is long
    const uintptr_t most = UINT64_C(1) << 40;
    uintptr_t self = (uintptr_t)pthread_self();
    descriptor_stack_t stack;
    for (size_t at = 0; at + sizeof(stack) <= DESCRIPTOR_BYTES; at += sizeof(uintptr_t)) {
        memcpy(&stack, (const void *)(self + at), sizeof(stack)); // NOLINT(performance-no-int-to-ptr)
        uintptr_t end = stack.block + stack.bytes;
        if (end - self < DESCRIPTOR_BYTES || end - self > ABOVE_BYTES || here - stack.block >= stack.bytes ||
            stack.guard >= stack.bytes || stack.bytes > most || ((stack.block | stack.bytes | stack.guard) & PAGE_MASK))
            continue; // a stack of the program's own need not begin at a page: it is asked for
        *lo = stack.block + stack.guard;
        *hi = end;
        return true;
    }
    return false;
}
#else // musl's pthread_getattr_np() allocates nothing
static bool thread_hook_read_descriptor(uintptr_t here, uintptr_t *lo, uintptr_t *hi)
{
    (void)here, (void)lo, (void)hi;
    return false;
}
#endif

void gp_thread_own_stack(uintptr_t *lo, uintptr_t *hi)
{
    pthread_attr_t attr;
    void *address = NULL;
    size_t size = 0;
    uintptr_t here = (uintptr_t)__builtin_frame_address(0);
    *lo = *hi = 0;
    if ((pid_t)syscall(SYS_gettid) == getpid())
        gp_main_stack(lo, hi);
    if (here - *lo < *hi - *lo)
        return;
    *lo = *hi = 0; // a child that another thread has forked
    if (thread_hook_read_descriptor(here, lo, hi))
        return;
    if (pthread_getattr_np(pthread_self(), &attr) != 0)
        return;
    pthread_attr_getstack(&attr, &address, &size);
    pthread_attr_destroy(&attr);
    *lo = (uintptr_t)address;
    *hi = (uintptr_t)address + size;
}

// clang's ThreadSanitizer is part of the program: its pthread_create() calls ours, and the new thread must first report
// there before it calls any watched function.
static bool thread_hook_is_called_by_checker(void)
{
    Dl_info first, own;
    return gp_tsan_hints_is_there() && dladdr(dlsym(RTLD_DEFAULT, "pthread_create"), &first) != 0 &&
           dladdr(&real_create, &own) != 0 && first.dli_fbase != own.dli_fbase;
}

void gp_thread_hook_init(void)
{
    if (real_create != NULL)
        return;
    is_behind_checker = thread_hook_is_called_by_checker();
    real_create = (create_t *)(uintptr_t)dlsym(RTLD_NEXT, "pthread_create");
}

static int thread_hook_create_unseen(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *),
                                     void *argument)
{
    gp_thread_hook_init();
    return real_create != NULL ? real_create(thread, attr, run, argument) : ENOSYS;
}

static __thread bool is_unseen __attribute__((tls_model("initial-exec"))); // the one that is being created

int gp_thread_create_unseen(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument,
                            bool is_shown)
{
    is_unseen = true;
    int error =
        is_shown ? pthread_create(thread, attr, run, argument) : thread_hook_create_unseen(thread, attr, run, argument);
    is_unseen = false;
    return error;
}

void gp_thread_hides_what_it_creates(void)
{
    is_unseen = true;
}

// A small allocation per thread start, from a list of reused cells: the host's malloc may itself create threads.
typedef struct cell {
    struct cell *next;
    void *(*run)(void *);
    void *argument;
    uint64_t mask_believed; // inherited, as the mask itself
    bool is_left;           // and so is this
} cell_t;

static cell_t cells[256], *free_cells;
static unsigned used_cells;
static pthread_mutex_t cells_lock = PTHREAD_MUTEX_INITIALIZER; // an innermost one

static cell_t *thread_hook_take_cell(void)
{
    gp_lock(&cells_lock);
    cell_t *cell = free_cells;
    if (cell != NULL)
        free_cells = cell->next;
    else if (used_cells < sizeof(cells) / sizeof(cells[0]))
        cell = &cells[used_cells++];
    gp_unlock(&cells_lock);
    return cell;
}

static void thread_hook_give_cell(cell_t *cell)
{
    gp_lock(&cells_lock);
    cell->next = free_cells;
    free_cells = cell;
    gp_unlock(&cells_lock);
}

void gp_threads_hold_starts(void)
{
    gp_lock(&cells_lock);
}

void gp_threads_let_starts_go(void)
{
    gp_unlock(&cells_lock);
}

GP_ENTRY_CODE static void *thread_hook_run_sampled(void *argument)
{
    cell_t cell = *(cell_t *)argument;
    thread_hook_give_cell(argument);
    gp_mask_believed = cell.mask_believed;
    if (cell.is_left)
        gp_process_leave_thread();
    gp_thread_attach();
    return cell.run(cell.argument);
}

extern const char __start_gp_thread_entry[], __stop_gp_thread_entry[]; // made by the linker

void gp_thread_entry_code(uint64_t range[2])
{
    range[0] = (uintptr_t)__start_gp_thread_entry;
    range[1] = (uintptr_t)__stop_gp_thread_entry;
}

PROF_API int pthread_create(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *), void *argument)
{
    gp_thread_hook_init();
    // Without a cell it is greenprof's own, or found at its first switch or by the sampler: as hundreds are starting.
    cell_t *cell = is_unseen || is_behind_checker ? NULL : thread_hook_take_cell();
    if (cell == NULL)
        return thread_hook_create_unseen(thread, attr, run, argument);
    cell->run = run;
    cell->argument = argument;
    cell->mask_believed = gp_mask_believed;
    cell->is_left = gp_process_is_left();
    int error = thread_hook_create_unseen(thread, attr, thread_hook_run_sampled, cell);
    if (error != 0)
        thread_hook_give_cell(cell);
    return error;
}
