// SPDX-License-Identifier: MIT
// The Portable Coroutine Library.
#include <pcl.h>

#include "shape.h"

enum { BYTES = 65536 };

static coroutine_t all[SHAPE_MAX];

void shape_make(int id, void (*run)(void))
{
    all[id] = co_create((void (*)(void *))run, NULL, NULL, BYTES);
}
void shape_enter(int id)
{
    co_call(all[id]);
}
void shape_leave(int id)
{
    (void)id;
    co_resume();
}
void shape_end(int id)
{
    (void)id;
}
