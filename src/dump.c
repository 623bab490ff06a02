// SPDX-License-Identifier: MIT
// prof_dump() and prof_dump_stats(). The work is done on a thread of greenprof's own, so that the
// caller, which may be on a 16 KiB coroutine stack, needs next to no stack of its own. Names that
// were looked up once are kept for later dumps.
#include <greenprof/prof.h>

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>

#include "export/formats.h"
#include "export/output.h"
#include "interface.h"
#include "report/build.h"

typedef struct job {
    prof_t *profile;
    const gp_exporter_t *exporter;
    const char *path;
    int result;
    sem_t done;
} job_t;

// Published once by the first dump, never freed. In a child of fork() it may have been locked
// by a thread that does not exist there: the child forgets it and starts its own.
static _Atomic(gp_symbolizer_t *) shared_symbolizer;

static void forget_in_child(void)
{
    atomic_store_explicit(&shared_symbolizer, NULL, memory_order_relaxed);
}

static void watch_forks(void)
{
    pthread_atfork(NULL, NULL, forget_in_child);
}

static gp_symbolizer_t *symbolizer(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    gp_symbolizer_t *none = NULL;
    pthread_once(&once, watch_forks);
    // Acquire: pairs with the release below, so that what create() wrote is seen.
    gp_symbolizer_t *shared = atomic_load_explicit(&shared_symbolizer, memory_order_acquire);
    if (shared != NULL)
        return shared;
    gp_symbolizer_t *mine = gp_symbolizer_create();
    if (mine != NULL)
        gp_symbolizer_own_perf_map(mine);
    if (mine == NULL || atomic_compare_exchange_strong_explicit(&shared_symbolizer, &none, mine, memory_order_acq_rel,
                                                                memory_order_acquire))
        return mine;
    gp_symbolizer_destroy(mine);
    return none;
}

static int dump(const job_t *job)
{
    const gp_core_interface_t *core = prof_core_interface();
    gp_symbolizer_t *names = symbolizer();
    if (names == NULL)
        return -ENOMEM;
    gp_symbolizer_refresh(names);
    gp_snapshot_t *snapshot = core->snapshot(job->profile);
    if (snapshot == NULL)
        return errno ? -errno : -EINVAL;
    gp_report_t *report = gp_report_from_snapshot(snapshot, job->exporter->wants, names);
    core->release(snapshot);
    if (report == NULL)
        return -ENOMEM;
    int result = gp_output_write(job->exporter, report, job->path);
    gp_report_free(report);
    return result;
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
