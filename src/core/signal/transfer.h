// SPDX-License-Identifier: MIT
// A system call that our signal has cut short goes on with the rest (x86-64).
//
// Model: where the kernel finds a signal while a call waits, or copies much, it returns what is done so far: fewer
// bytes than were asked for, which alone would all have come. Then the handler does not return behind the call, but to
// gp_transfer_go with the rest of the arguments, on the program's stack below what it uses. There the call is made;
// with what it returns, or without where it fails, the sum goes back to the program, behind its own call. A signal of
// the program's ends it as it would have ended the first one: what is done so far is returned.
//
// Calls that end early by themselves do not go on: non-blocking ones; reads of a message, a pipe or a terminal; reads
// at a file's end. Where the kernel does not tell one from the other (a peer that has gone), going on changes nothing:
// the call fails or finds nothing, and the sum is what it was.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <ucontext.h>

#include "signal/thread.h"
#include "unwind/unwind.h"

typedef struct gp_transfer_call {
    uint64_t number, arguments[6];
} gp_transfer_call_t;

typedef struct gp_transfer { // on the program's stack, while the rest is under way; transfer_x86_64.S has the offsets
    uint64_t done;           // bytes, messages or events of the calls before
    uint64_t part;           // all of what the present call asks for, if `next` follows it; else 0
    uint64_t resume, sp, flags;
    uint64_t number;          // of the present call
    gp_transfer_call_t first; // as the program made it
    gp_transfer_call_t next;
    struct msghdr header; // `next` may refer to it
} gp_transfer_t;

// The interrupted context has just left a system call, with more than 0: let it go on if it has been cut short. No
// other signal is pending.  Signals: safe. Cost: ~5 ns where the call moves no data, ~1 us where
// it does, some more system calls where less came than was asked for.
void gp_transfer_resume(ucontext_t *context);

// May the result of this context's call be the part of something? Cost: ~2 ns.
bool gp_transfer_may_be_cut(const ucontext_t *context);

// The number of the call that the context has just left, where the rest of a transfer is made; else UINT64_MAX.
uint64_t gp_transfer_number(const ucontext_t *context);

// Registers of an interrupted context: those of the program's own call, where the rest of one is made.
void gp_transfer_see_through(gp_unwind_regs_t *regs, uintptr_t gp[33]);

// The instruction, and what is behind it. Nothing calls them.
void gp_transfer_go(void);
void gp_transfer_gone(void);
