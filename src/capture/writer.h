// Writes a capture file: collects records per chunk type, writes whole chunks.
//
// After an error (full disk) the file is cut back to its last whole chunk and nothing more is written; the error stays in
// gp_writer_t.error. Not thread-safe: the collector owns it.
#ifndef GP_CAPTURE_WRITER_H
#define GP_CAPTURE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#include "capture/format.h"

enum { GP_WRITER_TYPES = 12 };

typedef struct gp_buffer {
    unsigned char *data;
    size_t length, room;
} gp_buffer_t;

typedef struct gp_writer {
    int fd;           // -1: closed
    int error;        // 0 or a negative errno value
    dev_t device;     // what the descriptor must still be: hosts close descriptors they do not know
    ino_t inode;
    char path[4096];
    uint64_t bytes;   // written so far, whole chunks
    uint32_t sequence;
    gp_buffer_t buffers[GP_WRITER_TYPES]; // by chunk type
} gp_writer_t;

// Create the file and write its header. An existing file is replaced, unless it belongs to the same session and process
// (the image before an exec): that one is renamed to PATH.1, .2, ...
// Returns 0 or a negative errno value; nothing is left behind on failure.
int gp_writer_open(gp_writer_t *writer, const char *path, const gp_file_header_t *header);

// Room for a record of `bytes` in the buffer of `type`, zeroed, on an 8-byte boundary. NULL when memory is short or the
// writer has failed. `bytes` is rounded up to a multiple of 8.
void *gp_writer_add(gp_writer_t *writer, enum gp_chunk_type type, size_t bytes);

// Bytes waiting in all buffers.
size_t gp_writer_pending(const gp_writer_t *writer);

// Write all buffers, definitions first. Returns 0 or the writer's error.
int gp_writer_flush(gp_writer_t *writer);

void gp_writer_close(gp_writer_t *writer);

// Forget everything without touching the file: in a forked child it is the parent's.
void gp_writer_abandon(gp_writer_t *writer);

#endif
