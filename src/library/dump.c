// SPDX-License-Identifier: MIT
// prof_dump() and prof_dump_stats(). The work is done on a thread of greenprof's own, so that the
// caller, which may be on a 16 KiB coroutine stack, needs next to no stack of its own. Only a few
// dumps go on at once; names that were looked up once are kept for later ones: see dump_names.h.
#include "dump.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdbool.h>
#include <stdlib.h>

#include "export/formats.h"
#include "export/output.h"
#include "interface.h"
#include "report/report_options.h"
#include "symbolizer_cache.h"

typedef struct job {
    prof_t *profile;
    const gp_exporter_t *exporter;
    const char *path;
    FILE *stream; // in place of a path
    gp_dump_turn_t turn;
    int result;
    sem_t done;
} job_t;

static int dump_with(const job_t *job, gp_symbolizer_t *names)
{
    const gp_core_interface_t *core = prof_core_interface();
    gp_symbolizer_refresh(names);
    gp_snapshot_t *snapshot = core->profiles->snapshot(job->profile);
    if (snapshot == NULL)
        return errno ? -errno : -EINVAL;
    gp_report_t *report = gp_report_from_snapshot(snapshot, job->exporter->wants, names);
    core->profiles->release(snapshot);
    if (report == NULL)
        return -ENOMEM;
    int result = job->stream != NULL ? job->exporter->write(report, job->stream)
                                     : gp_output_write(job->exporter, report, job->path);
    gp_report_free(report);
    return result;
}

static int dump(const job_t *job)
{
    gp_dump_names_t *names = gp_dump_names_take();
    if (names == NULL)
        return -ENOMEM;
    int result = dump_with(job, names->symbolizer);
    gp_dump_names_give_back(names);
    return result;
}

static int dump_here(const job_t *job)
{
    gp_dump_turn_t turn = gp_dump_turn_take();
    int result = dump(job);
    gp_dump_turn_give_back(turn);
    return result;
}

int gp_dump_to(prof_t *profile, const gp_exporter_t *exporter, FILE *stream)
{
    return dump_here(&(job_t){.profile = profile, .exporter = exporter, .stream = stream});
}

int gp_dump_write(prof_t *profile, const gp_exporter_t *exporter, const char *path)
{
    return dump_here(&(job_t){.profile = profile, .exporter = exporter, .path = path});
}

int gp_dump_format(const char *name, const gp_exporter_t **exporter)
{
    *exporter = gp_exporter_find(name);
    if (*exporter == NULL)
        return -EINVAL;
    return (*exporter)->wants & GP_WANT_TIMELINE ? -ENOTSUP
                                                 : 0; // a profile is a sum: it does not know what happened when
}

static void *dump_run_job(void *argument)
{
    job_t *job = argument;
    if (job->turn.waited) // others wait, too
        gp_dump_give_way();
    job->result = dump(job);
    sem_post(&job->done);
    return NULL;
}

static int dump_run_on_own_thread(job_t *job)
{
    pthread_t thread;
    int cancel;
    // The other thread works on this stack: a cancelled caller must not leave before it is done.
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    job->turn = gp_dump_turn_take();
    int result = prof_core_interface()->threads->start_staying(dump_run_job, job, &thread);
    if (result == 0) {
        while (sem_wait(&job->done) < 0 && errno == EINTR)
            ;
        // Also keeps `job` on the caller's stack alive until sem_post() has returned.
        pthread_join(thread, NULL);
        result = job->result;
    }
    gp_dump_turn_give_back(job->turn);
    pthread_setcancelstate(cancel, NULL);
    return result;
}

PROF_API int prof_dump(prof_t *profile, const char *format, const char *path)
{
    job_t job = {.profile = profile, .path = path};
    int saved = errno;
    if (profile == NULL || format == NULL || path == NULL)
        return -EINVAL;
    int result = gp_dump_format(format, &job.exporter);
    if (result < 0)
        return result;
    sem_init(&job.done, 0, 0);
    result = dump_run_on_own_thread(&job);
    sem_destroy(&job.done);
    errno = saved;
    return result;
}

PROF_API int prof_dump_stats(prof_t *profile, const char *path)
{
    return prof_dump(profile, "pstats", path);
}
