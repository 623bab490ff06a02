// SPDX-License-Identifier: MIT
// prof_finish(): profiles that are over wait in a queue, from which a thread of greenprof's own takes, settles, writes
// and frees them. The thread ends when nothing has come for a while, or greenprof is to have no threads; the next
// profile begins it again.
#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/futex.h"
#include "dump.h"
#include "interface.h"
#include "signal/ticks.h"
#include "symbolizer_cache.h"

enum {
    WAITING_MAX = 256,
    LOOK_NS = 100000000, // whether it may stay
    IDLE_LOOKS = 20,
    END_MS = 3000,
};

typedef struct finish {
    struct finish *next;
    prof_t *profile;
    const struct gp_exporter *exporter;
    bool is_stopped;
    bool is_orphan; // of the process that forked: to be freed only
    char path[];
} finish_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // no other is taken under it
static finish_t *first, *last;
static unsigned count; // that wait, or are being written; without orphans
static bool has_thread;
static int first_error;
static _Atomic uint32_t bell;  // raised for the thread
static _Atomic uint32_t dealt; // raised by it

static void finish_raise_word(_Atomic uint32_t *word)
{
    atomic_fetch_add_explicit(word, 1, memory_order_release);
    gp_futex_wake_all(word);
}

// --- the thread

static finish_t *finish_take(void)
{
    pthread_mutex_lock(&lock);
    finish_t *one = first;
    if (one != NULL)
        first = one->next;
    pthread_mutex_unlock(&lock);
    return one;
}

static int finish_write_out(const finish_t *one)
{
    const gp_core_interface_t *core = prof_core_interface();
    if (!one->is_stopped && core->profiles->cut(one->profile, GP_CUT_OUTSIDE) == 0)
        core->profiles->settle(one->profile);
    return gp_dump_write(one->profile, one->exporter, one->path);
}

static void finish_deal_with(finish_t *one)
{
    bool is_orphan = one->is_orphan;
    if (one->is_stopped)
        prof_core_interface()->profiles->settle(one->profile);
    int result = is_orphan ? 0 : finish_write_out(one);
    prof_free(one->profile);
    free(one);
    pthread_mutex_lock(&lock);
    count -= !is_orphan;
    if (first_error == 0)
        first_error = result;
    pthread_mutex_unlock(&lock);
    finish_raise_word(&dealt);
}

static bool finish_leaves(unsigned looks, bool may_stay)
{
    pthread_mutex_lock(&lock);
    bool is_over = !may_stay || (looks > IDLE_LOOKS && first == NULL);
    if (is_over)
        has_thread = false;
    pthread_mutex_unlock(&lock);
    return is_over;
}

static void *finish_run(void *unused)
{
    gp_dump_give_way();
    for (unsigned looks = 0;; looks++) {
        uint32_t heard = atomic_load_explicit(&bell, memory_order_acquire);
        bool may_stay = prof_core_interface()->threads->may_stay();
        finish_t *one = may_stay ? finish_take() : NULL;
        if (one != NULL) {
            finish_deal_with(one);
            looks = 0;
        } else if (finish_leaves(looks, may_stay)) {
            return unused;
        } else {
            gp_futex_wait(&bell, heard, LOOK_NS);
        }
    }
}

// --- the program's

static void finish_before_fork(void)
{
    pthread_mutex_lock(&lock);
}

static void finish_after_fork(void)
{
    pthread_mutex_unlock(&lock);
}

static void finish_in_child(void)
{
    for (finish_t *one = first; one != NULL; one = one->next)
        one->is_orphan = true;
    count = 0;
    has_thread = false;
    first_error = 0;
    pthread_mutex_unlock(&lock);
}

static void finish_at_exit(void)
{
    prof_finish_flush(END_MS);
}

static void finish_begin_once(void)
{
    pthread_atfork(finish_before_fork, finish_after_fork, finish_in_child);
    atexit(finish_at_exit);
}

static int finish_ensure_thread(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_t thread;
    pthread_once(&once, finish_begin_once);
    pthread_mutex_lock(&lock);
    bool had_thread = has_thread;
    has_thread = true;
    pthread_mutex_unlock(&lock);
    if (had_thread)
        return 0;
    int error = prof_core_interface()->threads->start(finish_run, NULL, &thread);
    if (error == 0) {
        pthread_detach(thread);
        return 0;
    }
    pthread_mutex_lock(&lock);
    has_thread = false;
    pthread_mutex_unlock(&lock);
    return error;
}

// Make an entry with room for its path, made absolute: the working directory may change.
static finish_t *finish_make(const char *path)
{
    char *directory = path[0] != '/' && strcmp(path, "-") != 0 ? getcwd(NULL, 0) : NULL;
    size_t prefix = directory != NULL ? strlen(directory) + 1 : 0;
    finish_t *one = calloc(1, sizeof(*one) + prefix + strlen(path) + 1);
    if (one != NULL && directory != NULL)
        strcpy(stpcpy(one->path, directory), "/");
    if (one != NULL)
        strcpy(one->path + prefix, path);
    free(directory);
    return one;
}

// Returns false: too many wait already.
static bool finish_put(finish_t *one)
{
    pthread_mutex_lock(&lock);
    bool has_room = count < WAITING_MAX;
    if (has_room) {
        count++;
        if (first == NULL)
            first = one;
        else
            last->next = one;
        last = one;
    }
    pthread_mutex_unlock(&lock);
    return has_room;
}

static int finish(finish_t *one, const char *format)
{
    int error = prof_core_interface()->profiles->cut(one->profile, GP_CUT_HERE);
    if (error != 0 && error != -EALREADY && error != -ENOMEM)
        return error;
    one->is_stopped = error == 0;
    if (finish_put(one)) {
        finish_ensure_thread(); // may have ended meanwhile; else prof_finish_flush() begins it
        finish_raise_word(&bell);
        return 0;
    }
    if (one->is_stopped)
        prof_core_interface()->profiles->settle(one->profile);
    error = prof_dump(one->profile, format, one->path);
    if (error == 0)
        prof_free(one->profile);
    if (error == 0)
        free(one);
    return error;
}

PROF_API int prof_finish(prof_t *profile, const char *format, const char *path)
{
    int saved = errno;
    const struct gp_exporter *exporter;
    if (profile == NULL || format == NULL || path == NULL)
        return -EINVAL;
    int error = gp_dump_format(format, &exporter);
    if (error == 0)
        error = finish_ensure_thread();
    finish_t *one = error == 0 ? finish_make(path) : NULL;
    if (one != NULL) {
        one->profile = profile;
        one->exporter = exporter;
        error = finish(one, format);
        if (error != 0)
            free(one);
    } else if (error == 0) {
        error = -ENOMEM;
    }
    // -Wanalyzer-malloc-leak: it is in the queue.
    errno = saved;
    return error;
}

static int finish_look(bool *is_over)
{
    pthread_mutex_lock(&lock);
    int error = first_error;
    first_error = 0;
    *is_over = error != 0 || count == 0;
    pthread_mutex_unlock(&lock);
    return error;
}

PROF_API int prof_finish_flush(unsigned limit_ms)
{
    int saved = errno, result;
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC), deadline = now + limit_ms * 1000000ull;
    for (;;) {
        uint32_t seen = atomic_load_explicit(&dealt, memory_order_acquire);
        bool is_over;
        result = finish_look(&is_over);
        if (is_over)
            break;
        if ((now = gp_clock_ns(CLOCK_MONOTONIC)) >= deadline) {
            result = -ETIMEDOUT;
            break;
        }
        finish_ensure_thread();
        gp_futex_wait(&dealt, seen, deadline - now < LOOK_NS ? deadline - now : LOOK_NS);
    }
    errno = saved;
    return result;
}
