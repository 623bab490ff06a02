// SPDX-License-Identifier: MIT
// Counts of exact mode: a tree of calls, one node for every path of functions from the outermost one down.
//
// A tree belongs to one recorder and one thread's block. Only this thread adds to it, and its signal handlers, with
// single instructions: no locked instruction is needed. Nodes never move, and a parent is made before its children.
// Producer: the thread. Consumers: the holder of the lock of exact mode reads along; a counter is whole at any moment.
// Times of a function with all its calls, and which calls were recursive, follow from the tree (exact_pairs.c).
//
// Memory is bounded: where a tree has GP_EXACT_NODES_MAX nodes, a function on a new path is counted as if it had no
// caller, and GP_COUNTER_LOST_CALLS says how often.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "exact/exact_site.h"
#include "signal/thread.h"
#include "signal/ticks.h"

typedef struct gp_exact_node {
    struct gp_exact_node *last;  // the child that was called last, or gp_exact_no_node
    const gp_exact_site_t *site; // by which it was called last, or gp_exact_no_site
    uint64_t calls;
    uint64_t own_ticks, off_ns; // wall time in the function itself; and of that, what it was not on the CPU
    struct gp_exact_node *next; // another child of the parent, round and round
    struct gp_exact_node *parent;
    struct gp_exact_node *twin; // in the tree that this one was last added to; under the lock
    uint32_t function;          // number, from 1
    uint32_t number;            // 1, 2, ... in the order in which they were made; the root's is 0
} gp_exact_node_t;

extern gp_exact_node_t gp_exact_no_node; // of no function

enum { GP_EXACT_CHUNK = 28, GP_EXACT_FIRST_SLOTS = 32, GP_EXACT_NODES_MAX = 1 << 20 };

typedef struct gp_exact_chunk {
    struct gp_exact_chunk *next;
    uint32_t count; // nodes in use
    gp_exact_node_t nodes[GP_EXACT_CHUNK];
} gp_exact_chunk_t;

typedef struct gp_exact_index {   // open addressing, at most half full
    struct gp_exact_index *older; // kept: a lookup may have been interrupted in it
    uint32_t shift, mask;
    gp_exact_node_t *slots[];
} gp_exact_index_t;

typedef struct gp_exact_tree {
    struct gp_exact_tree *next; // of the same recorder
    gp_thread_t *thread;        // NULL: of no thread
    gp_exact_index_t *index;
    gp_exact_chunk_t *chunks, *last_chunk; // in the order of numbers
    uint32_t count;
    gp_exact_node_t root; // of no function
} gp_exact_tree_t;

// Add to a counter so that the thread's own signal handlers may do so at any moment.
static inline void gp_exact_add(uint64_t *counter, uint64_t amount)
{
    gp_arch_add(counter, amount);
}

// CPU time in the function itself.
static inline uint64_t gp_exact_node_cpu_ns(const gp_exact_node_t *node)
{
    int64_t ns = (int64_t)(gp_ticks_to_ns(node->own_ticks) - node->off_ns);
    return ns > 0 ? (uint64_t)ns : 0;
}

// The slot of a node, by the numbers of its parent and its function.
static inline uint32_t gp_exact_slot(const gp_exact_index_t *index, uint32_t parent, uint32_t function)
{
    uint64_t key = (uint64_t)parent << 32 | function;
    return (uint32_t)((key * 0x9e3779b97f4a7c15ull) >> index->shift);
}

// The child of `parent` that is `function`, or NULL. The tree's thread, or the lock's holder. Cost: ~1 ns where it is
// the one that was called last, else ~3 ns.
static inline gp_exact_node_t *gp_exact_find(const gp_exact_tree_t *tree, gp_exact_node_t *parent, uint32_t function)
{
    gp_exact_node_t *node = parent->last;
    if (node->function == function)
        return node;
    const gp_exact_index_t *index = tree->index;
    uint32_t slot = gp_exact_slot(index, parent->number, function);
    while ((node = index->slots[slot]) != NULL && (node->parent != parent || node->function != function))
        slot = (slot + 1) & index->mask;
    if (node != NULL)
        parent->last = node;
    return node;
}

// Below: caller holds the lock of exact mode.

// A blank tree, or NULL.
gp_exact_tree_t *gp_exact_tree_new(gp_thread_t *thread);
void gp_exact_tree_free(gp_exact_tree_t *tree); // NULL is accepted

// The child of `parent` that is `function`, made if need be; the root's where the tree is full; NULL when memory is
// short.
gp_exact_node_t *gp_exact_tree_get(gp_exact_tree_t *tree, gp_exact_node_t *parent, uint32_t function);

// Add `from` to `to`; the nodes of `to` become the twins of those of `from`. Returns false when memory is short.
bool gp_exact_tree_sum(gp_exact_tree_t *to, gp_exact_tree_t *from);
