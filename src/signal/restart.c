#include "signal/restart.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(__x86_64__)

// Is a signal pending that is delivered as soon as this one's handler returns? Then the program may count on the EINTR.
static bool others_wait(const ucontext_t *context)
{
    uint64_t pending = 0, blocked;
    memcpy(&blocked, &context->uc_sigmask, sizeof(blocked)); // the kernel's set: 64 signals
    return syscall(SYS_rt_sigpending, &pending, sizeof(pending)) != 0 || (pending & ~blocked) != 0;
}

void gp_restart_call(ucontext_t *context)
{
    greg_t *registers = context->uc_mcontext.gregs;
    if (registers[REG_RAX] != -EINTR)
        return;
    // glibc's system calls end in `mov $number,%eax; syscall`: the only register that the call has changed is set anew.
    static const uint8_t syscall_instruction[] = {0x0f, 0x05};
    const uint8_t *after = (const uint8_t *)registers[REG_RIP];
    if (((uintptr_t)after & 4095) < 7) // what is before may not be mapped
        return;
    if (memcmp(after - 2, syscall_instruction, 2) != 0 || after[-7] != 0xb8 || others_wait(context))
        return;
    registers[REG_RIP] -= 7;
}

#else

// Elsewhere the first argument and the result share a register: the call cannot be made again from here.
void gp_restart_call(ucontext_t *context)
{
    (void)context;
}

#endif
