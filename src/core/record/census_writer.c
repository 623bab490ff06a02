// SPDX-License-Identifier: MIT
#include "record/census_writer.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "collect/cpu_time.h"
#include "signal/ticks.h"

static gp_recording_t recording = {.writer = GP_WRITER_INIT, .is_brief = true};
static int recording_pid;

enum { PIECES_BYTES = 2 << 20 };

static void census_writer_record_threads(void)
{
    gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    for (; thread != NULL; thread = thread->next) {
        if (atomic_load_explicit(&thread->state, memory_order_acquire) != GP_THREAD_LIVE)
            continue;
        gp_recording_name_thread(thread);
        gp_recording_thread(&recording, thread, gp_cpu_time_thread(thread->tid));
    }
}

static void census_writer_record_end(void)
{
    gp_end_record_t *record = gp_writer_add(&recording.writer, GP_CHUNK_END, sizeof(*record));
    if (record == NULL)
        return;
    record->time_ns = gp_recording_since(&recording, gp_ticks());
    record->reason = GP_END_CENSUS;
}

// The file is written as the census goes on: nothing else has this writer, and no lock is held meanwhile.
static void census_writer_between_pieces(gp_recording_t *census)
{
    gp_collector_between_pieces();
    if (gp_writer_pending(&census->writer) < PIECES_BYTES)
        return;
    gp_recording_definitions(census);
    if (!gp_writer_hand_over(&census->writer))
        return;
    gp_drain_leave();
    gp_writer_write(&census->writer);
    gp_drain_enter();
}

static int census_writer_take(const char *path, bool direct, const gp_census_stand_t *stand)
{
    if (recording_pid != getpid()) { // the parent's, in an unknown state since the fork
        memset(&recording, 0, sizeof(recording));
        recording = (gp_recording_t){.writer = GP_WRITER_INIT, .is_brief = true};
        recording_pid = getpid();
    }
    gp_drain_enter();
    gp_modules_refresh();
    gp_recording_begin(&recording, 0);
    recording.writer.has_made_name = !direct;
    gp_writer_open_later(&recording.writer, path, &recording.header);
    gp_recording_meta(&recording);
    census_writer_record_threads();
    gp_census_take(&recording, 1, stand, census_writer_between_pieces);
    gp_recording_definitions(&recording);
    census_writer_record_end();
    bool taken = gp_writer_hand_over(&recording.writer);
    gp_drain_leave();
    return taken ? 0 : -ENOMEM;
}

int gp_census_write(const char *path, const gp_census_stand_t *stand)
{
    char aside[PATH_MAX + 32];
    struct stat status;
    bool direct = stat(path, &status) == 0 && !S_ISREG(status.st_mode);
    snprintf(aside, sizeof(aside), direct ? "%s" : "%s.%d.part", path, (int)getpid());
    int error = census_writer_take(aside, direct, stand);
    if (error == 0)
        error = gp_writer_write(&recording.writer);
    gp_recording_abandon(&recording);
    gp_kept_fd_close(&recording.writer.directory);
    if (error == 0 && !direct && rename(aside, path) != 0)
        error = -errno;
    if (error != 0 && !direct)
        unlink(aside);
    return error;
}
