// SPDX-License-Identifier: MIT
#include "record/closing_line.h"

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

#include "base/number.h"
#include "capture/write/end_summary.h"
#include "capture/write/write_parts.h"
#include "collect/cost.h"
#include "not_known.h"
#include "record/budget.h"
#include "record/default_rate.h"
#include "record/follow.h"
#include "settings.h"
#include "signal/mask.h"

enum { PATIENCE_MS = 100, NOTE_SIZE = 1536 };

typedef struct asked { // GREENPROF_SAY: DEVICE:INODE:end|failure:NAME
    uint64_t device, inode;
    bool is_quiet;
    char name[GP_CLOSING_NAME_SIZE]; // of the capture, as the user has it
} asked_t;

static bool closing_line_read_asked(asked_t *asked)
{
    const char *text = gp_setting(GP_SETTING_SAY);
    char when[8] = "";
    int used = 0;
    if (text == NULL || (int)gp_setting_number(GP_SETTING_PID) != getpid() ||
        sscanf(text, "%" SCNu64 ":%" SCNu64 ":%7[a-z]:%n", &asked->device, &asked->inode, when, &used) != 3 ||
        used == 0)
        return false;
    asked->is_quiet = strcmp(when, "end") != 0;
    return gp_recording_path(text + used, getpid(), asked->name, sizeof(asked->name));
}

// A background process may be stopped by writing to a terminal (tostop): a line is not worth this.
static bool closing_line_is_unwelcome(int fd)
{
    struct termios settings;
    pid_t foreground = tcgetpgrp(fd);
    return foreground >= 0 && foreground != getpgrp() && tcgetattr(fd, &settings) == 0 &&
           (settings.c_lflag & TOSTOP) != 0;
}

static bool closing_line_can_say(const asked_t *asked)
{
    struct stat status;
    struct pollfd ready = {.fd = STDERR_FILENO, .events = POLLOUT};
    return fstat(STDERR_FILENO, &status) == 0 && status.st_dev == asked->device && status.st_ino == asked->inode &&
           !closing_line_is_unwelcome(STDERR_FILENO) && poll(&ready, 1, PATIENCE_MS) == 1 &&
           (ready.revents & POLLOUT) != 0 && (ready.revents & POLLERR) == 0;
}

static void closing_line_say(const asked_t *asked, const char *line, size_t length)
{
    if (length > 0 && closing_line_can_say(asked))
        gp_write_parts(STDERR_FILENO, &(struct iovec){(void *)(uintptr_t)line, length}, 1); // or nowhere
}

// NULL = nothing is wrong with the file.
static const char *closing_line_trouble(const gp_recording_t *recording, const gp_closing_line_t *closing)
{
    int error = -atomic_load_explicit(&recording->writer.error, memory_order_relaxed);
    struct stat status;
    if (error == ESTALE || (error == 0 && fstat(recording->writer.fd, &status) == 0 && status.st_nlink == 0))
        return "it was removed or replaced while it was written";
    if (closing->is_full)
        return GP_CLOSING_FULL;
    if (error != 0)
        return strerror(error);
    return closing->is_whole ? NULL : "the end of it is not written: the disk is too slow";
}

// Greenprof's part of the CPU time, once the price of a signal is known: samples are most of it.
static size_t closing_line_cost_note(const gp_closing_line_t *closing, char *text, size_t size)
{
    unsigned hz = gp_default_rate_lowered_to();
    char percent[GP_NUMBER_SIZE], us[GP_NUMBER_SIZE];
    if (gp_cost_delivery_ns() == 0 || closing->own_share <= 0)
        return 0;
    gp_number_write(percent, (uint64_t)(closing->own_share * 1000 + 0.5), 1);
    gp_number_write(us, (gp_cost_delivery_ns() + 500) / 1000, 0);
    int used = snprintf(text, size, "took %s %% of its CPU; a signal costs %s us here", percent, us);
    if (hz != 0)
        used += snprintf(text + used, size - (size_t)used, ", so %u Hz", hz);
    return (size_t)used;
}

// The budget's effect: the rate it came to, and the cost that no rate changes.
static int closing_line_budget_note(const gp_closing_line_t *closing, char *text, size_t size)
{
    unsigned hz = gp_budget_ppm() != 0 ? gp_budget_lowered_to() : 0;
    double percent, switches;
    char may[GP_NUMBER_SIZE], cost[GP_NUMBER_SIZE];
    int used = 0;
    text[0] = '\0';
    gp_number_write(may, gp_budget_ppm(), 4);
    if (hz != 0)
        used = snprintf(text, size, "rate lowered to %u Hz to stay within %s %%", hz, may);
    if (closing->rested[0] != '\0')
        used += snprintf(text + used, size - (size_t)used, "%s%s", used > 0 ? ", " : "", closing->rested);
    if (gp_budget_spent_by_hooks(&percent, &switches))
        used +=
            snprintf(text + used, size - (size_t)used,
                     "%sthe hooks of %.0f switches a second alone cost %s %%, more than the budget of %s %%",
                     used > 0 ? ", " : "", switches, gp_number_write(cost, (uint64_t)(percent * 100 + 0.5), 2), may);
    return used;
}

// Captures of child processes are files beside it, where they used the CPU and are followed.
static const char *closing_line_note(const gp_closing_line_t *closing, char *text, size_t size)
{
    struct rusage usage;
    bool worked =
        getrusage(RUSAGE_CHILDREN, &usage) == 0 && (usage.ru_utime.tv_sec > 0 || usage.ru_utime.tv_usec >= 1000);
    char budget[NOTE_SIZE / 4];
    size_t used = gp_not_known_words(text, size / 2);
    if (closing_line_budget_note(closing, budget, sizeof(budget)) > 0)
        used += (size_t)snprintf(text + used, size - used, "%s%s", used > 0 ? ", " : "", budget);
    if (closing->is_sandboxed)
        used += (size_t)snprintf(text + used, size - used, "%srecorded up to the sandbox that the program has entered",
                                 used > 0 ? ", " : "");
    if (used > 0)
        used += (size_t)snprintf(text + used, size - used, ", ");
    if (closing->unprofiled > 0)
        snprintf(text + used, size - used, "%" PRIu64 " children by fork could not be profiled", closing->unprofiled);
    else if (closing->parts_refused)
        snprintf(text + used, size - used, "not in parts any more, as the program gave up its right to the directory");
    else if (closing->parts > 0)
        snprintf(text + used, size - used, "the last of %u parts", closing->parts + 1);
    else if (worked && gp_follow_forks())
        snprintf(text + used, size - used, "child processes have files of their own");
    else if (used == 0)
        return NULL;
    else
        text[used - 2] = '\0';
    return text;
}

static const char *closing_line_notes(const gp_closing_line_t *closing, char *text, size_t size)
{
    size_t cost = closing_line_cost_note(closing, text, size / 4), gap = cost > 0 ? strlen("; ") : 0;
    const char *note = closing_line_note(closing, text + cost + gap, size - cost - gap);
    if (cost > 0 && note != NULL)
        memcpy(text + cost, "; ", gap);
    return cost > 0 ? text : note;
}

void gp_closing_line_say(const gp_recording_t *recording, const gp_closing_line_t *closing)
{
    static bool is_said;
    char line[GP_CLOSING_LINE_SIZE], text[NOTE_SIZE];
    asked_t asked;
    if (is_said || !closing_line_read_asked(&asked))
        return;
    is_said = true;
    const char *wrong = closing_line_trouble(recording, closing);
    if (wrong != NULL)
        closing_line_say(&asked, line, gp_end_summary_failed(line, asked.name, "not all of it", wrong));
    else if (!asked.is_quiet)
        closing_line_say(&asked, line,
                         gp_end_summary(line, asked.name, closing->samples, &closing->lost,
                                        closing_line_notes(closing, text, sizeof(text))));
}

// On a thread that has SIGPIPE as the program has it.
static void closing_line_say_unsignalled(const asked_t *asked, const char *line, size_t length)
{
    sigset_t pipe_signal, old, pending;
    struct timespec now = {0};
    sigemptyset(&pipe_signal);
    sigaddset(&pipe_signal, SIGPIPE);
    sigpending(&pending);
    gp_mask_change(SIG_BLOCK, &pipe_signal, &old);
    closing_line_say(asked, line, length);
    if (!sigismember(&pending, SIGPIPE))
        syscall(SYS_rt_sigtimedwait, &pipe_signal, NULL, &now, sizeof(uint64_t));
    gp_mask_change(SIG_SETMASK, &old, NULL);
}

void gp_closing_line_say_failed(int error)
{
    char line[GP_CLOSING_LINE_SIZE];
    asked_t asked;
    if (closing_line_read_asked(&asked))
        closing_line_say_unsignalled(&asked, line,
                                     gp_end_summary_failed(line, asked.name, "nothing",
                                                           error == -ENXIO ? "it is a pipe that nothing reads"
                                                           : error == -EPERM
                                                               ? "it is another user's, or has several names"
                                                               : strerror(-error)));
}

void gp_closing_line_say_sandboxed(void)
{
    char line[GP_CLOSING_LINE_SIZE];
    asked_t asked;
    if (!closing_line_read_asked(&asked))
        return;
    size_t length = gp_end_summary_failed(line, asked.name, "nothing", GP_CLOSING_SANDBOX);
    (void)!write(STDERR_FILENO, line, length);
}

void gp_closing_line_say_no_rings(int error)
{
    char line[GP_CLOSING_LINE_SIZE];
    asked_t asked;
    if (closing_line_read_asked(&asked))
        closing_line_say_unsignalled(&asked, line, gp_end_summary_no_rings(line, asked.name, -error));
}
