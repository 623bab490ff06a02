// SPDX-License-Identifier: MIT
// The beginning of every capture of this process, and the definitions for its records: modules, threads, coroutines,
// traces and stacks, each written before the first record that needs it.
//
// Model: a recording is a writer and what it has been told. gp_recording_begin(), gp_writer_open(), records in any
// order, gp_writer_hand_over(). Caller holds the drain lock everywhere. Signals: not safe.
#pragma once

#include "capture/write/intern.h"
#include "capture/write/writer.h"
#include "collect/collector.h"

typedef struct gp_recording {
    gp_writer_t writer;
    gp_file_header_t header;
    gp_intern_t traces, stacks;
    uint64_t start_ticks; // the moment that the header has
    size_t modules_written;
    uint32_t functions_written;
    const struct gp_not_known *told; // the latest fact that is written (not_known.h)
    uint32_t *site_stacks;           // by number of a creation site (coro/spawn.h): its stack, 0 = not written
    size_t site_room;
    uint32_t budget_ppm;   // millionths of CPU time it may cost; 0 = the rate is as chosen
    uint64_t ledgers_lost; // reports of ledgers without room, and not made again
    // A one-shot recording (census): coroutines are not marked as written, which only the capture may do.
    bool is_brief;
    uint64_t part; // of the recording, in the highest 16 bits, which ids never reach: see gp_recording_has_coro()
} gp_recording_t;

// Make the header, of a recording that starts now.
void gp_recording_begin(gp_recording_t *recording, unsigned frequency_hz);

// Forget everything, in a forked child or for the next use; the file stays as it is.
void gp_recording_abandon(gp_recording_t *recording);

// Another file follows, with a header of its own: what was written is to be written again where it is referred to.
//   from: ticks of the earliest moment that the next file speaks of, at most now.
void gp_recording_turn(gp_recording_t *recording, unsigned frequency_hz, uint64_t from);

// Is the coroutine's definition in this part?
static inline bool gp_recording_has_coro(const gp_recording_t *recording, const prof_coro_t *coro, uint64_t id)
{
    return !recording->is_brief &&
           atomic_load_explicit(&gp_coro_written(coro)->written_id, memory_order_relaxed) == (id | recording->part);
}

// ns since the start.
uint64_t gp_recording_since(const gp_recording_t *recording, uint64_t ticks);

// A text about the process (capture/format.h lists the keys).
void gp_recording_text(gp_recording_t *recording, const char *key, const char *value, size_t value_len);

// The texts about the process; those of its labels, which only a capture has, no census.
void gp_recording_meta(gp_recording_t *recording);
void gp_recording_labels(gp_recording_t *recording);

// Modules, functions and what is not known of runtimes (not_known.h), as far as found since the last call.
void gp_recording_definitions(gp_recording_t *recording);

// A coroutine.
//   thread_index: of a thread's own stack, else 0.
void gp_recording_coro(gp_recording_t *recording, prof_coro_t *coro, uint64_t id, uint32_t thread_index);

// The path that a pattern stands for: %p is the process id; where there is none, a process other than `owner` (0 = any)
// appends its own. Returns whether there is a pattern, and room. Needs no lock.
bool gp_recording_path(const char *pattern, int owner, char *path, size_t size);

// Ask the system what a thread is called.
void gp_recording_name_thread(gp_thread_t *thread);

// A thread, and its own stack.
void gp_recording_thread(gp_recording_t *recording, gp_thread_t *thread, uint64_t cpu_ns);

// The numbers of a trace and of a stack; 0 = no trace, or memory is short.
uint32_t gp_recording_trace(gp_recording_t *recording, const uint64_t id[2]);
uint32_t gp_recording_stack(gp_recording_t *recording, const gp_stack_t *stack);

// The number of the stack of a site (coro/spawn.h), at which a coroutine was created or a span began; 0 = not known.
uint32_t gp_recording_site(gp_recording_t *recording, uint32_t number);
