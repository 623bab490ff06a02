// SPDX-License-Identifier: MIT
#include "record/census_service.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/futex.h"
#include "collect/collector.h"
#include "collect/sampler.h"
#include "collect/sampling_signal.h"
#include "coro/process_id.h"
#include "coro/spawn.h"
#include "greenprof/coro.h"
#include "live/census_place.h"
#include "record/census_fatal.h"
#include "record/census_writer.h"
#include "settings.h"
#include "signal/handler.h"
#include "signal/mask.h"
#include "signal/ticks.h"

// The program's request.
static struct {
    pthread_mutex_t turn; // one at a time
    int pid;              // the lock is this process': a forked child's is new
    char path[PATH_MAX];
    gp_census_stand_t stand; // of the thread that asks
    int result;
    _Atomic uint32_t asked, answered; // the latter is a futex
} request = {.turn = PTHREAD_MUTEX_INITIALIZER};

// By which others may ask; the collector's own.
static struct {
    int pid, signal_number;
    char directory[GP_PLACE_SIZE];
    char path[GP_PLACE_SIZE + 24];   // of the marker, "" = there is none
    char answer[GP_PLACE_SIZE + 48]; // the latest, in case it was not taken
} place;

static uint64_t census_service_own_start_time(void)
{
    char text[1024];
    int fd = gp_descriptor_open(AT_FDCWD, "/proc/self/stat", O_RDONLY, 0);
    ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[length > 0 ? length : 0] = '\0';
    return gp_census_start_time(text);
}

int gp_census_service_place(void)
{
    if (gp_settings_are_refused()) // the asker could be anyone
        return -EPERM;
    return gp_census_place_make(place.directory);
}

// Let this thread, which blocks all signals, be asked, and say so; or say it no more.
static void census_service_announce(void)
{
    sigset_t signals;
    bool is_ours = gp_sampling_signal_is_wanted() && gp_sampling_signal_is_ours();
    int number = is_ours ? gp_sampling_signal() : 0, pid = getpid();
    if (place.pid == pid && place.signal_number == number)
        return;
    if (place.pid == pid && place.path[0] != '\0')
        unlink(place.path);
    place.pid = pid;
    place.signal_number = number;
    place.path[0] = place.answer[0] = '\0';
    sigfillset(&signals);
    if (is_ours)
        sigdelset(&signals, number);
    gp_mask_change(SIG_SETMASK, &signals, NULL);
    int directory = is_ours ? gp_census_service_place() : -ENOENT;
    if (directory < 0)
        return;
    gp_census_marker_t marker = {
        .pid = pid,
        .tid = (int)syscall(SYS_gettid),
        .signal_number = number,
        .name_space = gp_census_name_space(),
        .start = census_service_own_start_time(),
    };
    if (gp_census_marker_write(directory, &marker) == 0)
        snprintf(place.path, sizeof(place.path), "%s/%d", place.directory, pid);
    close(directory);
}

// The directory is looked at anew: the process may have changed its root, or its user.
static void census_service_answer(uint32_t number)
{
    char name[48], path[96];
    int directory = gp_census_service_place();
    if (place.answer[0] != '\0')
        unlink(place.answer);
    place.answer[0] = '\0';
    if (directory < 0)
        return;
    gp_census_answer_name(getpid(), number, name, sizeof(name));
    snprintf(place.answer, sizeof(place.answer), "%s/%s", place.directory, name);
    // In the directory that was looked at, whatever is by its name now; /proc/self is empty once the main thread ended.
    snprintf(path, sizeof(path), "/proc/thread-self/fd/%d/%s", directory, name);
    gp_census_write(path, NULL);
    close(directory);
}

static void census_service_after_round(void)
{
    census_service_announce();
    uint64_t asked = atomic_exchange_explicit(&gp_handler_census, 0, memory_order_acquire);
    if (asked != 0)
        census_service_answer((uint32_t)asked);
    // Acquire: partner of the release in prof_coro_dump(): the path is there.
    uint32_t mine = atomic_load_explicit(&request.asked, memory_order_acquire);
    if (mine != atomic_load_explicit(&request.answered, memory_order_relaxed)) {
        request.result = gp_census_write(request.path, &request.stand);
        atomic_store_explicit(&request.answered, mine, memory_order_release);
        gp_futex_wake_all(&request.answered);
    }
    gp_census_fatal_serve();
}

static int census_service_start_collector(void)
{
    gp_sampler_enter();
    gp_ticks_init();
    int error = gp_collector_start();
    gp_sampler_leave();
    return error;
}

static void census_service_take_turn(void)
{
    if (request.pid != getpid()) { // a fork while another thread waited for an answer
        pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
        request.turn = fresh;
        request.pid = getpid();
        atomic_store_explicit(&request.answered, atomic_load_explicit(&request.asked, memory_order_relaxed),
                              memory_order_relaxed);
    }
    pthread_mutex_lock(&request.turn);
}

int prof_coro_dump(const char *path)
{
    if (path == NULL || path[0] == '\0')
        return -EINVAL;
    if (strlen(path) >= sizeof(request.path))
        return -ENAMETOOLONG;
    if (!gp_process_is_open())
        return -ESRCH; // a child of _Fork() or clone(): it has no collector
    const gp_park_t caller = gp_spawn_caller();
    int saved = errno;
    census_service_take_turn();
    int error = census_service_start_collector();
    if (error == 0) {
        strcpy(request.path, path);
        request.stand = (gp_census_stand_t){
            .tid = (int)syscall(SYS_gettid),
            .regs = {.pc = caller.pc, .sp = caller.sp, .fp = caller.fp},
        };
        uint32_t mine = atomic_load_explicit(&request.asked, memory_order_relaxed) + 1, now;
        atomic_store_explicit(&request.asked, mine, memory_order_release);
        gp_collector_kick();
        // Acquire: partner of the release in census_service_after_round().
        while ((now = atomic_load_explicit(&request.answered, memory_order_acquire)) != mine)
            gp_futex_wait(&request.answered, now, UINT64_MAX);
        error = request.result;
    }
    pthread_mutex_unlock(&request.turn);
    errno = saved;
    return error;
}

static const gp_sink_t sink = {.after_round = census_service_after_round};

void gp_census_service_start(void)
{
    request.pid = getpid();
    gp_sink_add(&sink);
    if (gp_census_fatal_prepare())
        census_service_start_collector();
}

void gp_census_service_end(void)
{
    if (place.pid != getpid())
        return;
    if (place.path[0] != '\0')
        unlink(place.path);
    if (place.answer[0] != '\0')
        unlink(place.answer);
}
