// SPDX-License-Identifier: MIT
// Switchers that save a context with setjmp and enter one with longjmp, QEMU's coroutines for one: a jump to another
// stack is a switch. A jump on the same stack is not; most are, for errors.
//
// __longjmp_chk, which _FORTIFY_SOURCE makes of them, refuses to go to another stack: no switch is made by it.
// Source: glibc sysdeps/x86_64/__longjmp.S, jmpbuf-offsets.h, sysdeps/unix/sysv/linux/x86_64/pointer_guard.h.
#include "interpose/interpose.h"
#include "signal/thread.h"

enum { JMP_BUF_RSP = 6 };

static uintptr_t longjmp_saved_sp(const uintptr_t *jmp_buf)
{
    uintptr_t sp = jmp_buf[JMP_BUF_RSP];
    __asm__("ror $17, %0\n\txor %%fs:0x30, %0" : "+r"(sp) : : "cc");
    return sp;
}

// May be called in a signal handler, perhaps one that interrupted the switch hook and will not return to it.
void gp_longjmp_jump(const uintptr_t *arguments, const gp_park_t *park)
{
    gp_thread_t *thread = gp_thread_self;
    if (thread == NULL)
        return;
    uint64_t from_id, to_id;
    bool outside;
    uintptr_t target = longjmp_saved_sp((const uintptr_t *)arguments[0]);
    atomic_store_explicit(&thread->busy, false, memory_order_relaxed);
    prof_coro_t *from = gp_thread_coro_at(thread, park->sp, &from_id, &outside);
    prof_coro_t *to = gp_thread_coro_at(thread, target, &to_id, &outside);
    if (from != to)
        gp_switch_to(to, to_id, park);
}
