// SPDX-License-Identifier: MIT
#include "record/ring_file.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "capture/ring_file.h"
#include "capture/write/writer_file.h"
#include "collect/ring_drain.h"
#include "coro/thread_rings.h"
#include "coro/threads.h"
#include "signal/ticks.h"

#ifndef XFS_SUPER_MAGIC
#define XFS_SUPER_MAGIC 0x58465342
#endif

_Static_assert(sizeof(gp_ring_file_t) % 4096 == 0 && sizeof(gp_ring_file_header_t) <= 4096, "slots are whole pages");

#define STORES_AT  (sizeof(gp_ring_file_t) + (size_t)GP_RING_FILE_SLOTS * GP_RING_SLOT_BYTES)
#define FILE_BYTES (STORES_AT + 2 * (size_t)GP_RING_FILE_STORE_BYTES)

static char path[4096];
static gp_kept_fd_t directory = {.fd = -1}; // of the path: the program's root may be another one when it ends
static struct stat own;                     // the file
static _Atomic bool is_there;               // at the path
static gp_ring_file_t *mapped;              // NULL = there is none
static bool is_kept;                        // it is in use; else rings are about to leave it

// May a copy of the file share its blocks (cp --reflink, which cp tries first), so writing to them again takes new
// ones? Nothing is copied: there is nothing in it yet.
static bool ring_file_may_share(int fd)
{
    struct file_clone_range nothing = {.src_fd = fd};
    return ioctl(fd, FICLONERANGE, &nothing) == 0 || errno != EOPNOTSUPP;
}

// Pages of the file are touched in the handler: no server, and no process, is to be waited for there; and what was
// allocated stays so when it is written again, as a page that has no place is SIGBUS. Below an overlay, where the
// kernel does not say what is there, only ext4 has files in extents and says so.
static bool ring_file_is_fit(int fd)
{
    struct statfs status;
    int flags = 0;
    if (fstatfs(fd, &status) != 0)
        return false;
    unsigned long type = (unsigned long)status.f_type;
    if (type == OVERLAYFS_SUPER_MAGIC)
        return ioctl(fd, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_EXTENT_FL) != 0;
    return type == EXT4_SUPER_MAGIC || type == TMPFS_MAGIC || (type == XFS_SUPER_MAGIC && !ring_file_may_share(fd));
}

// That of a process of before is replaced, as its capture is; anything else stays.
static int ring_file_remove_former(void)
{
    char magic[sizeof(GP_RING_FILE_MAGIC) - 1] = "";
    const char *name;
    int at = gp_writer_file_at(&directory, path, &name);
    int fd = gp_descriptor_open(at, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd < 0)
        return errno == ENOENT ? 0 : -errno;
    bool is_ours = read(fd, magic, sizeof(magic)) == (ssize_t)sizeof(magic) &&
                   memcmp(magic, GP_RING_FILE_MAGIC, sizeof(magic)) == 0;
    close(fd);
    return is_ours && unlinkat(at, name, 0) == 0 ? 0 : -EEXIST;
}

static int ring_file_map(int fd)
{
    struct rlimit limit; // beyond it there is a signal
    if (!ring_file_is_fit(fd))
        return -EOPNOTSUPP;
    if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur < FILE_BYTES)
        return -EFBIG;
    if (fallocate(fd, 0, 0, (off_t)FILE_BYTES) != 0 || fstat(fd, &own) != 0)
        return -errno;
    void *memory = mmap(NULL, FILE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
        return -errno;
    mapped = memory;
    return 0;
}

static void ring_file_set_header(gp_ring_file_header_t *header)
{
    header->version = GP_RING_FILE_VERSION;
    header->header_bytes = sizeof(gp_ring_file_t);
    header->pid = (uint32_t)getpid();
    header->slots = GP_RING_FILE_SLOTS;
    header->owner_bytes = GP_RING_OWNER_BYTES;
    header->ring_bytes = GP_RING_BYTES;
    header->store_bytes = GP_RING_FILE_STORE_BYTES;
    header->tick_mult = gp_ticks_scale.mult;
    gp_modules_own_code(header->own);
    gp_thread_entry_code(header->entry);
    memcpy(header->magic, GP_RING_FILE_MAGIC, sizeof(header->magic));
}

static int ring_file_make(void)
{
    const char *name;
    int error = ring_file_remove_former(), at = gp_writer_file_at(&directory, path, &name);
    int fd = error == 0 ? gp_descriptor_open(at, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600) : -1;
    if (fd < 0)
        return error == 0 ? -errno : error;
    error = ring_file_map(fd);
    close(fd);
    if (error != 0)
        unlinkat(at, name, 0);
    return error;
}

int gp_ring_file_begin(const char *capture)
{
    struct stat status;
    gp_ring_file_round();
    if (mapped != NULL)
        return is_kept ? 0 : -EBUSY; // a thread of before is in the middle of a record still
    if (stat(capture, &status) == 0 && !S_ISREG(status.st_mode))
        return 0; // a pipe has nothing to recover
    if (snprintf(path, sizeof(path), "%s" GP_RING_FILE_SUFFIX, capture) >= (int)sizeof(path))
        return -ENAMETOOLONG;
    gp_kept_fd_close(&directory);
    directory = gp_writer_file_directory(path);
    int error = ring_file_make();
    if (error != 0) {
        gp_kept_fd_close(&directory);
        return error;
    }
    is_there = is_kept = true;
    gp_thread_keep_rings((unsigned char *)mapped + sizeof(*mapped), GP_RING_FILE_SLOTS);
    ring_file_set_header(&mapped->header);
    gp_ring_drain_note_frames(mapped->frames);
    return 0;
}

// A reader of the file after a kill sees stores in their order.
static void ring_file_set_later(uint64_t *word, uint64_t value)
{
    atomic_signal_fence(memory_order_seq_cst);
    *(volatile uint64_t *)word = value;
    atomic_signal_fence(memory_order_seq_cst);
}

void gp_ring_file_note(const gp_recording_t *recording)
{
    const gp_writer_t *writer = &recording->writer;
    if (!is_kept)
        return;
    gp_ring_file_header_t *header = &mapped->header;
    bool is_new = gp_writer_is_turning(writer) || writer->to_open; // its own header is the first chunk
    const gp_ring_file_note_t *before = &header->notes[header->latest % 2];
    gp_ring_file_note_t *note = &header->notes[(header->latest + 1) % 2];
    note->start_realtime_ns = recording->header.start_realtime_ns;
    note->start_ticks = recording->start_ticks;
    note->first_sequence = is_new ? 1 : writer->sequence;
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next) {
        if (!thread->ring.keeps)
            continue;
        // The hand-over before is written.
        gp_ring_release(&thread->ring, before->positions[thread->slot]);
        note->positions[thread->slot] = atomic_load_explicit(&thread->ring.read, memory_order_relaxed);
    }
    ring_file_set_later(&header->latest, header->latest + 1);
}

// The store of the latest note. Its old content is of two notes ago, and in the capture.
static gp_ring_file_store_t *ring_file_store_now(void)
{
    uint64_t latest = mapped->header.latest;
    gp_ring_file_store_t *store = (void *)((unsigned char *)mapped + STORES_AT + latest % 2 * GP_RING_FILE_STORE_BYTES);
    if (store->note != latest) {
        ring_file_set_later(&store->used, 0);
        ring_file_set_later(&store->note, latest);
    }
    return store;
}

static void ring_file_copy_records(unsigned char *to, const gp_ring_t *ring, uint64_t from, uint64_t upto)
{
    for (uint64_t bytes; from < upto; from += bytes, to += bytes) {
        uint64_t at = from & (ring->capacity - 1), room = ring->capacity - at;
        bytes = upto - from < room ? upto - from : room;
        memcpy(to, gp_ring_at(ring, from), bytes);
    }
}

void gp_ring_file_put_aside(gp_thread_t *thread, const gp_recording_t *recording)
{
    gp_ring_t *ring = &thread->ring;
    if (!is_kept || !ring->keeps)
        return;
    uint64_t noted = mapped->header.notes[mapped->header.latest % 2].positions[thread->slot];
    if (!gp_writer_is_busy(&recording->writer)) // what was handed over is written
        gp_ring_release(ring, noted);
    uint64_t from = atomic_load_explicit(&ring->tail, memory_order_relaxed);
    uint64_t upto = atomic_load_explicit(&ring->read, memory_order_relaxed);
    gp_ring_file_store_t *store = ring_file_store_now();
    gp_ring_file_block_t *block = (void *)((unsigned char *)(store + 1) + store->used);
    uint64_t bytes = upto - from, used = store->used + sizeof(*block) + bytes;
    if (bytes == 0 || used > GP_RING_FILE_STORE_BYTES - sizeof(*store))
        return;
    *block = (gp_ring_file_block_t){.from = from, .noted = noted, .bytes = (uint32_t)bytes, .slot = thread->slot};
    memcpy(&block->owner, gp_ring_owner(ring), sizeof(block->owner));
    ring_file_copy_records((unsigned char *)(block + 1), ring, from, upto);
    ring_file_set_later(&store->used, used);
}

void gp_ring_file_round(void)
{
    if (!gp_thread_turn_rings(gp_ring_drain_drain) || is_kept || mapped == NULL)
        return;
    munmap(mapped, FILE_BYTES);
    mapped = NULL;
}

// Another process may have put its own in the place since.
void gp_ring_file_unlink(void)
{
    const char *name;
    struct stat status;
    if (!atomic_exchange_explicit(&is_there, false, memory_order_relaxed))
        return;
    int at = gp_writer_file_at(&directory, path, &name);
    if (fstatat(at, name, &status, AT_SYMLINK_NOFOLLOW) == 0 && status.st_dev == own.st_dev &&
        status.st_ino == own.st_ino)
        unlinkat(at, name, 0);
    gp_kept_fd_close(&directory);
}

bool gp_ring_file_end(void)
{
    if (is_kept) {
        gp_ring_file_unlink();
        gp_ring_drain_note_frames(NULL);
        gp_thread_keep_rings(NULL, 0);
    }
    is_kept = false;
    gp_ring_file_round();
    return mapped == NULL;
}

void gp_ring_file_in_child(void)
{
    if (mapped != NULL)
        munmap(mapped, FILE_BYTES);
    mapped = NULL;
    is_there = is_kept = false;
    gp_kept_fd_close(&directory);
    gp_ring_drain_note_frames(NULL);
}
