// SPDX-License-Identifier: MIT
// Writes a capture file: collects records per chunk type, writes whole chunks.
//
// Model: records are added to buffers. gp_writer_hand_over() passes all buffers on at once; gp_writer_write() packs,
// compresses and writes these, which may take as long as the disk pleases. Adding goes on meanwhile; records without
// room are refused. A single thread adds and hands over (the collector, under the drain lock), one writes, and memory
// changes hands only in gp_writer_hand_over(): a thread with the producer's lock, as a forking one has it, finds
// everything in order but the file itself. Where memory is short, the counters and the end still find room, so that
// what is missing is known. After an error (full disk; a file at its largest size, EFBIG) the file is cut back to its
// last whole chunk and gets an end record with the reason, in the place of this chunk where there is no room behind it;
// then nothing more is written, and the error stays in gp_writer_t.error.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "base/kept_fd.h"
#include "capture/format.h"
#include "capture/write/compress.h"

enum {
    GP_WRITER_SAMPLES_MAX = 8 << 20, // bytes of samples that wait while the disk is slow: 10 s at 20 kHz
};

typedef struct gp_buffer {
    unsigned char *data;
    size_t length, room;
} gp_buffer_t;

typedef struct gp_writer {
    int fd;            // -1: closed
    _Atomic int error; // 0 or a negative errno value
    dev_t device;      // the descriptor's file: hosts close descriptors they do not know
    ino_t inode;
    char path[4096];
    gp_kept_fd_t
        directory;       // of the path; kept from one file to the next, as the program's root may be another one then
    uint64_t bytes;      // written so far, whole chunks
    uint64_t last_chunk; // where the last of them begins; 0 = there is none but the header's
    uint64_t max_bytes;  // limit of the file; 0 = none. Set before it is opened
    uint32_t sequence;
    size_t waiting, max_waiting;          // bytes in `buffers`; at most, of all types but the small ones: 0 = no limit
    gp_buffer_t buffers[GP_CHUNK_TYPES];  // being filled, by chunk type
    uint64_t refused[GP_CHUNK_TYPES];     // records that there was no room for, by chunk type
    gp_buffer_t outgoing[GP_CHUNK_TYPES]; // the writing thread's while `busy`
    gp_buffer_t packed, chunk;            // scratch of the writing thread; too small where memory is short
    gp_compressor_t compressor;
    gp_file_header_t header;
    bool is_regular;    // a file that can be put aside, not a pipe or a device
    bool has_made_name; // there is a process id in the file's name; set before it is opened
    bool is_recorded;   // a live process', and no other one's at the same time; set before it is opened
    int lent;           // a descriptor of the file, taken instead of its name; 0 = none. Set before it is opened
    // A missing directory is made again, for its user alone: another process may have removed it as its last user. Set
    // before it is opened.
    bool makes_directory;
    bool to_open;     // by the writing thread, with `header`, before it writes
    bool has_next;    // the next hand-over goes to a file of its own:
    bool to_turn;     // by the writing thread, before it writes
    char aside[4096]; // new name of the present file
    gp_file_header_t next_header;
    // 1: there is something to be written. Set by gp_writer_hand_over() (release), cleared by gp_writer_write()
    // (release); a futex.
    _Atomic uint32_t busy;
} gp_writer_t;

#define GP_WRITER_INIT                                                                                                 \
    {                                                                                                                  \
        .fd = -1, .directory = {.fd = -1 }                                                                             \
    }

// Create the file and write its header; the writer's features are added to it. Records may have been added before. An
// existing file is replaced (one with a made name only where it is a regular file; another user's, or one with several
// names, never), unless it belongs to the same session and process (the image before an exec): that one is renamed to
// PATH.1, .2, ... Where another live process records into it, PATH becomes PATH.PID. Returns 0 or a negative errno
// value, -EPERM where the file is not this user's alone; nothing is left behind on failure.
int gp_writer_open(gp_writer_t *writer, const char *path, const gp_file_header_t *header);

// The same, by gp_writer_write() when there is something to be written.
void gp_writer_open_later(gp_writer_t *writer, const char *path, const gp_file_header_t *header);

// Go on with a file of a header and whole chunks up to its end.
//   sequence: of the chunk that comes.
// Returns 0 or a negative errno value.
int gp_writer_resume(gp_writer_t *writer, const char *path, uint32_t sequence);

// Records handed over from now on go to another file, at the same path: the present one is put aside as `aside`. The
// next call comes after gp_writer_is_turning() has become false.
void gp_writer_turn(gp_writer_t *writer, const char *aside, const gp_file_header_t *header);

// Is the present file still the one before? Where the writer is not busy.
static inline bool gp_writer_is_turning(const gp_writer_t *writer)
{
    return writer->has_next || writer->to_turn;
}

// Room for a record of `bytes` in the buffer of `type`, zeroed, on an 8-byte boundary. NULL when memory is short, too
// much is waiting, or the writer has failed. `bytes` is rounded up to a multiple of 8. Fixed-size records of one type
// must all have the same size.
void *gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes);

// Bytes waiting in the buffers that are being filled.
size_t gp_writer_pending(const gp_writer_t *writer);

// Pass on what there is. Returns false when the last hand-over has not been written yet: adding goes on. Where memory
// is short, it is written as it is, not packed.
bool gp_writer_hand_over(gp_writer_t *writer);

static inline bool gp_writer_is_busy(const gp_writer_t *writer)
{
    // Acquire: partner of the release at the end of gp_writer_write(): the buffers are the producer's again.
    return atomic_load_explicit(&writer->busy, memory_order_acquire) != 0;
}

// Have a writer fail before it is opened: there is no file.
static inline void gp_writer_fail(gp_writer_t *writer, int error)
{
    writer->path[0] = '\0';
    atomic_store_explicit(&writer->error, error, memory_order_relaxed);
}

static inline bool gp_writer_has_failed(const gp_writer_t *writer)
{
    return atomic_load_explicit(&writer->error, memory_order_relaxed) != 0;
}

// Write what was handed over, definitions first. Allocates nothing. Returns 0 or the writer's error.
int gp_writer_write(gp_writer_t *writer);

// Hand over and write, for programs with one thread. Returns 0 or the writer's error.
int gp_writer_flush(gp_writer_t *writer);

// Add a copy of a record, and write what is waiting now and then, for programs with one thread. Returns 0 or a negative
// errno value.
int gp_writer_put(gp_writer_t *writer, enum gp_chunk_type type, const void *record, size_t bytes);

void gp_writer_close(gp_writer_t *writer);

// Forget everything without touching the file: in a forked child it is the parent's, and so is the writing thread.
void gp_writer_abandon(gp_writer_t *writer);
