// SPDX-License-Identifier: MIT
#include "control/coroutine_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "capture/write/write_parts.h"
#include "collect/collector.h"
#include "collect/waiting_stack.h"
#include "coro/coro_ledger.h"
#include "coro/coro_name.h"
#include "coro/registry.h"
#include "live/control_protocol.h"
#include "record/recording.h"
#include "signal/ledger_edges.h"
#include "signal/rest.h"

_Static_assert((int)GP_CORO_NAME_SIZE <= (int)GP_CONTROL_NAME_SIZE, "a name fits into a row");

typedef struct piece {
    gp_control_row_t rows[GP_CORO_PIECE];
    size_t count;
    uint64_t coroutines;
} piece_t;

static uint64_t coroutine_rows_since_ticks(prof_coro_t *coro)
{
    uint64_t since = gp_ledger_edge_load(&coro->since), epoch = gp_ledger_edge_load(&gp_ledger_edge_epoch_ticks);
    return gp_ledger_edge_is_current(coro) && since > epoch ? since : epoch;
}

static enum gp_control_row_state coroutine_rows_find_state(prof_coro_t *coro, uint64_t now, uint64_t *since)
{
    uint64_t ready = gp_ledger_edge_ready(coro);
    if (gp_rest_is_now()) {
        *since = now;
        return GP_CONTROL_ROW_UNKNOWN;
    }
    // Acquire: partner of the release in gp_ledger_edge_leave().
    if (gp_ledger_edge_is_current(coro) && atomic_load_explicit(&coro->running, memory_order_acquire) != 0)
        return GP_CONTROL_ROW_RUNNING;
    if (gp_ledger_edge_is_over(coro))
        return GP_CONTROL_ROW_IDLE;
    if (ready == 0 || ready > now)
        return ready > now || gp_ledger_edge_is_reported(coro) ? GP_CONTROL_ROW_PARKED : GP_CONTROL_ROW_WAITING;
    if (gp_ledger_edge_is_new(coro))
        return GP_CONTROL_ROW_NEW;
    *since = ready > *since ? ready : *since;
    return GP_CONTROL_ROW_READY;
}

static void coroutine_rows_name_row(prof_coro_t *coro, gp_control_row_t *row)
{
    gp_thread_t *thread =
        coro->kind == GP_CORO_THREAD ? atomic_load_explicit(&gp_coro_rare(coro)->thread, memory_order_acquire) : NULL;
    gp_coro_name_get(coro, row->name);
    if (thread == NULL)
        return;
    row->tid = (uint32_t)atomic_load_explicit(&thread->tid, memory_order_relaxed);
    gp_recording_name_thread(thread);
    memcpy(row->name, thread->name, sizeof(thread->name));
}

static void coroutine_rows_add(prof_coro_t *coro, void *argument)
{
    piece_t *piece = argument;
    uint64_t id = atomic_load_explicit(&coro->id, memory_order_acquire), now = gp_ticks(),
             since = coroutine_rows_since_ticks(coro);
    gp_control_row_t *row = &piece->rows[piece->count];
    gp_ledger_t ledger;
    enum gp_control_row_state state = coroutine_rows_find_state(coro, now, &since);
    if (piece->count == GP_CORO_PIECE ||
        (state == GP_CONTROL_ROW_IDLE && gp_ledger_edge_load(&coro->ready_ticks) != GP_EDGE_IDLE))
        return; // over
    gp_ledger_read(coro, now, &ledger);
    *row = (gp_control_row_t){
        .id = id,
        .parent_id = coro->parent_id,
        .state_ns = now > since ? gp_ticks_to_ns(now - since) : 0,
        .cpu_ns = ledger.cpu_ns,
        .blocked_ns = ledger.blocked_ns,
        .slice_ns = ledger.slice_ns,
        .ready_ns = ledger.ready_ns,
        .parked_ns = ledger.parked_ns,
        .waiting_ns = ledger.waiting_ns,
        .switches = ledger.switches,
        .longest_ns = ledger.longest_ns,
        .state = state,
    };
    gp_waiting_stack_trace(coro, row->trace);
    coroutine_rows_name_row(coro, row);
    if (id == 0 || atomic_load_explicit(&coro->id, memory_order_acquire) != id)
        return; // it is over by now
    piece->count++;
    piece->coroutines += coro->kind != GP_CORO_THREAD;
}

static int coroutine_rows_write_all(int fd, piece_t *piece, uint64_t *rows)
{
    gp_coro_cursor_t cursor = {0};
    int error = 0;
    for (bool more = true; more && error == 0;) {
        piece->count = 0;
        gp_drain_enter();
        more = gp_coro_piece(&cursor, coroutine_rows_add, piece);
        gp_drain_leave();
        *rows += piece->count;
        struct iovec part = {piece->rows, piece->count * sizeof(piece->rows[0])};
        error = piece->count > 0 ? gp_write_parts(fd, &part, 1) : 0;
    }
    return error;
}

int gp_control_rows(uint64_t *rows, uint64_t *coroutines)
{
    gp_descriptor_low_begins();
    int fd = gp_descriptor_lift(memfd_create("greenprof", MFD_CLOEXEC)), error = fd < 0 ? -errno : 0;
    piece_t *piece = calloc(1, sizeof(*piece));
    *rows = 0;
    if (error == 0)
        error = piece != NULL ? coroutine_rows_write_all(fd, piece, rows) : -ENOMEM;
    *coroutines = piece != NULL ? piece->coroutines : 0;
    free(piece);
    if (error == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    return error;
}
