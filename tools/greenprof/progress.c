// SPDX-License-Identifier: MIT
#include "progress.h"

#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "attach/threads.h"

enum { FIRST_MS = 500, NEXT_MS = 100, CELLS = 24, LINE_SIZE = 512 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
// All of it under the lock.
static pthread_t drawer;
static bool is_running, is_over, is_shown;
static char step_what[64], step_path[PATH_MAX];
static int step_fd;
static off_t step_size; // 0 = not known
static unsigned ticks;

static bool progress_is_wanted(void)
{
    const char *term = getenv("TERM");
    return isatty(STDERR_FILENO) && term != NULL && term[0] != '\0' && strcmp(term, "dumb") != 0;
}

static bool progress_has_colour(void)
{
    const char *no = getenv("NO_COLOR"); // no-color.org
    return no == NULL || no[0] == '\0';
}

static void progress_erase(void)
{
    if (is_shown)
        fputs("\r\033[K", stderr);
    is_shown = false;
}

static int progress_columns(void)
{
    struct winsize size;
    return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
}

// "[########                ]  33 %", or a moving mark where the length is unknown.
static void progress_make_bar(char bar[CELLS + 16])
{
    off_t at = step_size > 0 ? lseek(step_fd, 0, SEEK_CUR) : -1;
    int full = 0;
    bar[0] = '[';
    memset(bar + 1, ' ', CELLS);
    if (at >= 0) {
        at = at < step_size ? at : step_size;
        full = (int)(at * CELLS / step_size);
        memset(bar + 1, '#', (size_t)full);
        sprintf(bar + 1 + CELLS, "] %3d %%", (int)(at * 100 / step_size));
    } else {
        unsigned place = ticks % (2 * CELLS - 2);
        bar[1 + (place < CELLS ? place : 2 * CELLS - 2 - place)] = '#';
        strcpy(bar + 1 + CELLS, "]");
    }
}

// "[####      ]  17 % reading .../long/name" in a line of the terminal: of a long name its end.
static void progress_make_line(char line[LINE_SIZE])
{
    char bar[CELLS + 16];
    size_t len = strlen(step_path), room = (size_t)progress_columns() - 1;
    progress_make_bar(bar);
    size_t used = strlen(bar) + strlen(step_what) + 2;
    size_t left = room > used ? room - used : 0;
    const char *path = len <= left ? step_path : left > 3 ? step_path + len - (left - 3) : "";
    int put = snprintf(line, LINE_SIZE, "%s %s %s%s", bar, step_what, len > left && left > 3 ? "..." : "", path);
    if (put > (int)room && room < LINE_SIZE)
        line[room] = '\0';
}

static void progress_draw(void)
{
    char line[LINE_SIZE];
    progress_make_line(line);
    if (progress_has_colour())
        fprintf(stderr, "\r\033[36m%s\033[0m\033[K", line);
    else
        fprintf(stderr, "\r%s\033[K", line);
    fflush(stderr);
    is_shown = true;
    ticks++;
}

static void progress_wait_for(int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += (long)ms * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    while (!is_over && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        ;
}

static void *progress_draw_on(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&lock);
    progress_wait_for(FIRST_MS);
    while (!is_over) {
        progress_draw();
        progress_wait_for(NEXT_MS);
    }
    progress_erase();
    fflush(stderr);
    pthread_mutex_unlock(&lock);
    return NULL;
}

// Control characters of a name do not steer the terminal.
static void progress_set_step(const char *what, const char *path)
{
    snprintf(step_what, sizeof(step_what), "%s", what);
    snprintf(step_path, sizeof(step_path), "%s", path);
    for (char *at = step_path; *at != '\0'; at++)
        if ((unsigned char)*at < ' ' || (unsigned char)*at >= 0x7f)
            *at = '?';
}

void gp_progress_begin(const char *what, const char *path, int fd)
{
    struct stat status;
    if (!progress_is_wanted())
        return;
    pthread_mutex_lock(&lock);
    progress_set_step(what, path);
    step_fd = fd;
    step_size = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) ? status.st_size : 0;
    if (!is_running) {
        is_over = false;
        is_running = gp_thread_start(&drawer, progress_draw_on, NULL) == 0;
    }
    pthread_mutex_unlock(&lock);
}

void gp_progress_end(void)
{
    pthread_mutex_lock(&lock);
    bool join = is_running;
    is_over = true;
    is_running = false;
    pthread_cond_signal(&changed);
    pthread_mutex_unlock(&lock);
    if (join)
        pthread_join(drawer, NULL);
}

void gp_progress_clear(void)
{
    pthread_mutex_lock(&lock);
    progress_erase();
    pthread_mutex_unlock(&lock);
}
