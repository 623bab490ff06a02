// SPDX-License-Identifier: MIT
// Runtimes that Debian does not have, in the shape of their switch routines: the same names, arguments and layouts, in
// an object of their own as in their archives. Each shape says how to make a coroutine, enter it and leave it.
#ifndef SHAPE_H
#define SHAPE_H

void shape_make(int id, void (*run)(void));
void shape_enter(int id); // from the program's own stack
void shape_leave(int id); // back to there

// x86-64: save what a callee must keep, store the stack pointer in *from, go on at `to`.
void shape_swap(void **from, void *to);

// Let `run` be what shape_swap() enters on a fresh stack. Returns the stack pointer.
static inline void *shape_stack(char *low, unsigned long bytes, void (*run)(void))
{
    void **sp = (void **)(((unsigned long)low + bytes) & ~15ul);
    *--sp = 0; // no caller to return to
    *--sp = (void *)(unsigned long)run;
    return sp - 6;
}

#endif
