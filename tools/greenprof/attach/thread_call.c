// SPDX-License-Identifier: MIT
#include "thread_call.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "pause_others.h"
#include "thread_stop.h"

enum {
    LOOK_NS = 10000000,           // between two looks at others
    TIMES = 6,                    // the limit, for what does not wait for a lock
    SYSCALL_STOP = SIGTRAP | 128, // PTRACE_O_TRACESYSGOOD
    INSTRUCTION_BYTES = 2,
    TRAP_FLAG = 0x100,
    DIRECTION_FLAG = 0x400,
};

#define STOP_NS  10000000000ull
#define NT_STATE 0x202 // NT_X86_XSTATE

static uint64_t thread_call_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

bool gp_thread_call_save(gp_thread_call_t *call)
{
    struct iovec state = {call->state, sizeof(call->state)};
    if (ptrace(PTRACE_GETREGS, call->tid, 0, &call->saved) != 0 ||
        ptrace(PTRACE_GETREGSET, call->tid, NT_STATE, &state) != 0 ||
        ptrace(PTRACE_GETSIGMASK, call->tid, sizeof(call->mask), &call->mask) != 0)
        return false;
    call->state_size = state.iov_len;
    return true;
}

void gp_thread_call_restore(const gp_thread_call_t *call)
{
    struct user_regs_struct registers = call->saved;
    struct iovec state = {(void *)(uintptr_t)call->state, call->state_size};
    gp_thread_stop_restart_call(&registers);
    ptrace(PTRACE_SETREGSET, call->tid, NT_STATE, &state);
    ptrace(PTRACE_SETREGS, call->tid, 0, &registers);
    ptrace(PTRACE_SETSIGMASK, call->tid, sizeof(call->mask), &call->mask);
}

int gp_thread_call_write(const gp_thread_call_t *call, uint64_t address, const void *bytes, size_t size)
{
    struct iovec mine = {(void *)(uintptr_t)bytes, size}, theirs = {(void *)(uintptr_t)address, size};
    ssize_t done = process_vm_writev(call->tid, &mine, 1, &theirs, 1, 0);
    return done == (ssize_t)size ? 0 : done < 0 ? -errno : -EFAULT;
}

int gp_thread_call_read(const gp_thread_call_t *call, uint64_t address, void *bytes, size_t size)
{
    struct iovec mine = {bytes, size}, theirs = {(void *)(uintptr_t)address, size};
    ssize_t done = process_vm_readv(call->tid, &mine, 1, &theirs, 1, 0);
    return done == (ssize_t)size ? 0 : done < 0 ? -errno : -EFAULT;
}

// Registers for something else than what the thread was at: no system call of its is begun again meanwhile.
static struct user_regs_struct thread_call_fresh(const gp_thread_call_t *call)
{
    struct user_regs_struct registers = call->saved;
    registers.orig_rax = (unsigned long long)-1;
    registers.eflags &= ~(unsigned long long)(TRAP_FLAG | DIRECTION_FLAG);
    return registers;
}

// Without a stop of its. Source: proc_pid_syscall(5).
static bool thread_call_waits_for_lock(pid_t tid)
{
    char path[64], text[32] = "";
    snprintf(path, sizeof(path), "/proc/%d/syscall", (int)tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
    if (fd >= 0)
        close(fd);
    return got > 0 && strtol(text, NULL, 10) == SYS_futex;
}

// As gp_thread_stop_wait(), with looks at stopped threads: one may hold a lock that the call needs.
static int thread_call_wait_for_stop(const gp_thread_call_t *call, uint64_t begin_ns, int *status)
{
    int error;
    uint64_t waited;
    do {
        error = gp_thread_stop_wait(call->tid, LOOK_NS, status);
        gp_pause_others_look();
        waited = thread_call_now_ns() - begin_ns;
    } while (error == -ETIMEDOUT &&
             (waited < call->limit_ns || (waited < TIMES * call->limit_ns && !thread_call_waits_for_lock(call->tid))));
    return error;
}

static int thread_call_stop_in_the_middle(const gp_thread_call_t *call, int *status)
{
    ptrace(PTRACE_INTERRUPT, call->tid, 0, 0);
    int error = gp_thread_stop_wait(call->tid, STOP_NS, status);
    return error != 0                         ? error
           : gp_thread_stop_is_asked(*status) ? -ETIMEDOUT
                                              : 0; // the call may have come to its end just now
}

static bool thread_call_is_fault(int number)
{
    return number == SIGSEGV || number == SIGBUS || number == SIGILL || number == SIGFPE || number == SIGTRAP ||
           number == SIGSYS;
}

// Let it run until it stops for the call's sake: a fault, or a system call. All else that it is told goes on.
static int thread_call_run(gp_thread_call_t *call, enum __ptrace_request how, int *status)
{
    uint64_t begin = thread_call_now_ns();
    unsigned long made;
    for (int number = 0;;) {
        if (ptrace(how, call->tid, 0, number) != 0)
            return -ESRCH;
        int error = thread_call_wait_for_stop(call, begin, status);
        if (error == -ETIMEDOUT)
            error = thread_call_stop_in_the_middle(call, status);
        if (error != 0)
            return error;
        number = *status >> 16 == 0 ? WSTOPSIG(*status) : 0;
        if (number == SYSCALL_STOP || thread_call_is_fault(number))
            return 0;
        if (*status >> 16 == PTRACE_EVENT_CLONE && ptrace(PTRACE_GETEVENTMSG, call->tid, 0, &made) == 0)
            call->made = (pid_t)made;
    }
}

int gp_thread_call_until(gp_thread_call_t *call, long number)
{
    struct user_regs_struct registers;
    for (int status, times = 0; times < 2;) { // before it, and after
        int error = thread_call_run(call, PTRACE_SYSCALL, &status);
        if (error != 0 || WSTOPSIG(status) != SYSCALL_STOP)
            return error != 0 ? error : -EFAULT;
        if (ptrace(PTRACE_GETREGS, call->tid, 0, &registers) != 0)
            return -ESRCH;
        times += (long)registers.orig_rax == number;
    }
    return gp_thread_call_save(call) ? 0 : -EIO;
}

int gp_thread_call_system(gp_thread_call_t *call, long number, const uint64_t arguments[6], int64_t *result)
{
    struct user_regs_struct registers = thread_call_fresh(call);
    int status;
    registers.rip = call->syscall_at;
    registers.rax = (unsigned long long)number;
    registers.rdi = arguments[0];
    registers.rsi = arguments[1];
    registers.rdx = arguments[2];
    registers.r10 = arguments[3];
    registers.r8 = arguments[4];
    registers.r9 = arguments[5];
    if (ptrace(PTRACE_SETREGS, call->tid, 0, &registers) != 0)
        return -ESRCH;
    for (int times = 0; times < 2;) { // before it, and after; a handler makes calls, too
        int error = thread_call_run(call, PTRACE_SYSCALL, &status);
        if (error != 0 || WSTOPSIG(status) != SYSCALL_STOP)
            return error != 0 ? error : -EFAULT;
        if (ptrace(PTRACE_GETREGS, call->tid, 0, &registers) != 0)
            return -ESRCH;
        times += registers.rip == call->syscall_at + INSTRUCTION_BYTES;
    }
    *result = (int64_t)registers.rax;
    return 0;
}

int gp_thread_call_function(gp_thread_call_t *call, uint64_t function, const uint64_t arguments[3], uint64_t *result)
{
    const uint64_t nowhere = 0;
    struct user_regs_struct registers = thread_call_fresh(call);
    int status, error = gp_thread_call_write(call, call->top, &nowhere, sizeof(nowhere));
    if (error != 0)
        return error;
    registers.rip = function;
    registers.rsp = call->top;
    registers.rbp = registers.rax = 0;
    registers.rdi = arguments[0];
    registers.rsi = arguments[1];
    registers.rdx = arguments[2];
    call->made = 0;
    if (ptrace(PTRACE_SETREGS, call->tid, 0, &registers) != 0)
        return -ESRCH;
    error = thread_call_run(call, PTRACE_CONT, &status);
    if (error == 0 && ptrace(PTRACE_GETREGS, call->tid, 0, &registers) != 0)
        error = -ESRCH;
    if (error != 0)
        return error;
    *result = registers.rax;
    return WSTOPSIG(status) == SIGSEGV && registers.rip == 0 ? 0 : -EFAULT;
}
