// SPDX-License-Identifier: MIT
#include "borrowed.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "filter.h"
#include "message.h"
#include "quiet.h"
#include "safe_place.h"
#include "thread_stop.h"

enum {
    STACK_BYTES = 1 << 20,        // pages that are not touched cost nothing
    TEXT_BYTES = 32768,           // at its upper end
    STATE_BYTES = 65536,          // of the extended registers, at most
    LOOK_NS = 10000000,           // between two looks at others, while a call is waited for
    PAUSE_NS = 5000000,           // between two rounds through the threads
    SYSCALL_STOP = SIGTRAP | 128, // PTRACE_O_TRACESYSGOOD
    TRAP_FLAG = 0x100,
    DIRECTION_FLAG = 0x400,
};

// How long is waited: for a place where a thread may be borrowed; for a thread to stop, which takes a processor, and
// one that sleeps in the kernel, uninterruptible, does not; and for a call, whose file may be on a slow disk.
#define PATIENCE_NS   10000000000ull
#define STOP_NS       10000000000ull
#define CALL_LIMIT_NS 300000000000ull

#define NT_STATE 0x202 // NT_X86_XSTATE

struct gp_borrowed {
    pid_t pid, tid;
    uint64_t syscall_at; // a system call instruction in its C library
    struct user_regs_struct saved;
    unsigned char state[STATE_BYTES];
    size_t state_size;
    uint64_t mask;
    uint64_t stack, text_at;
};

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void pause_ns(long ns)
{
    nanosleep(&(struct timespec){.tv_nsec = ns}, NULL);
}

static bool save(gp_borrowed_t *borrowed)
{
    struct iovec state = {borrowed->state, sizeof(borrowed->state)};
    if (ptrace(PTRACE_GETREGS, borrowed->tid, 0, &borrowed->saved) != 0 ||
        ptrace(PTRACE_GETREGSET, borrowed->tid, NT_STATE, &state) != 0 ||
        ptrace(PTRACE_GETSIGMASK, borrowed->tid, sizeof(borrowed->mask), &borrowed->mask) != 0)
        return false;
    borrowed->state_size = state.iov_len;
    return true;
}

static void restore(gp_borrowed_t *borrowed)
{
    struct user_regs_struct registers = borrowed->saved;
    struct iovec state = {borrowed->state, borrowed->state_size};
    gp_thread_stop_restart_call(&registers);
    ptrace(PTRACE_SETREGSET, borrowed->tid, NT_STATE, &state);
    ptrace(PTRACE_SETREGS, borrowed->tid, 0, &registers);
    ptrace(PTRACE_SETSIGMASK, borrowed->tid, sizeof(borrowed->mask), &borrowed->mask);
}

// Registers for something else than what the thread was at: no system call of its is begun again meanwhile.
static struct user_regs_struct fresh(const gp_borrowed_t *borrowed)
{
    struct user_regs_struct registers = borrowed->saved;
    registers.orig_rax = (unsigned long long)-1;
    registers.eflags &= ~(unsigned long long)(TRAP_FLAG | DIRECTION_FLAG);
    return registers;
}

// As gp_thread_stop_wait(). What the call needs may be held by a thread that is stopped.
static int wait_for_call(const gp_borrowed_t *borrowed, int *status)
{
    uint64_t end = now_ns() + CALL_LIMIT_NS;
    int error;
    do {
        error = gp_thread_stop_wait(borrowed->tid, LOOK_NS, status);
        gp_quiet_look();
    } while (error == -ETIMEDOUT && now_ns() < end);
    return error;
}

static int run_to_syscall_stop(const gp_borrowed_t *borrowed)
{
    int status, error;
    do {
        if (ptrace(PTRACE_SYSCALL, borrowed->tid, 0, 0) != 0)
            return -ESRCH;
        error = wait_for_call(borrowed, &status);
    } while (error == 0 && gp_thread_stop_is_asked(status));
    return error != 0 || WSTOPSIG(status) == SYSCALL_STOP ? error : -EFAULT;
}

int gp_borrowed_system_call(gp_borrowed_t *borrowed, long number, const uint64_t arguments[6], int64_t *result)
{
    struct user_regs_struct registers = fresh(borrowed);
    registers.rip = borrowed->syscall_at;
    registers.rax = (unsigned long long)number;
    registers.rdi = arguments[0];
    registers.rsi = arguments[1];
    registers.rdx = arguments[2];
    registers.r10 = arguments[3];
    registers.r8 = arguments[4];
    registers.r9 = arguments[5];
    if (ptrace(PTRACE_SETREGS, borrowed->tid, 0, &registers) != 0)
        return -ESRCH;
    for (int stop = 0; stop < 2; stop++) { // before it, and after
        int error = run_to_syscall_stop(borrowed);
        if (error != 0)
            return error;
    }
    if (ptrace(PTRACE_GETREGS, borrowed->tid, 0, &registers) != 0)
        return -ESRCH;
    *result = (int64_t)registers.rax;
    return 0;
}

// The thread is at an interrupt stop: as it was, and on its way.
static void let_go(gp_borrowed_t *borrowed)
{
    restore(borrowed);
    ptrace(PTRACE_DETACH, borrowed->tid, 0, 0);
}

// Stop one thread, if it is at a place where it may be borrowed. Returns 0, -EAGAIN where it is not, or another
// negative errno value.
static int try_thread(gp_borrowed_t *borrowed, const gp_safe_places_t *places)
{
    if (ptrace(PTRACE_SEIZE, borrowed->tid, 0, PTRACE_O_TRACESYSGOOD) != 0)
        return errno == ESRCH ? -EAGAIN : -errno;
    if (ptrace(PTRACE_INTERRUPT, borrowed->tid, 0, 0) != 0)
        return -EAGAIN;
    int error = gp_thread_stop_wait_asked(borrowed->tid, STOP_NS);
    if (error != 0) // one that does not stop goes on when this process ends
        return error == -ESRCH ? -EAGAIN : error;
    if (!save(borrowed)) {
        ptrace(PTRACE_DETACH, borrowed->tid, 0, 0);
        return -EIO;
    }
    if (gp_is_safe_place(places, borrowed->tid, (long)borrowed->saved.orig_rax))
        return 0;
    let_go(borrowed);
    return -EAGAIN;
}

// One that is stopped already, and stays so where it may not be borrowed. Returns as try_thread().
static int try_held(gp_borrowed_t *borrowed, const gp_safe_places_t *places)
{
    if (!save(borrowed) || !gp_is_safe_place(places, borrowed->tid, (long)borrowed->saved.orig_rax) ||
        ptrace(PTRACE_SETOPTIONS, borrowed->tid, 0, PTRACE_O_TRACESYSGOOD) != 0)
        return -EAGAIN;
    gp_quiet_give(borrowed->tid);
    return 0;
}

typedef struct search {
    gp_borrowed_t *borrowed;
    const gp_safe_places_t *places;
} search_t;

static int visit(pid_t tid, void *argument)
{
    const search_t *search = argument;
    search->borrowed->tid = tid;
    if (gp_quiet_holds(tid))
        return try_held(search->borrowed, search->places);
    char state = gp_thread_stop_state(search->borrowed->pid, tid, NULL);
    return state == 'S' || state == 'R' ? try_thread(search->borrowed, search->places) : -EAGAIN;
}

// One round through the threads. Returns as try_thread().
static int try_all(gp_borrowed_t *borrowed, const gp_safe_places_t *places)
{
    search_t search = {borrowed, places};
    return gp_thread_stop_each(borrowed->pid, visit, &search);
}

static int get_stack(gp_borrowed_t *borrowed)
{
    const uint64_t arguments[6] = {0, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, UINT64_MAX, 0};
    int64_t result = 0;
    int error = gp_borrowed_system_call(borrowed, SYS_mmap, arguments, &result);
    if (error == 0 && result < 0)
        error = (int)result;
    if (error != 0)
        return error;
    borrowed->stack = (uint64_t)result;
    borrowed->text_at = borrowed->stack + STACK_BYTES - TEXT_BYTES;
    return 0;
}

// Signals that a call may raise itself come through: blocked, they would end the process.
static int block_signals(gp_borrowed_t *borrowed)
{
    uint64_t mask = ~(1ull << (SIGSEGV - 1) | 1ull << (SIGBUS - 1) | 1ull << (SIGILL - 1) | 1ull << (SIGFPE - 1) |
                      1ull << (SIGTRAP - 1) | 1ull << (SIGSYS - 1));
    return ptrace(PTRACE_SETSIGMASK, borrowed->tid, sizeof(mask), &mask) == 0 ? 0 : -errno;
}

static int find_thread(gp_borrowed_t *borrowed, const gp_target_modules_t *modules)
{
    gp_safe_places_t places;
    uint64_t end = now_ns() + PATIENCE_NS;
    int error = gp_safe_places_read(&places, modules);
    if (error == 0)
        error = try_all(borrowed, &places);
    while (error == -EAGAIN && now_ns() < end) {
        pause_ns(PAUSE_NS);
        gp_quiet_look();
        error = try_all(borrowed, &places);
    }
    gp_safe_places_free(&places);
    return error;
}

static void say(const char *subject, int error)
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
    else if (error == -ENOENT)
        gp_fail(subject, "its C library has no syscall() that is known");
    else
        gp_fail(subject, "cannot be attached to: %s", strerror(-error));
}

gp_borrowed_t *gp_borrow(const gp_target_modules_t *modules, bool is_carried, const char *subject)
{
    static const unsigned char instruction[] = {0x0f, 0x05};
    const gp_target_module_t *libc = gp_target_module_named(modules, "libc.so.6");
    gp_borrowed_t *borrowed = calloc(1, sizeof(*borrowed));
    if (borrowed == NULL || libc == NULL) {
        say(subject, borrowed == NULL ? -ENOMEM : -ENOENT);
        free(borrowed);
        return NULL;
    }
    borrowed->pid = modules->pid;
    borrowed->syscall_at = gp_target_find_code(modules, libc, "syscall", instruction, sizeof(instruction));
    int error = borrowed->syscall_at != 0 ? find_thread(borrowed, modules) : -ENOENT;
    if (error != 0) {
        say(subject, error);
        free(borrowed);
        return NULL;
    }
    if (gp_filter_judge(borrowed->pid, borrowed->tid, borrowed->syscall_at, is_carried, subject) != 0) {
        let_go(borrowed);
        free(borrowed);
        return NULL;
    }
    error = block_signals(borrowed);
    if (error == 0)
        error = get_stack(borrowed);
    if (error == 0)
        return borrowed;
    gp_borrowed_return(borrowed);
    say(subject, error);
    return NULL;
}

int gp_borrowed_return(gp_borrowed_t *borrowed)
{
    const uint64_t arguments[6] = {borrowed->stack, STACK_BYTES};
    int64_t result;
    int error = borrowed->stack != 0 ? gp_borrowed_system_call(borrowed, SYS_munmap, arguments, &result) : 0;
    // Only at a stop like the first one does the kernel look whether a system call is to be begun again.
    if (ptrace(PTRACE_INTERRUPT, borrowed->tid, 0, 0) == 0 && ptrace(PTRACE_CONT, borrowed->tid, 0, 0) == 0)
        error = gp_thread_stop_wait_asked(borrowed->tid, CALL_LIMIT_NS); // it cannot be let go as it is
    let_go(borrowed);
    free(borrowed);
    return error;
}

static int copy(const gp_borrowed_t *borrowed, uint64_t address, const void *bytes, size_t size)
{
    struct iovec mine = {(void *)(uintptr_t)bytes, size}, theirs = {(void *)(uintptr_t)address, size};
    ssize_t done = process_vm_writev(borrowed->tid, &mine, 1, &theirs, 1, 0);
    return done == (ssize_t)size ? 0 : done < 0 ? -errno : -EFAULT;
}

uint64_t gp_borrowed_text(gp_borrowed_t *borrowed, const char *text)
{
    uint64_t address = borrowed->text_at;
    size_t size = strlen(text) + 1;
    if (size > borrowed->stack + STACK_BYTES - address || copy(borrowed, address, text, size) != 0)
        return 0;
    borrowed->text_at += size;
    return address;
}

int gp_borrowed_read_text(const gp_borrowed_t *borrowed, uint64_t address, char *text, size_t size)
{
    size_t length = 0;
    for (; length < size - 1; length++) {
        struct iovec mine = {text + length, 1}, theirs = {(void *)(uintptr_t)(address + length), 1};
        if (process_vm_readv(borrowed->tid, &mine, 1, &theirs, 1, 0) != 1)
            return -EFAULT;
        if (text[length] == '\0')
            return 0;
    }
    text[length] = '\0';
    return 0;
}

// The call returns to address 0: that fault is its end. Returns as gp_borrowed_call().
static int wait_for_return(const gp_borrowed_t *borrowed, uint64_t *result)
{
    struct user_regs_struct registers;
    int status, error;
    do {
        if (ptrace(PTRACE_CONT, borrowed->tid, 0, 0) != 0)
            return -ESRCH;
        error = wait_for_call(borrowed, &status);
    } while (error == 0 && gp_thread_stop_is_asked(status));
    if (error == -ETIMEDOUT && ptrace(PTRACE_INTERRUPT, borrowed->tid, 0, 0) == 0)
        gp_thread_stop_wait_asked(borrowed->tid, STOP_NS);
    if (error != 0)
        return error;
    if (ptrace(PTRACE_GETREGS, borrowed->tid, 0, &registers) != 0)
        return -ESRCH;
    *result = registers.rax;
    return WSTOPSIG(status) == SIGSEGV && registers.rip == 0 ? 0 : -EFAULT;
}

int gp_borrowed_call(gp_borrowed_t *borrowed, uint64_t function, uint64_t a, uint64_t b, uint64_t *result)
{
    const uint64_t nowhere = 0, top = borrowed->stack + STACK_BYTES - TEXT_BYTES - sizeof(nowhere);
    struct user_regs_struct registers = fresh(borrowed);
    int error = copy(borrowed, top, &nowhere, sizeof(nowhere));
    if (error != 0)
        return error;
    registers.rip = function;
    registers.rsp = top;
    registers.rbp = 0;
    registers.rdi = a;
    registers.rsi = b;
    registers.rax = 0;
    if (ptrace(PTRACE_SETREGS, borrowed->tid, 0, &registers) != 0)
        return -ESRCH;
    return wait_for_return(borrowed, result);
}
