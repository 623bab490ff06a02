// SPDX-License-Identifier: MIT
#include "signal/restart.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/peek.h"

#if defined(__x86_64__)

static const uint8_t syscall_instruction[] = {0x0f, 0x05};

enum { CODE_BYTES = 64 }; // what is looked at: the system call, and what is before it

// Those that end with EINTR although SA_RESTART is set, and have done nothing then. Source: signal(7).
static bool is_wait(uint64_t number)
{
    switch (number) {
    case SYS_read: // of a socket with a timeout, as those that follow
    case SYS_write:
    case SYS_readv:
    case SYS_writev:
    case SYS_sendfile:
    case SYS_connect:
    case SYS_accept:
    case SYS_accept4:
    case SYS_sendto:
    case SYS_recvfrom:
    case SYS_sendmsg:
    case SYS_recvmsg:
    case SYS_sendmmsg:
    case SYS_recvmmsg:
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case 441: // epoll_pwait2
    case SYS_pause:
    case SYS_rt_sigsuspend:
    case SYS_rt_sigtimedwait:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_futex:
    case 449: // futex_waitv
    case 455: // futex_wait
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_msgsnd:
    case SYS_msgrcv:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_io_uring_enter:
        return true;
    default:
        return false;
    }
}

// The lower half of a register, as instructions number them.
static uint64_t low_half(const greg_t *registers, unsigned number)
{
    static const uint8_t indices[] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    return (uint32_t)registers[indices[number]];
}

// mov REGISTER, %eax right before `end`. %rax, %rcx and %r11 do not hold any more what they held.
static bool number_in_register(const uint8_t *end, const greg_t *registers, uint64_t *number)
{
    unsigned source = (end[-1] >> 3) & 7;
    if (end[-2] != 0x89 || (end[-1] & 0xc7) != 0xc0)
        return false;
    if ((end[-3] & 0xf7) == 0x44 && source != 3 && is_wait(*number = low_half(registers, source + 8)))
        return true;
    // What looked like a prefix is the end of another instruction.
    return source > 1 && is_wait(*number = low_half(registers, source));
}

// mov $NUMBER, %eax, the last one before `end`, and behind the system call before: arguments may be loaded meanwhile.
static bool number_is_constant(const uint8_t *end, uint64_t *number)
{
    for (int back = 5; back <= CODE_BYTES - 2 && memcmp(end - back, syscall_instruction, 2) != 0; back++) {
        uint32_t constant;
        memcpy(&constant, end - back + 1, sizeof(constant));
        if (end[-back] == 0xb8 && is_wait(*number = constant))
            return true;
    }
    return false;
}

// Which system call it was: the instruction itself has overwritten the number.
static bool find_number(const uint8_t *end, const greg_t *registers, uint64_t *number)
{
    static const uint8_t xor_eax[] = {0x31, 0xc0}, from_red_zone[] = {0x48, 0x8b, 0x44, 0x24, 0xf8};
    if (memcmp(end - sizeof(xor_eax), xor_eax, sizeof(xor_eax)) == 0) {
        *number = 0;
        return true;
    }
    if (memcmp(end - sizeof(from_red_zone), from_red_zone, sizeof(from_red_zone)) ==
        0) // ours: ../process/host_syscall_x86_64.S
        return is_wait(*number = *(const uint64_t *)(registers[REG_RSP] - 8));
    return number_in_register(end, registers, number) || number_is_constant(end, number);
}

// Of two pages, the kernel says whether the first is there.
static bool read_code(uintptr_t address, uint8_t code[CODE_BYTES])
{
    if ((address & 4095) + CODE_BYTES <= 4096) {
        memcpy(code, (const void *)address, CODE_BYTES);
        return true;
    }
    return gp_peek(address, code, CODE_BYTES);
}

// The signals that are delivered as soon as this one's handler returns, one bit each. All where the kernel does not
// say.
static uint64_t others_waiting(const ucontext_t *context)
{
    uint64_t pending = 0, blocked;
    memcpy(&blocked, &context->uc_sigmask, sizeof(blocked)); // the kernel's set: 64 signals
    return syscall(SYS_rt_sigpending, &pending, sizeof(pending)) == 0 ? pending & ~blocked : UINT64_MAX;
}

// Does the program handle one of these, and without SA_RESTART?
static bool one_interrupts(uint64_t signals)
{
    struct { // as the kernel has it
        uintptr_t handler, flags, restorer;
        uint64_t mask;
    } action;
    for (; signals != 0; signals &= signals - 1) {
        int number = __builtin_ctzll(signals) + 1;
        if (syscall(SYS_rt_sigaction, number, NULL, &action, sizeof(action.mask)) == 0 && action.handler > 1 &&
            !(action.flags & SA_RESTART)) // 0 and 1: SIG_DFL and SIG_IGN
            return true;
    }
    return false;
}

// Those that the kernel makes again after a handler with SA_RESTART.
static bool is_made_again(uint64_t number)
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
    case SYS_splice:
        return true;
    default:
        return is_wait(number);
    }
}

// The kernel delivers what is sent to a thread, as our signal is, before what is sent to the process. So where a signal
// of the program's has just ended a call, ours may come first; with SA_RESTART the call is then to be made again, and
// the program's handler runs before that: it would not end the call any more.
static void end_call(ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    if (!is_made_again((uint64_t)registers[REG_RAX]) ||
        memcmp((const void *)registers[REG_RIP], syscall_instruction, sizeof(syscall_instruction)) != 0)
        return;
    uint64_t others = others_waiting(context);
    if (others == UINT64_MAX || !one_interrupts(others))
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

void gp_restart_call(ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    uint8_t code[CODE_BYTES];
    uint64_t number;
    if (registers[REG_RCX] == registers[REG_RIP] + (greg_t)sizeof(syscall_instruction)) {
        end_call(context);
        return;
    }
    // The instruction leaves its end in %rcx; where a handler of the program's was there first, it is not there any
    // more.
    if (registers[REG_RAX] != -EINTR || registers[REG_RCX] != registers[REG_RIP] ||
        !read_code((uintptr_t)registers[REG_RIP] - CODE_BYTES, code))
        return;
    const uint8_t *instruction = code + CODE_BYTES - sizeof(syscall_instruction);
    if (memcmp(instruction, syscall_instruction, sizeof(syscall_instruction)) != 0 ||
        !find_number(instruction, registers, &number) || others_waiting(context) != 0)
        return;
    registers[REG_RAX] = (greg_t)number;
    registers[REG_RCX] =
        ~registers[REG_RIP]; // no input of a system call: the mark that this was done here, not by the kernel
    registers[REG_RIP] -= (greg_t)sizeof(syscall_instruction);
}

bool gp_restart_is_suspended(const ucontext_t *context)
{
    const greg_t *registers = context->uc_mcontext.gregs;
    uint8_t code[CODE_BYTES];
    const uint8_t *instruction = code + CODE_BYTES - sizeof(syscall_instruction);
    uint64_t number;
    return registers[REG_RAX] == -EINTR && registers[REG_RCX] == registers[REG_RIP] &&
           read_code((uintptr_t)registers[REG_RIP] - CODE_BYTES, code) &&
           memcmp(instruction, syscall_instruction, sizeof(syscall_instruction)) == 0 &&
           find_number(instruction, registers, &number) && number == SYS_rt_sigsuspend;
}

void gp_restart_forget(ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    greg_t after = registers[REG_RIP] + (greg_t)sizeof(syscall_instruction);
    // The kernel repeats calls for handlers with SA_RESTART: %rcx then is the instruction's end.
    if (registers[REG_RCX] == ~after && is_wait((uint64_t)registers[REG_RAX])) {
        registers[REG_RIP] = after;
        registers[REG_RAX] = -EINTR;
        registers[REG_RCX] = 0;
    } else if (registers[REG_RIP] == registers[REG_RCX] && registers[REG_RAX] == -EINTR) {
        registers[REG_RCX] = 0;
    }
}

#else

// Elsewhere the first argument and the result share a register: the call cannot be made again from here.
void gp_restart_call(ucontext_t *context)
{
    (void)context;
}

bool gp_restart_is_call(const ucontext_t *context)
{
    (void)context;
    return false;
}

#endif
