// SPDX-License-Identifier: MIT
#include "slow.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "base/stream.h"
#include "command.h"
#include "message.h"
#include "run/run_aside.h"
#include "run/run_checks.h"
#include "ship/follow/shipper.h"
#include "ship/send/destination.h"

enum { LOOK_MS = 200 };

static gp_ship_state_t shipping;
static volatile sig_atomic_t program = -1;

// --- what is wished

// As a path within a URL.
static void slow_put_path(FILE *out, const char *path)
{
    for (; *path != '\0'; path++)
        if (strchr("%?&#", *path) != NULL || (unsigned char)*path <= ' ')
            fprintf(out, "%%%02x", (unsigned char)*path);
        else
            fputc(*path, out);
}

static int slow_make_url(gp_slow_wish_t *wish, const char *options, size_t len, bool now)
{
    size_t size;
    FILE *out = open_memstream(&wish->url, &size);
    char separator = '?';
    if (out == NULL)
        return gp_fail("--slow", "%s", strerror(errno));
    fprintf(out, "slow+file://");
    slow_put_path(out, wish->directory);
    for (size_t at = 0; at < len; separator = '&') {
        size_t end = at + strcspn(options + at, ",");
        fprintf(out, "%c%.*s", separator, (int)(end - at), options + at);
        at = end + 1;
    }
    if (now)
        fprintf(out, "%cstuck=0s", separator);
    return gp_stream_close(out) ? 0 : gp_fail("--slow", "%s", strerror(ENOMEM));
}

static int slow_check_directory(const char *directory)
{
    struct stat status;
    if (stat(directory, &status) < 0)
        return gp_fail(directory, "%s", strerror(errno));
    if (!S_ISDIR(status.st_mode))
        return gp_fail(directory, "%s", strerror(ENOTDIR));
    return access(directory, W_OK | X_OK) == 0 ? 0 : gp_fail(directory, "%s", strerror(errno));
}

static int store_slow_check_url(const char *text, const char *command)
{
    char error[GP_FLEET_ERROR_SIZE] = "";
    gp_fleet_url_t url;
    void *destination = NULL;
    int result = gp_fleet_url_parse(&url, text, error);
    const gp_destination_kind_t *kind = result == 0 ? gp_destination_find(url.scheme) : NULL;
    if (kind != NULL)
        result = kind->open(&destination, &url, error);
    if (destination != NULL)
        kind->close(destination);
    gp_fleet_url_free(&url);
    return result == 0 ? 0 : gp_usage_error(command, "--slow: %s", error[0] != '\0' ? error : strerror(-result));
}

// The options end where a word has no '='.
static size_t slow_options_len(const char *text)
{
    size_t at = 0;
    for (size_t end; text[at] != '\0'; at = end + 1) {
        end = at + strcspn(text + at, ",");
        if (text[end] == '\0' || memchr(text + at, '=', end - at) == NULL || text[at] == '/' || text[at] == '.')
            break;
    }
    return at;
}

int gp_slow_wish(gp_slow_wish_t *wish, const char *text, const char *command, bool now)
{
    size_t len = slow_options_len(text);
    const char *directory = text + len;
    *wish = (gp_slow_wish_t){0};
    if (directory[0] == '\0' || (len == 0 && !now))
        return gp_usage_error(command, "--slow %s: must be options and a directory, as over=250ms,stuck=5s,DIR", text);
    int status = slow_check_directory(directory);
    if (status == 0 && realpath(directory, wish->directory) == NULL)
        status = gp_fail(directory, "%s", strerror(errno));
    bool has_stuck = strncmp(text, "stuck=", 6) == 0 || strstr(text, ",stuck=") != NULL;
    if (status == 0)
        status = slow_make_url(wish, text, len, now && !has_stuck);
    return status == 0 ? store_slow_check_url(wish->url, command) : status;
}

void gp_slow_wish_free(gp_slow_wish_t *wish)
{
    free(wish->url);
    *wish = (gp_slow_wish_t){0};
}

// --- shipping

// Ship, with a journal that is removed: it is of no use to another process.
static int slow_ship(const gp_slow_wish_t *wish, gp_ship_options_t *options)
{
    static const char *const names[] = {"ship.journal", "ship.journal.new", "ship.lock"};
    char state[PATH_MAX + 32];
    snprintf(state, sizeof(state), "%s/.greenprof-XXXXXX", wish->directory);
    if (mkdtemp(state) == NULL)
        return gp_fail(wish->directory, "%s", strerror(errno));
    options->state = state;
    options->urls = (const char *const *)&wish->url;
    options->url_count = 1;
    options->grain_ns = UINT64_C(10000000000);
    options->interval_ns = UINT64_C(1000000000);
    options->say = gp_warn;
    options->coroutines = gp_slow_coroutines;
    options->state_now = &shipping;
    int status = gp_ship(options);
    int folder = open(state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    for (size_t i = 0; folder >= 0 && i < sizeof(names) / sizeof(names[0]); i++)
        unlinkat(folder, names[i], 0);
    if (folder >= 0)
        close(folder);
    rmdir(state);
    return status;
}

int gp_slow_once(const gp_slow_wish_t *wish, const char *capture)
{
    gp_ship_options_t options = {.paths = &capture, .path_count = 1, .once = true};
    return slow_ship(wish, &options);
}

// --- beside the program

typedef struct follower {
    const gp_slow_wish_t *wish;
    char directory[PATH_MAX], name[PATH_MAX];
    uint64_t since_ns;
} follower_t;

static void slow_look(int number)
{
    struct pollfd event = {.fd = program, .events = POLLIN};
    int saved = errno;
    (void)number;
    if (poll(&event, 1, 0) == 1) { // ended: the end of its captures is still to be read
        atomic_store_explicit(&shipping.order, GP_SHIP_FINISH, memory_order_release);
        atomic_fetch_add_explicit(&shipping.bell, 1, memory_order_release);
    }
    errno = saved;
}

static void slow_follow(int program_fd, void *context)
{
    follower_t *follower = context;
    const char *path = follower->directory;
    struct sigaction action = {.sa_handler = slow_look, .sa_flags = SA_RESTART};
    const struct itimerval every = {{0, LOOK_MS * 1000}, {0, LOOK_MS * 1000}};
    gp_ship_options_t options = {
        .paths = &path,
        .path_count = 1,
        .only = follower->name,
        .since_ns = follower->since_ns,
    };
    program = program_fd;
    sigaction(SIGALRM, &action, NULL);
    setitimer(ITIMER_REAL, &every, NULL);
    slow_ship(follower->wish, &options);
}

int gp_slow_follow(gp_slow_wish_t *wish, const char *output, const gp_arguments_t *arguments)
{
    follower_t follower = {.wish = wish};
    struct timespec now;
    char file[PATH_MAX];
    clock_gettime(CLOCK_REALTIME, &now);
    follower.since_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    if (gp_run_replace_pid(output, file) < 0)
        return gp_fail(output, "%s", strerror(ENAMETOOLONG));
    char *slash = strrchr(file, '/'); // always absolute
    strcpy(follower.name, slash + 1);
    slash[slash == file] = '\0';
    strcpy(follower.directory, file);
    if (gp_run_aside(slow_follow, &follower, arguments) == 0)
        return 0;
    return gp_fail("--slow",
                   "what follows the program would be its child here, as it is the first process of a container "
                   "or adopts others: run 'greenprof ship' beside it");
}
