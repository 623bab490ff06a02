// SPDX-License-Identifier: MIT
#include "session/closing.h"

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include "capture/write_parts.h"
#include "session/follow.h"
#include "settings.h"
#include "signal/mask.h"

enum { LINE_SIZE = 4096, NAME_SIZE = 1024, PATIENCE_MS = 100 }; // a pipe takes PIPE_BUF = 4096 bytes at once

typedef struct asked { // GREENPROF_SAY: DEVICE:INODE:end|failure:NAME
    uint64_t device, inode;
    bool is_quiet;
    char name[NAME_SIZE]; // of the capture, as the user has it
} asked_t;

static bool read_asked(asked_t *asked)
{
    const char *text = gp_setting(GP_SETTING_SAY);
    char when[8] = "";
    int used = 0;
    if (text == NULL || (int)gp_setting_number(GP_SETTING_PID) != getpid() ||
        sscanf(text, "%" SCNu64 ":%" SCNu64 ":%7[a-z]:%n", &asked->device, &asked->inode, when, &used) != 3 ||
        used == 0)
        return false;
    asked->is_quiet = strcmp(when, "end") != 0;
    return gp_recording_path(text + used, asked->name, sizeof(asked->name));
}

// A background process that writes to a terminal may be stopped (tostop): that is not worth a line.
static bool is_unwelcome(int fd)
{
    struct termios settings;
    pid_t foreground = tcgetpgrp(fd);
    return foreground >= 0 && foreground != getpgrp() && tcgetattr(fd, &settings) == 0 &&
           (settings.c_lflag & TOSTOP) != 0;
}

static bool can_say(const asked_t *asked)
{
    struct stat status;
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    return fstat(STDERR_FILENO, &status) == 0 && status.st_dev == asked->device && status.st_ino == asked->inode &&
           !is_unwelcome(STDERR_FILENO) && poll(&ready, 1, PATIENCE_MS) == 1 && (ready.revents & POLLOUT) != 0 &&
           (ready.revents & POLLERR) == 0;
}

static void say(const asked_t *asked, const char *line, int length)
{
    size_t bytes = length < LINE_SIZE ? (size_t)length : LINE_SIZE - 1;
    if (length <= 0 || !can_say(asked))
        return;
    gp_write_parts(STDERR_FILENO, &(struct iovec){(void *)(uintptr_t)line, bytes}, 1); // or nowhere
}

// As a shell takes it back: in quotes where it is not plain.
static const char *quoted(const char *name, char *text, size_t size)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_./+-=:,@%";
    size_t length = 0;
    if (name[strspn(name, plain)] == '\0')
        return name;
    text[length++] = '\'';
    for (; *name != '\0' && length + 6 < size; name++)
        if (*name == '\'')
            length += (size_t)snprintf(text + length, size - length, "'\\''");
        else
            text[length++] = *name;
    text[length++] = '\'';
    text[length] = '\0';
    return text;
}

// NULL = nothing is wrong with the file.
static const char *trouble(const gp_recording_t *recording, const gp_closing_t *closing)
{
    int error = -atomic_load_explicit(&recording->writer.error, memory_order_relaxed);
    struct stat status;
    if (error == ESTALE || (error == 0 && fstat(recording->writer.fd, &status) == 0 && status.st_nlink == 0))
        return "it was removed or replaced while it was written";
    if (closing->is_full)
        return "it has the size that it was to have at most";
    if (error != 0)
        return strerror(error);
    return closing->is_whole ? NULL : "the end of it is not written: the disk is too slow";
}

// Captures of child processes are files beside it, where they used the CPU and are followed.
static const char *children(void)
{
    struct rusage usage;
    bool worked =
        getrusage(RUSAGE_CHILDREN, &usage) == 0 && (usage.ru_utime.tv_sec > 0 || usage.ru_utime.tv_usec >= 1000);
    return worked && gp_follow_forks() ? "; child processes have files of their own" : "";
}

void gp_closing_say(const gp_recording_t *recording, const gp_closing_t *closing)
{
    static bool is_said;
    char line[LINE_SIZE], quotes[NAME_SIZE * 2], losses[64];
    asked_t asked;
    if (is_said || !read_asked(&asked))
        return;
    is_said = true;
    const char *wrong = trouble(recording, closing), *name = quoted(asked.name, quotes, sizeof(quotes));
    int len = snprintf(losses, sizeof(losses), closing->lost == 0 ? "none lost" : "%" PRIu64 " lost", closing->lost);
    if (closing->spans_lost != 0)
        snprintf(losses + len, sizeof(losses) - (size_t)len, ", %" PRIu64 " spans lost", closing->spans_lost);
    if (wrong != NULL)
        say(&asked, line,
            snprintf(line, sizeof(line), "greenprof: %s: not all of it is recorded: %s\n", asked.name, wrong));
    else if (!asked.is_quiet)
        say(&asked, line,
            snprintf(line, sizeof(line), "greenprof: %s: %" PRIu64 " samples, %s%s; next: greenprof report %s\n",
                     asked.name, closing->samples, losses, children(), name));
}

void gp_closing_say_failed(int error)
{
    char line[LINE_SIZE];
    asked_t asked;
    sigset_t pipe_signal, old, pending;
    struct timespec now = {0};
    if (!read_asked(&asked))
        return;
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    gp_mask_change(SIG_BLOCK, &pipe_signal, &old);
    say(&asked, line,
        snprintf(line, sizeof(line), "greenprof: %s: nothing is recorded: %s\n", asked.name,
                 error == -ENXIO ? "it is a pipe that nothing reads" : strerror(-error)));
    if (!sigismember(&pending, SIGPIPE))
        syscall(SYS_rt_sigtimedwait, &pipe_signal, NULL, &now, sizeof(uint64_t));
    gp_mask_change(SIG_SETMASK, &old, NULL);
}
