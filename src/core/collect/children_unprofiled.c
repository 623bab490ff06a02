// SPDX-License-Identifier: MIT
#include "collect/children_unprofiled.h"

#include <stdatomic.h>
#include <stddef.h>
#include <sys/mman.h>
#include <unistd.h>

typedef _Atomic uint64_t page_t;

static page_t *own, *parents, *counted_in;
static pid_t counted; // the process that is; a child of vfork() runs on the same memory

static page_t *children_unprofiled_map_page(void)
{
    void *page = mmap(NULL, sizeof(page_t), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return page != MAP_FAILED ? page : NULL;
}

void gp_children_unprofiled_begin(void)
{
    if (own == NULL)
        own = children_unprofiled_map_page();
}

void gp_children_unprofiled_in_child(void)
{
    if (parents != NULL)
        munmap(parents, sizeof(page_t));
    parents = own;
    own = children_unprofiled_map_page();
}

void gp_left_child_count(bool is_claimed)
{
    counted_in = is_claimed ? parents : own;
    counted = getpid();
    if (counted_in != NULL)
        atomic_fetch_add_explicit(counted_in, 1, memory_order_relaxed);
}

void gp_left_child_before_exec(void)
{
    if (counted_in != NULL && counted == getpid())
        atomic_fetch_sub_explicit(counted_in, 1, memory_order_relaxed);
}

void gp_left_child_after_failed_exec(void)
{
    if (counted_in != NULL && counted == getpid())
        atomic_fetch_add_explicit(counted_in, 1, memory_order_relaxed);
}

uint64_t gp_children_unprofiled(void)
{
    return own != NULL ? atomic_load_explicit(own, memory_order_relaxed) : 0;
}
