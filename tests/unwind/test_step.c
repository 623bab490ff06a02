// SPDX-License-Identifier: MIT
// Single-steps real code and checks the walk at every instruction against a shadow stack.
//
// The trap flag makes the processor deliver SIGTRAP after each instruction; the handler runs on an
// alternate stack, keeps its own list of return addresses from the calls that it sees go by, and
// compares. Covered: prologues, epilogues, PLT stubs, lazy binding, tail calls, alloca, realigned
// frames, callbacks, C++ throws.
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <ucontext.h>

#include "step_work.h"
#include "unwind/arch.h"
#include "unwind/unwind.h"

enum { FRAMES = 512, SHOW = 2 };

typedef struct shadow {
    uintptr_t slot, ra; // the return address and where it stands
} shadow_t;

static shadow_t shadow[FRAMES];
static size_t shadow_len;
static uintptr_t base_frames[FRAMES]; // of the function that switched stepping on
static size_t base_len;
static uintptr_t stack_lo, stack_hi;
static uintptr_t last_pc, last_sp;
enum verdict { RIGHT, INCOMPLETE, DESTINATION, WRONG, VERDICTS };

static unsigned long steps, verdicts[VERDICTS], total[VERDICTS];

static void follow(uintptr_t pc, uintptr_t sp)
{
    while (shadow_len > 0 && shadow[shadow_len - 1].slot < sp)
        shadow_len--;
    if (sp == last_sp - 8 && shadow_len < FRAMES) {
        uintptr_t ra = *(uintptr_t *)sp;
        if (ra - last_pc >= 2 && ra - last_pc <= 10 && pc != ra && gp_arch_follows_call(ra, last_pc))
            shadow[shadow_len++] = (shadow_t){.slot = sp, .ra = ra};
    }
    last_pc = pc;
    last_sp = sp;
}

// Frame `i` of the truth; 0 past the last.
static uintptr_t truth(uintptr_t pc, size_t i)
{
    if (i == 0)
        return pc;
    if (i <= shadow_len)
        return shadow[shadow_len - i].ra - 1;
    return i <= shadow_len + base_len ? base_frames[i - 1 - shadow_len] : 0;
}

// How many of n frames, the first `same` taken on trust, are as the truth says `skip` frames
// further up?
static size_t count_same(uintptr_t pc, const uintptr_t *frames, size_t same, size_t n, size_t skip)
{
    while (same < n && frames[same] == truth(pc, same + skip))
        same++;
    return same;
}

static enum verdict judge(uintptr_t pc, const uintptr_t *frames, size_t n, unsigned flags)
{
    size_t depth = 1 + shadow_len + base_len;
    if (n > depth + 1 || n == 0 || frames[0] != pc)
        return WRONG;
    size_t same = count_same(pc, frames, 1, n, 0);
    if (same == n && n == depth)
        return RIGHT;
    // _Unwind_RaiseException overwrites its return address with the landing pad's.
    if (flags & GP_UNWIND_INCOMPLETE)
        return same >= n - 1 ? INCOMPLETE : WRONG;
    // In the last steps before a jump (_Unwind_Resume, and what glibc's table says of __longjmp)
    // the caller is the destination: one frame that is not yet true, and from there on the truth's
    // bottom end.
    return count_same(pc, frames, same + 1, n, depth - n) == n ? DESTINATION : WRONG;
}

static void show(uintptr_t pc, uintptr_t sp, const uintptr_t *frames, size_t n, unsigned flags)
{
    fprintf(stderr, "step %lu pc %#lx sp %#lx flags %u: %zu frames, expected %zu\n", steps, pc, sp, flags, n,
            1 + shadow_len + base_len);
    for (size_t i = 0; i < 8; i++) {
        uintptr_t want = truth(pc, i);
        fprintf(stderr, "    %#lx  want %#lx\n", i < n ? frames[i] : 0, want);
    }
}

static void on_trap(int signo, siginfo_t *info, void *context)
{
    static uintptr_t frames[FRAMES];
    uintptr_t gp[33];
    unsigned flags;
    gp_unwind_regs_t regs;
    (void)signo, (void)info;
    gp_unwind_regs_from_ucontext(&regs, gp, context);
    follow(regs.pc, regs.sp);
    steps++;
    size_t n = gp_unwind_walk(&regs, stack_lo, stack_hi, frames, FRAMES, &flags);
    enum verdict verdict = judge(regs.pc, frames, n, flags);
    if (verdicts[verdict]++ < SHOW && verdict == WRONG)
        show(regs.pc, regs.sp, frames, n, flags);
}

static void set_trap_flag(bool on)
{
    if (on)
        __asm__ volatile("pushfq; orq $0x100, (%%rsp); popfq; nop; nop" ::: "cc", "memory");
    else
        __asm__ volatile("pushfq; andq $~0x100, (%%rsp); popfq" ::: "cc", "memory");
}

// The stack below the stepped call is this frame's: take it from a walk that starts here.
static __attribute__((noinline)) void step_through(void (*work)(void))
{
    ucontext_t here;
    uintptr_t gp[33];
    unsigned flags;
    gp_unwind_regs_t regs;
    getcontext(&here);
    gp_unwind_regs_from_ucontext(&regs, gp, &here);
    // This function's own frame is on the shadow stack, as the return address of the call below.
    base_len = gp_unwind_walk(&regs, stack_lo, stack_hi, base_frames, FRAMES, &flags) - 1;
    memmove(base_frames, base_frames + 1, base_len * sizeof *base_frames);
    shadow_len = 0;
    last_pc = last_sp = 0;
    set_trap_flag(true);
    work();
    set_trap_flag(false);
}

static void run(const char *name, void (*work)(void), bool jumps)
{
    steps = 0;
    memset(verdicts, 0, sizeof verdicts);
    step_through(work);
    printf("%-12s %8lu instructions: %lu right, %lu incomplete, %lu seen at their destination, %lu "
           "wrong\n",
           name, steps, verdicts[RIGHT], verdicts[INCOMPLETE], verdicts[DESTINATION], verdicts[WRONG]);
    if (!jumps)
        verdicts[WRONG] += verdicts[INCOMPLETE] + verdicts[DESTINATION];
    for (unsigned i = 0; i < VERDICTS; i++)
        total[i] += verdicts[i];
}

static void find_stack(void)
{
    pthread_attr_t attr;
    void *low;
    size_t size;
    pthread_getattr_np(pthread_self(), &attr);
    pthread_attr_getstack(&attr, &low, &size);
    pthread_attr_destroy(&attr);
    stack_lo = (uintptr_t)low;
    stack_hi = stack_lo + size;
}

static void use_alternate_stack(void)
{
    static char memory[65536];
    stack_t alt = {.ss_sp = memory, .ss_size = sizeof memory};
    struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigaltstack(&alt, NULL);
    sigaction(SIGTRAP, &action, NULL);
}

int main(void)
{
    find_stack();
    gp_unwind_init();
    use_alternate_stack();
    for (const step_case_t *c = step_cases; c->name != NULL; c++)
        run(c->name, c->run, c->jumps);
    return total[WRONG] > 0 || total[RIGHT] < 20000 || total[INCOMPLETE] + total[DESTINATION] > total[RIGHT] / 50;
}
