// SPDX-License-Identifier: MIT
// A runtime's ways to make, enter and leave a coroutine: real runtimes, and others, which Debian lacks, in the shape of
// their switch routines: the same names, arguments and layouts, in an object of their own as in their archives.
#ifndef SHAPE_H
#define SHAPE_H

#include <stddef.h>

enum { SHAPE_MAX = 16 };

int shape_choose(const char *name); // of several in one program; false where there is none of that name

void shape_make(int id, void (*run)(void));
void shape_make_on(int id, char *low, size_t bytes,
                   void (*run)(void)); // on this stack, where the runtime lets one choose
void shape_enter(int id);              // from the program's own stack
void shape_leave(int id);              // back to there
void shape_end(int id); // the last that `run` calls: nothing, where it may return; else it leaves for good

// x86-64: save what a callee must keep, store the stack pointer in *from, go on at `to`.
void shape_swap(void **from, void *to);

// Let `run` be what shape_swap() enters on a fresh stack. Returns the stack pointer.
static inline void *shape_stack(char *low, unsigned long bytes, void (*run)(void))
{
    void **sp = (void **)(((unsigned long)low + bytes) & ~15ul);
    *--sp = 0; // no caller to return to
    *--sp = (void *)(unsigned long)run;
    for (int i = 0; i < 6; i++)
        *--sp = 0;
    return sp;
}

#endif
