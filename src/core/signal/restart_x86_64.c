// SPDX-License-Identifier: MIT
#include "signal/restart.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/raw_call.h"
#include "model/wait_calls.h"
#include "signal/call_number.h"
#include "signal/transfer.h"

static const uint8_t syscall_instruction[] = {0x0f, 0x05};

// Signals delivered as soon as this handler returns, one bit each. All where the kernel does not say.
static uint64_t restart_others_waiting(const ucontext_t *context)
{
    uint64_t pending = 0, blocked;
    memcpy(&blocked, &context->uc_sigmask, sizeof(blocked)); // the kernel's set: 64 signals
    return syscall(SYS_rt_sigpending, &pending, sizeof(pending)) == 0 ? pending & ~blocked : UINT64_MAX;
}

// Does the program handle one of these, and without SA_RESTART?
static bool restart_one_interrupts(uint64_t signals)
{
    struct { // as the kernel has it
        uintptr_t handler, flags, restorer;
        uint64_t mask;
    } action;
    for (; signals != 0; signals &= signals - 1) {
        int number = __builtin_ctzll(signals) + 1;
        if (gp_raw_call(SYS_rt_sigaction, number, 0, (long)&action, sizeof(action.mask), 0) == 0 &&
            action.handler > 1 && !(action.flags & SA_RESTART)) // 0 and 1: SIG_DFL and SIG_IGN
            return true;
    }
    return false;
}

// Calls that the kernel makes again after a handler with SA_RESTART.
static bool restart_is_made_again(uint64_t number)
{
    switch (number) {
    case SYS_wait4:
    case SYS_waitid:
    case SYS_fcntl:
    case SYS_flock:
    case SYS_open:
    case SYS_openat:
    case SYS_mq_timedsend:
    case SYS_mq_timedreceive:
        return true;
    default:
        return gp_is_wait_call((long)number);
    }
}

// The kernel delivers what is sent to a thread, as our signal is, before what is sent to the process. So where a signal
// of the program's has just ended a call, ours may come first; with SA_RESTART the call is then to be made again, and
// the program's handler runs before that: it would not end the call any more.
static void restart_end_call(ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    if (!restart_is_made_again((uint64_t)registers[REG_RAX]) ||
        memcmp((const void *)registers[REG_RIP], syscall_instruction, sizeof(syscall_instruction)) != 0)
        return;
    uint64_t others = restart_others_waiting(context);
    if (others == UINT64_MAX || !restart_one_interrupts(others))
        return;
    registers[REG_RIP] += (greg_t)sizeof(syscall_instruction);
    registers[REG_RAX] = -EINTR;
    registers[REG_RCX] = 0; // the program's: not to be made again
}

bool gp_restart_is_call(const ucontext_t *context)
{
    const greg_t *registers = context->uc_mcontext.gregs;
    greg_t after = registers[REG_RCX];    // where the instruction ends
    return after == registers[REG_RIP] || // or it will be made again, by the kernel:
           (after == registers[REG_RIP] + (greg_t)sizeof(syscall_instruction) &&
            memcmp((const void *)registers[REG_RIP], syscall_instruction, sizeof(syscall_instruction)) == 0);
}

// The number of the call that the context has just left.
static bool restart_find_number(const ucontext_t *context, uint64_t *number)
{
    *number = gp_transfer_number(context);
    return *number != UINT64_MAX || gp_call_number(context, number);
}

void gp_restart_call(ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    uint64_t number;
    if (registers[REG_RCX] == registers[REG_RIP] + (greg_t)sizeof(syscall_instruction)) {
        restart_end_call(context);
        return;
    }
    // The instruction leaves its end in %rcx; where a handler of the program's was there first, it is not there any
    // more.
    if (registers[REG_RCX] != registers[REG_RIP])
        return;
    if (registers[REG_RAX] > 0 && gp_transfer_may_be_cut(context) && restart_others_waiting(context) == 0)
        gp_transfer_resume(context);
    if (registers[REG_RAX] != -EINTR || !restart_find_number(context, &number) || !gp_is_wait_call((long)number) ||
        restart_others_waiting(context) != 0)
        return;
    registers[REG_RAX] = (greg_t)number;
    registers[REG_RCX] =
        ~registers[REG_RIP]; // no input of a system call: the mark that this was done here, not by the kernel
    registers[REG_RIP] -= (greg_t)sizeof(syscall_instruction);
}

bool gp_restart_is_suspended(const ucontext_t *context)
{
    const greg_t *registers = context->uc_mcontext.gregs;
    uint64_t number;
    return registers[REG_RAX] == -EINTR && registers[REG_RCX] == registers[REG_RIP] &&
           gp_call_number(context, &number) && number == SYS_rt_sigsuspend;
}

// The program's handler has ended the rest of a transfer, which the kernel is about to make again: alone, the transfer
// would have ended with what was done.
static bool restart_ends_transfer(const greg_t *registers)
{
    return registers[REG_RIP] == (greg_t)gp_transfer_go && registers[REG_RCX] == (greg_t)gp_transfer_gone;
}

void gp_restart_forget(ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    greg_t after = registers[REG_RIP] + (greg_t)sizeof(syscall_instruction);
    // The kernel repeats calls for handlers with SA_RESTART: %rcx then is the instruction's end.
    if ((registers[REG_RCX] == ~after && gp_is_wait_call((long)registers[REG_RAX])) ||
        restart_ends_transfer(registers)) {
        registers[REG_RIP] = after;
        registers[REG_RAX] = -EINTR;
        registers[REG_RCX] = 0;
    } else if (registers[REG_RIP] == registers[REG_RCX] && (registers[REG_RAX] == -EINTR || registers[REG_RAX] > 0)) {
        registers[REG_RCX] = 0;
    }
}
