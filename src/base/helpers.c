// SPDX-License-Identifier: MIT
#include "base/helpers.h"

#include <stdlib.h>

struct gp_helpers {
    pthread_mutex_t lock;
    pthread_cond_t given, done;
    // All of it under the lock.
    gp_job_t *first, *last; // given, and not begun
    unsigned helping;       // takers that do other jobs meanwhile
    bool is_over;
    // The owner's.
    unsigned count;
    pthread_t threads[GP_HELPERS_MAX];
};

static unsigned allowed;
static gp_helper_start_t *start_thread;

void gp_helpers_use(unsigned count, gp_helper_start_t *start)
{
    allowed = count < GP_HELPERS_MAX ? count : GP_HELPERS_MAX;
    start_thread = start;
}

bool gp_helpers_are_allowed(void)
{
    return allowed > 0;
}

// The job begins: it is in the queue no more.
static void helpers_begin(gp_helpers_t *helpers, gp_job_t *job)
{
    gp_job_t *before = NULL;
    for (gp_job_t *at = helpers->first; at != job; at = at->next)
        before = at;
    *(before != NULL ? &before->next : &helpers->first) = job->next;
    if (helpers->last == job)
        helpers->last = before;
    job->next = NULL;
    job->state = GP_JOB_BEGUN;
}

// The lock is held, but while it is done.
static void helpers_do_begun(gp_helpers_t *helpers, gp_job_t *job)
{
    pthread_mutex_unlock(&helpers->lock);
    job->work(job);
    pthread_mutex_lock(&helpers->lock);
    job->state = GP_JOB_DONE;
    pthread_cond_broadcast(&helpers->done);
}

static void *helpers_help(void *argument)
{
    gp_helpers_t *helpers = argument;
    pthread_mutex_lock(&helpers->lock);
    while (!helpers->is_over) {
        gp_job_t *job = helpers->first;
        if (job == NULL) {
            pthread_cond_wait(&helpers->given, &helpers->lock);
            continue;
        }
        helpers_begin(helpers, job);
        helpers_do_begun(helpers, job);
    }
    pthread_mutex_unlock(&helpers->lock);
    return NULL;
}

gp_helpers_t *gp_helpers_open(void)
{
    gp_helpers_t *helpers = allowed > 0 ? calloc(1, sizeof(*helpers)) : NULL;
    if (helpers == NULL)
        return NULL;
    pthread_mutex_init(&helpers->lock, NULL);
    pthread_cond_init(&helpers->given, NULL);
    pthread_cond_init(&helpers->done, NULL);
    while (helpers->count < allowed && start_thread(&helpers->threads[helpers->count], helpers_help, helpers) == 0)
        helpers->count++;
    if (helpers->count > 0)
        return helpers;
    gp_helpers_close(helpers);
    return NULL;
}

void gp_helpers_give(gp_helpers_t *helpers, gp_job_t *job)
{
    job->next = NULL;
    job->state = GP_JOB_GIVEN;
    if (helpers == NULL)
        return;
    pthread_mutex_lock(&helpers->lock);
    *(helpers->last != NULL ? &helpers->last->next : &helpers->first) = job;
    helpers->last = job;
    pthread_cond_signal(&helpers->given);
    if (helpers->helping > 0)
        pthread_cond_broadcast(&helpers->done);
    pthread_mutex_unlock(&helpers->lock);
}

// A waiting thread's work while another thread is at its job.
typedef enum help { NO_HELP, HELP_SIMPLE, HELP_ANY } help_t;

// Do a job that has not begun, or wait until there may be one.
static void helpers_help_once(gp_helpers_t *helpers, help_t help)
{
    gp_job_t *other = helpers->first;
    while (other != NULL && help == HELP_SIMPLE && other->takes_others)
        other = other->next;
    if (other != NULL) {
        helpers_begin(helpers, other);
        helpers_do_begun(helpers, other);
        return;
    }
    helpers->helping++;
    pthread_cond_wait(&helpers->done, &helpers->lock);
    helpers->helping--;
}

// Returns whether the caller is to do it.
static bool helpers_wait_for(gp_helpers_t *helpers, gp_job_t *job, help_t help)
{
    pthread_mutex_lock(&helpers->lock);
    bool is_ours = job->state == GP_JOB_GIVEN;
    if (is_ours)
        helpers_begin(helpers, job);
    while (job->state == GP_JOB_BEGUN && !is_ours)
        if (help != NO_HELP)
            helpers_help_once(helpers, help);
        else
            pthread_cond_wait(&helpers->done, &helpers->lock);
    pthread_mutex_unlock(&helpers->lock);
    return is_ours;
}

static void helpers_take(gp_helpers_t *helpers, gp_job_t *job, help_t help)
{
    if (helpers != NULL ? helpers_wait_for(helpers, job, help) : job->state == GP_JOB_GIVEN)
        job->work(job);
    job->state = GP_JOB_IDLE;
}

void gp_helpers_take(gp_helpers_t *helpers, gp_job_t *job)
{
    helpers_take(helpers, job, NO_HELP);
}

void gp_helpers_take_helping(gp_helpers_t *helpers, gp_job_t *job)
{
    helpers_take(helpers, job, HELP_ANY);
}

void gp_helpers_take_within(gp_helpers_t *helpers, gp_job_t *job)
{
    helpers_take(helpers, job, HELP_SIMPLE);
}

void gp_helpers_withdraw(gp_helpers_t *helpers, gp_job_t *job)
{
    if (helpers != NULL)
        helpers_wait_for(helpers, job, NO_HELP);
    job->state = GP_JOB_IDLE;
}

void gp_helpers_close(gp_helpers_t *helpers)
{
    if (helpers == NULL)
        return;
    pthread_mutex_lock(&helpers->lock);
    helpers->is_over = true;
    pthread_cond_broadcast(&helpers->given);
    pthread_mutex_unlock(&helpers->lock);
    for (unsigned i = 0; i < helpers->count; i++)
        pthread_join(helpers->threads[i], NULL);
    pthread_cond_destroy(&helpers->given);
    pthread_cond_destroy(&helpers->done);
    pthread_mutex_destroy(&helpers->lock);
    free(helpers);
}
