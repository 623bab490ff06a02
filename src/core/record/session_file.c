// SPDX-License-Identifier: MIT
#include "record/session_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "capture/write/writer_file.h"
#include "collect/collector.h"
#include "model/size_limit.h"
#include "record/session_records.h"
#include "settings.h"

enum { NAMES_MAX = 10000 };

static gp_session_wish_t wish = {.clock = -1};

void gp_session_set_wish(const gp_session_wish_t *new_wish)
{
    wish = *new_wish;
}

unsigned gp_session_frequency(void)
{
    return wish.frequency_hz != 0 ? wish.frequency_hz : (unsigned)gp_setting_number(GP_SETTING_FREQUENCY);
}

bool gp_session_frequency_is_chosen(void)
{
    return wish.frequency_hz != 0 || gp_setting(GP_SETTING_FREQUENCY) != NULL;
}

uint64_t gp_session_flush_within_ns(void)
{
    if (wish.flush_ms != 0)
        return wish.flush_ms * 1000000ull;
    return gp_setting(GP_SETTING_FLUSH_MS) != NULL ? (uint64_t)(gp_setting_number(GP_SETTING_FLUSH_MS) * 1e6) : 0;
}

// The file of an earlier capture of this process stays as it is.
static bool session_file_find_free_name(char *path, size_t size)
{
    size_t length = strlen(path);
    for (int i = 2; access(path, F_OK) == 0; i++)
        if (i > NAMES_MAX || (size_t)snprintf(path + length, size - length, ".%d", i) >= size - length)
            return false;
    return true;
}

static bool session_file_find_path(gp_recording_t *recording, char *path, size_t size, bool is_own)
{
    const char *limit = gp_setting(GP_SETTING_MAX_SIZE);
    const char *wanted = wish.path[0] != '\0' ? wish.path : gp_setting(GP_SETTING_OUTPUT);
    int owner = wish.path[0] != '\0' ? wish.pid : (int)gp_setting_number(GP_SETTING_PID);
    if (limit == NULL || !gp_size_limit_parse(limit, &recording->writer.max_bytes))
        recording->writer.max_bytes = 0;
    recording->writer.lent = wish.lent;
    bool found = (is_own || wish.lent == 0) && gp_recording_path(wanted, owner, path, size);
    if (found && is_own && wish.is_asked && wish.path[0] == '\0')
        found = session_file_find_free_name(path, size);
    if (found && is_own && gp_writer_file_is_taken(path))
        found = gp_writer_file_add_pid(path, size);
    recording->writer.is_recorded = true;
    recording->writer.makes_directory = wish.makes_directory;
    recording->writer.has_made_name = found && strcmp(path, wanted) != 0;
    return found;
}

bool gp_session_path(gp_recording_t *recording, char *path, size_t size)
{
    return session_file_find_path(recording, path, size, true);
}

void gp_session_begin_recording(gp_recording_t *recording, unsigned frequency_hz)
{
    gp_recording_begin(recording, frequency_hz);
    if (wish.clock >= 0)
        recording->header.clock = (uint32_t)wish.clock;
}

void gp_session_open_later(gp_recording_t *recording)
{
    char path[4096];
    if (session_file_find_path(recording, path, sizeof(path), false))
        gp_writer_open_later(&recording->writer, path, &recording->header);
    else
        gp_writer_fail(&recording->writer, -ENOENT);
    gp_recording_meta(recording);
    gp_recording_labels(recording);
}

int gp_session_open_now(gp_recording_t *recording, unsigned frequency_hz)
{
    char path[4096];
    gp_session_begin_recording(recording, frequency_hz);
    int error = session_file_find_path(recording, path, sizeof(path), true)
                    ? gp_writer_open(&recording->writer, path, &recording->header)
                    : -ENAMETOOLONG;
    if (error == 0) {
        gp_recording_meta(recording);
        gp_recording_labels(recording);
    }
    return error;
}

int gp_session_file_descriptor(const gp_recording_t *recording)
{
    const gp_writer_t *writer = &recording->writer;
    struct stat file;
    int fd = -1;
    gp_drain_enter();
    if (!gp_writer_is_busy(writer) && writer->fd >= 0) // else the writing thread changes it
        fd = fcntl(writer->fd, F_DUPFD_CLOEXEC, gp_descriptor_floor());
    bool is_ours = fd >= 0 && fstat(fd, &file) == 0 && file.st_dev == writer->device && file.st_ino == writer->inode;
    gp_drain_leave();
    if (fd >= 0 && !is_ours) // the host has closed ours
        syscall(SYS_close, fd);
    return is_ours ? fd : -1;
}
