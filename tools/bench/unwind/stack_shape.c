// SPDX-License-Identifier: MIT
// Eight functions that call one another; different frames, so no walker lives on a single cached row.
#include "stack_shape.h"

#include <stddef.h>

typedef void (*leaf_t)(void *);
static void down(unsigned depth, leaf_t leaf, void *arg);

#define SHAPE(name, bytes)                                                                                             \
    static __attribute__((noinline)) void name(unsigned depth, leaf_t leaf, void *arg)                                 \
    {                                                                                                                  \
        volatile char local[bytes];                                                                                    \
        local[0] = (char)depth;                                                                                        \
        down(depth - 1, leaf, arg);                                                                                    \
        local[(bytes) / 2] = local[0];                                                                                 \
    }

SHAPE(shape_0, 8)
SHAPE(shape_1, 40)
SHAPE(shape_2, 64)
SHAPE(shape_3, 100)
SHAPE(shape_4, 24)
SHAPE(shape_5, 200)
SHAPE(shape_6, 16)
SHAPE(shape_7, 72)

static __attribute__((noinline)) void last(leaf_t leaf, void *arg)
{
    leaf(arg);
    __asm__ volatile("");
}

// Each callee has its return address, as in a program, not an indirect call for all.
static inline __attribute__((always_inline)) void dispatch(unsigned depth, leaf_t leaf, void *arg)
{
    switch (depth % 8) {
    case 0:
        shape_0(depth, leaf, arg);
        break;
    case 1:
        shape_1(depth, leaf, arg);
        break;
    case 2:
        shape_2(depth, leaf, arg);
        break;
    case 3:
        shape_3(depth, leaf, arg);
        break;
    case 4:
        shape_4(depth, leaf, arg);
        break;
    case 5:
        shape_5(depth, leaf, arg);
        break;
    case 6:
        shape_6(depth, leaf, arg);
        break;
    default:
        shape_7(depth, leaf, arg);
    }
}

static inline __attribute__((always_inline)) void down(unsigned depth, leaf_t leaf, void *arg)
{
    if (depth == 0) {
        last(leaf, arg);
    } else {
        dispatch(depth, leaf, arg);
        __asm__ volatile("");
    }
}

void shape_call(unsigned depth, leaf_t leaf, void *arg)
{
    down(depth, leaf, arg);
}
