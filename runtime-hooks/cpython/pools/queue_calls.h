// SPDX-License-Identifier: MIT
// Items of queues between threads: queue.Queue, LifoQueue, PriorityQueue and SimpleQueue, and with them
// multiprocessing.pool.ThreadPool.
//
// Model: an item that a request puts is a coroutine, created as its child and ready from then on. The thread that gets
// it works as this coroutine until it asks for the next one, or until its call is over. Which item is
// whose is known by queue and object; green threads and tasks that get items stay what they are. Items that are not
// taken are forgotten once there are GP_QUEUE_ITEMS newer ones.
//
// Caller holds the interpreter lock everywhere.
#pragma once

#include <stdbool.h>

#include "interpreter/api.h"
#include "interpreter/task_step.h"

enum { GP_QUEUE_ITEMS = 1024 };

typedef struct gp_queue_step { // of a thread: the item that it works on
    gp_task_step_t outer;
    prof_coro_t *coro; // NULL = none
} gp_queue_step_t;

// A call begins: what it gets until gp_queue_calls_leave() is its own.
gp_queue_step_t gp_queue_calls_enter(void);
void gp_queue_calls_leave(const gp_queue_step_t *before);

// Look whether the queues have been imported.
void gp_queue_calls_look(void);
