// SPDX-License-Identifier: MIT
// prof_dump() and prof_dump_stats(). The work is done on a thread of greenprof's own, so that the
// caller, which may be on a 16 KiB coroutine stack, needs next to no stack of its own. Names that
// were looked up once are kept for later dumps, up to a bound.
#include "dump.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>

#include "export/formats.h"
#include "export/output.h"
#include "interface.h"
#include "report/build.h"

typedef struct job {
    prof_t *profile;
    const gp_exporter_t *exporter;
    const char *path;
    FILE *stream; // in place of a path
    int result;
    sem_t done;
} job_t;

typedef struct names { // a symbolizer that dumps share
    gp_symbolizer_t *symbolizer;
    unsigned users;
} names_t;

static pthread_mutex_t names_lock = PTHREAD_MUTEX_INITIALIZER;
static names_t *current_names;

// In a child of fork() both locks may be held by threads that do not exist there: it starts anew.
static void forget_in_child(void)
{
    static const pthread_mutex_t fresh = PTHREAD_MUTEX_INITIALIZER;
    names_lock = fresh;
    current_names = NULL;
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}

static names_t *make_names(void)
{
    names_t *names = calloc(1, sizeof(*names));
    if (names != NULL)
        names->symbolizer = gp_symbolizer_create();
    if (names != NULL && names->symbolizer == NULL) {
        free(names);
        return NULL;
    }
    if (names != NULL)
        gp_symbolizer_own_perf_map(names->symbolizer);
    return names;
}

static names_t *take_names(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&names_lock);
    if (current_names == NULL)
        current_names = make_names();
    names_t *names = current_names;
    if (names != NULL)
        names->users++;
    pthread_mutex_unlock(&names_lock);
    return names;
}

// What has grown too large is left by the dumps that follow, and freed by the last that uses it.
static void give_names_back(names_t *names)
{
    pthread_mutex_lock(&names_lock);
    if (names == current_names && gp_symbolizer_is_crowded(names->symbolizer))
        current_names = NULL;
    bool is_last = --names->users == 0 && names != current_names;
    pthread_mutex_unlock(&names_lock);
    if (!is_last)
        return;
    gp_symbolizer_destroy(names->symbolizer);
    free(names);
}

static int dump_with(const job_t *job, gp_symbolizer_t *names)
{
    const gp_core_interface_t *core = prof_core_interface();
    gp_symbolizer_refresh(names);
    gp_snapshot_t *snapshot = core->snapshot(job->profile);
    if (snapshot == NULL)
        return errno ? -errno : -EINVAL;
    gp_report_t *report = gp_report_from_snapshot(snapshot, job->exporter->wants, names);
    core->release(snapshot);
    if (report == NULL)
        return -ENOMEM;
    int result = job->stream != NULL ? job->exporter->write(report, job->stream)
                                     : gp_output_write(job->exporter, report, job->path);
    gp_report_free(report);
    return result;
}

static int dump(const job_t *job)
{
    names_t *names = take_names();
    if (names == NULL)
        return -ENOMEM;
    int result = dump_with(job, names->symbolizer);
    give_names_back(names);
    return result;
}

int gp_dump_to(prof_t *profile, const gp_exporter_t *exporter, FILE *stream)
{
    return dump(&(job_t){.profile = profile, .exporter = exporter, .stream = stream});
}

static void *run_job(void *argument)
{
    job_t *job = argument;
    job->result = dump(job);
    sem_post(&job->done);
    return NULL;
}

static int run_on_own_thread(job_t *job)
{
    pthread_t thread;
    int cancel;
    // The other thread works on this stack: a cancelled caller must not leave before it is done.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    int result = prof_core_interface()->thread_start(run_job, job, &thread);
    if (result == 0) {
        while (sem_wait(&job->done) < 0 && errno == EINTR)
            ;
        // Also keeps `job` on the caller's stack alive until sem_post() has returned.
        pthread_join(thread, NULL);
        result = job->result;
    }
    pthread_setcancelstate(cancel, NULL);
    return result;
}

PROF_API int prof_dump(prof_t *profile, const char *format, const char *path)
{
    job_t job = {.profile = profile, .path = path};
    int saved = errno;
    if (profile == NULL || format == NULL || path == NULL)
        return -EINVAL;
    job.exporter = gp_exporter_find(format);
    if (job.exporter == NULL)
        return -EINVAL;
    if (job.exporter->wants & GP_WANT_TIMELINE)
        return -ENOTSUP; // a profile is a sum: it does not know what happened when
    sem_init(&job.done, 0, 0);
    int result = run_on_own_thread(&job);
    sem_destroy(&job.done);
    errno = saved;
    return result;
}

PROF_API int prof_dump_stats(prof_t *profile, const char *path)
{
    return prof_dump(profile, "pstats", path);
}
