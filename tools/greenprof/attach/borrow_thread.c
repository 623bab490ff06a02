// SPDX-License-Identifier: MIT
#include "borrow_thread.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "message.h"
#include "new_thread.h"
#include "pause_others.h"
#include "safe_point.h"
#include "seccomp.h"
#include "thread_call.h"
#include "thread_stop.h"

enum {
    LENT_BYTES = 1 << 18, // a stack; pages that are not touched cost nothing
    TEXT_BYTES = 1 << 15, // at its upper end; the bytes are below
    PAUSE_NS = 5000000,   // between two rounds through the threads
    GLIBC_SIGNAL = 33,    // by which all threads change their user: who asks for that waits for all
};

// Patience: for a place where a thread may be borrowed; for a thread to stop, which takes a processor (and asleep in
// the kernel, uninterruptible, it does not); for a lock of the borrowed thread's; for one of the new thread's; for its
// end.
#define PATIENCE_NS 10000000000ull
#define STOP_NS     10000000000ull
#define BORROWED_NS 1000000000ull
#define NEW_NS      10000000000ull
#define END_NS      1000000000ull

struct gp_borrow_thread {
    pid_t pid;
    const gp_target_modules_t *modules;
    gp_thread_call_t call; // first of the program's thread, then of the new one
    uint64_t return_at;    // a return instruction in its C library
    uint64_t lent, text_at;
    bool is_in_call; // which has not come back
};

static uint64_t borrow_thread_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void borrow_thread_pause_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

// --- a thread of the program's

// The thread is at an interrupt stop: as it was, and on its way.
static void borrow_thread_let_go(gp_borrow_thread_t *borrowed)
{
    gp_thread_call_restore(&borrowed->call);
    ptrace(PTRACE_DETACH, borrowed->call.tid, 0, 0);
}

static bool borrow_thread_is_at_safe_place(const gp_borrow_thread_t *borrowed, const gp_safe_places_t *places)
{
    return gp_is_safe_place(places, borrowed->call.tid, (long)borrowed->call.saved.orig_rax);
}

// Stop one thread, if it is at a place where it may be borrowed. Returns 0, -EAGAIN where it is not, or another
// negative errno value.
static int borrow_thread_try_thread(gp_borrow_thread_t *borrowed, const gp_safe_places_t *places)
{
    pid_t tid = borrowed->call.tid;
    if (ptrace(PTRACE_SEIZE, tid, 0, PTRACE_O_TRACESYSGOOD) != 0)
        return errno == ESRCH ? -EAGAIN : -errno;
    if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) != 0)
        return -EAGAIN;
    int error = gp_thread_stop_wait_asked(tid, STOP_NS);
    if (error != 0) // a thread that does not stop goes on when this process ends
        return error == -ESRCH ? -EAGAIN : error;
    if (!gp_thread_call_save(&borrowed->call)) {
        ptrace(PTRACE_DETACH, tid, 0, 0);
        return -EIO;
    }
    if (borrow_thread_is_at_safe_place(borrowed, places))
        return 0;
    borrow_thread_let_go(borrowed);
    return -EAGAIN;
}

// Try a thread that is stopped already, and stays so where it may not be borrowed. Returns as
// borrow_thread_try_thread().
static int borrow_thread_try_held(gp_borrow_thread_t *borrowed, const gp_safe_places_t *places)
{
    if (!gp_thread_call_save(&borrowed->call) || !borrow_thread_is_at_safe_place(borrowed, places) ||
        ptrace(PTRACE_SETOPTIONS, borrowed->call.tid, 0, PTRACE_O_TRACESYSGOOD) != 0)
        return -EAGAIN;
    gp_pause_others_give(borrowed->call.tid);
    return 0;
}

typedef struct search {
    gp_borrow_thread_t *borrowed;
    const gp_safe_places_t *places;
} search_t;

static int borrow_thread_visit(pid_t tid, void *argument)
{
    const search_t *search = argument;
    search->borrowed->call.tid = tid;
    if (gp_pause_others_holds(tid))
        return borrow_thread_try_held(search->borrowed, search->places);
    char state = gp_thread_stop_state(search->borrowed->pid, tid, NULL);
    return state == 'S' || state == 'R' ? borrow_thread_try_thread(search->borrowed, search->places) : -EAGAIN;
}

// Go once through all threads. Returns as borrow_thread_try_thread().
static int borrow_thread_try_all(gp_borrow_thread_t *borrowed, const gp_safe_places_t *places)
{
    search_t search = {borrowed, places};
    return gp_thread_stop_each(borrowed->pid, borrow_thread_visit, &search);
}

static int borrow_thread_find_thread(gp_borrow_thread_t *borrowed)
{
    gp_safe_places_t places;
    uint64_t end = borrow_thread_now_ns() + PATIENCE_NS;
    int error = gp_safe_places_read(&places, borrowed->modules);
    if (error == 0)
        error = borrow_thread_try_all(borrowed, &places);
    while (error == -EAGAIN && borrow_thread_now_ns() < end) {
        borrow_thread_pause_ns(PAUSE_NS);
        gp_pause_others_look();
        error = borrow_thread_try_all(borrowed, &places);
    }
    gp_safe_places_free(&places);
    return error;
}

static int borrow_thread_get_memory(gp_borrow_thread_t *borrowed)
{
    const uint64_t arguments[6] = {0, LENT_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
    int64_t result = 0;
    int error = gp_thread_call_system(&borrowed->call, SYS_mmap, arguments, &result);
    if (error == 0 && result < 0)
        error = (int)result;
    if (error != 0)
        return error;
    borrowed->lent = (uint64_t)result;
    borrowed->text_at = borrowed->lent + LENT_BYTES - TEXT_BYTES;
    borrowed->call.top = borrowed->text_at - GP_BORROWED_BYTES - sizeof(uint64_t);
    return 0;
}

static void borrow_thread_give_memory_back(gp_borrow_thread_t *borrowed)
{
    const uint64_t arguments[6] = {borrowed->lent, LENT_BYTES};
    int64_t result;
    if (borrowed->lent != 0 && gp_thread_call_system(&borrowed->call, SYS_munmap, arguments, &result) == 0)
        borrowed->lent = 0;
}

// Signals that a call may raise itself come through: blocked, they would end the process.
static int borrow_thread_block_signals(const gp_borrow_thread_t *borrowed)
{
    uint64_t mask = ~(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) |
                      1ull << (SIGTRAP - 1) | 1ull << (SIGSYS - 1) | 1ull << (GLIBC_SIGNAL - 1));
    return ptrace(PTRACE_SETSIGMASK, borrowed->call.tid, sizeof(mask), &mask) == 0 ? 0 : -errno;
}

// Take the new thread. Its last call returns to 0 while somebody waits there for it; else to a return instruction, and
// by it once more.
static int borrow_thread_take_new(gp_borrow_thread_t *borrowed, pid_t tid)
{
    gp_thread_call_t *call = &borrowed->call;
    call->limit_ns = NEW_NS;
    int error = gp_new_thread_take(call, tid);
    if (error != 0)
        return error;
    call->top = call->saved.rsp - 2 * sizeof(borrowed->return_at);
    return gp_thread_call_write(call, call->top + sizeof(borrowed->return_at), &borrowed->return_at,
                                sizeof(borrowed->return_at));
}

// Give the program's thread back. Only at a stop like the first one does the kernel look whether a system call is to be
// begun again.
static void borrow_thread_give_back(gp_borrow_thread_t *borrowed)
{
    pid_t tid = borrowed->call.tid;
    if (ptrace(PTRACE_INTERRUPT, tid, 0, 0) == 0 && ptrace(PTRACE_CONT, tid, 0, 0) == 0)
        gp_thread_stop_wait_asked(tid, STOP_NS); // only a stopped thread can be let go
    borrow_thread_let_go(borrowed);
}

static int borrow_thread_have_one_created(gp_borrow_thread_t *borrowed)
{
    int error = borrow_thread_block_signals(borrowed);
    if (error == 0)
        error = borrow_thread_get_memory(borrowed);
    pid_t made = error == 0 ? gp_new_thread_create(&borrowed->call, borrowed->modules, borrowed->text_at) : error;
    if (made < 0)
        borrow_thread_give_memory_back(borrowed);
    borrow_thread_give_back(borrowed);
    return made < 0 ? made : borrow_thread_take_new(borrowed, made);
}

static void borrow_thread_say(const char *subject, int error)
{
    char scope[16] = "";
    FILE *file = error == -EPERM ? fopen("/proc/sys/kernel/yama/ptrace_scope", "re") : NULL;
    if (file != NULL && fgets(scope, sizeof(scope), file) == NULL)
        scope[0] = '\0';
    if (file != NULL)
        fclose(file);
    if (error == -EPERM && scope[0] > '0')
        gp_fail(subject, "may not be traced: kernel.yama.ptrace_scope is %c; root may, or with 0 its own user",
                scope[0]);
    else if (error == -EPERM)
        gp_fail(subject, "may not be traced: a debugger is attached to it, or CAP_SYS_PTRACE is needed");
    else if (error == -EAGAIN)
        gp_fail(subject, "none of its threads came to a place where it can be borrowed within 10 s");
    else if (error == -ETIMEDOUT)
        gp_fail(subject,
                "another of its threads holds a lock by which threads are created: it is as it was; try again");
    else if (error == -ENOENT)
        gp_fail(subject, "its C library has no syscall() that is known");
    else if (error == -ENOEXEC)
        gp_fail(subject, "its C library has no pthread_create() that is known");
    else
        gp_fail(subject, "cannot be attached to: %s", strerror(-error));
}

static int borrow_thread_borrow(gp_borrow_thread_t *borrowed, bool is_carried, const char *subject)
{
    static const unsigned char enter[] = {0x0f, 0x05}, leave[] = {0xc3};
    const gp_target_module_t *libc = gp_target_module_named(borrowed->modules, "libc.so.6");
    gp_thread_call_t *call = &borrowed->call;
    int error = -ENOENT;
    if (libc != NULL) {
        call->syscall_at = gp_target_find_code(borrowed->modules, libc, "syscall", enter, sizeof(enter));
        borrowed->return_at = gp_target_find_code(borrowed->modules, libc, "syscall", leave, sizeof(leave));
    }
    if (call->syscall_at != 0 && borrowed->return_at != 0)
        error = borrow_thread_find_thread(borrowed);
    if (error == 0 && gp_seccomp_judge(borrowed->pid, call->tid, call->syscall_at, is_carried, subject) != 0) {
        borrow_thread_let_go(borrowed);
        return EXIT_FAILED;
    }
    if (error == 0)
        error = borrow_thread_have_one_created(borrowed);
    if (error != 0)
        borrow_thread_say(subject, error);
    return error;
}

gp_borrow_thread_t *gp_borrow(const gp_target_modules_t *modules, bool is_carried, const char *subject)
{
    gp_borrow_thread_t *borrowed = calloc(1, sizeof(*borrowed));
    if (borrowed == NULL) {
        borrow_thread_say(subject, -ENOMEM);
        return NULL;
    }
    borrowed->pid = modules->pid;
    borrowed->modules = modules;
    borrowed->call.limit_ns = BORROWED_NS;
    if (borrow_thread_borrow(borrowed, is_carried, subject) == 0)
        return borrowed;
    free(borrowed);
    return NULL;
}

// --- the new one

// In the middle of dlopen(), which takes the loader's lock first, and has mapped nothing yet: it has nothing.
static bool borrow_thread_waits_for_loader(const gp_borrow_thread_t *borrowed)
{
    struct user_regs_struct registers;
    gp_target_modules_t now;
    const gp_target_module_t *loader = gp_target_module_named(borrowed->modules, "ld-");
    if (loader == NULL || ptrace(PTRACE_GETREGS, borrowed->call.tid, 0, &registers) != 0 ||
        (long)registers.orig_rax != SYS_futex || registers.rdi < loader->lo || registers.rdi >= loader->hi)
        return false;
    bool waits = gp_target_modules_read(borrowed->pid, &now) == 0 &&
                 gp_target_module_named(&now, "libgreenprof") == NULL &&
                 gp_target_module_named(&now, "memfd:libgreenprof") == NULL;
    gp_target_modules_free(&now);
    return waits;
}

int gp_borrow_thread_return(gp_borrow_thread_t *borrowed)
{
    gp_thread_call_t *call = &borrowed->call;
    int status, number = 0, error = 0;
    bool ends_later = borrowed->is_in_call && !borrow_thread_waits_for_loader(borrowed);
    if (ends_later) {
        error = gp_thread_call_write(call, call->top, &borrowed->return_at, sizeof(borrowed->return_at));
    } else {
        borrow_thread_give_memory_back(borrowed);
        gp_thread_call_restore(call);
    }
    if (!ends_later && ptrace(PTRACE_CONT, call->tid, 0, 0) == 0) {
        error = gp_thread_stop_wait(call->tid, END_NS, &status);
        if (error == -ETIMEDOUT && ptrace(PTRACE_INTERRUPT, call->tid, 0, 0) == 0)
            gp_thread_stop_wait_asked(call->tid, STOP_NS);
        else if (error == 0 && status >> 16 == 0)
            number = WSTOPSIG(status); // glibc waits for an answer to its signal
    }
    ptrace(PTRACE_DETACH, call->tid, 0, number);
    free(borrowed);
    return error;
}

uint64_t gp_borrow_thread_text(gp_borrow_thread_t *borrowed, const char *text)
{
    uint64_t address = borrowed->text_at;
    size_t size = strlen(text) + 1;
    if (size > borrowed->lent + LENT_BYTES - address || gp_thread_call_write(&borrowed->call, address, text, size) != 0)
        return 0;
    borrowed->text_at += size;
    return address;
}

uint64_t gp_borrow_thread_bytes(gp_borrow_thread_t *borrowed, const void *bytes, size_t size)
{
    uint64_t address = borrowed->lent + LENT_BYTES - TEXT_BYTES - GP_BORROWED_BYTES;
    return size <= GP_BORROWED_BYTES && gp_thread_call_write(&borrowed->call, address, bytes, size) == 0 ? address : 0;
}

int gp_borrow_thread_read_text(const gp_borrow_thread_t *borrowed, uint64_t address, char *text, size_t size)
{
    for (size_t length = 0; length < size; length++) {
        if (gp_thread_call_read(&borrowed->call, address + length, text + length, 1) != 0)
            return -EFAULT;
        if (text[length] == '\0')
            return 0;
    }
    text[size - 1] = '\0';
    return 0;
}

int gp_borrow_thread_call(gp_borrow_thread_t *borrowed, uint64_t function, uint64_t a, uint64_t b, uint64_t *result)
{
    int error = gp_thread_call_function(&borrowed->call, function, (const uint64_t[]){a, b, 0}, result);
    borrowed->is_in_call = error == -ETIMEDOUT;
    return error;
}

int gp_borrow_thread_system_call(gp_borrow_thread_t *borrowed, long number, const uint64_t arguments[6],
                                 int64_t *result)
{
    return gp_thread_call_system(&borrowed->call, number, arguments, result);
}
