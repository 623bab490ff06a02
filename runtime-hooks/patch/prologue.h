// SPDX-License-Identifier: MIT
// The first instructions of a function, moved elsewhere so that a jump can take their place (x86-64).
//
// A small decoder knows the instructions that compilers and switch routines begin functions with, and refuses all
// others. References to an instruction's own place (RIP-relative operands, jumps, a call, which is the last of them)
// are made to mean the same there.
#pragma once

#include <stddef.h>
#include <stdint.h>

enum {
    GP_PROLOGUE_JUMP_BYTES = 5, // jmp rel32: what has to be made room for
    GP_PROLOGUE_MOVED_MAX = 64, // of moved code, the jump back included
};

typedef struct gp_prologue {
    size_t taken; // bytes of whole instructions at the function's start, at least GP_PROLOGUE_JUMP_BYTES
    size_t bytes; // of `code`
    unsigned char code[GP_PROLOGUE_MOVED_MAX]; // the same, to be executed at `to`, and a jump to what follows them
} gp_prologue_t;

// Move the beginning of a function.
//   code:  unsigned char[size], the function's first bytes as they are; size: all that is known.
//   from:  address at which `code` is executed.    to: address at which `out->code` will be.
// Returns 0; -ENOTSUP for an instruction unknown or impossible to move, a function that is too short or jumps back into
// its own first instructions; -ERANGE where something is out of reach of `to`. Threads: any. Signals: safe.
// Source: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, appendix A.
int gp_prologue_move(const unsigned char *code, size_t size, uintptr_t from, uintptr_t to, gp_prologue_t *out);

// Write `jmp to` as it is executed at `at`. Returns 0 or -ERANGE, with nothing written.
int gp_prologue_jump(unsigned char out[GP_PROLOGUE_JUMP_BYTES], uintptr_t at, uintptr_t to);
