// SPDX-License-Identifier: MIT
#include "greenlet/greenlet_records.h"

#include "coro/registry.h"
#include "coro/threads.h"
#include "greenlet/greenlet_run.h"
#include "interpreter/spawn_site.h"

gp_greenlet_api_t gp_greenlet_api;

void gp_greenlet_add(gp_py_t *greenlet, prof_coro_t *spawner)
{
    bool reads = gp_language_is_read();
    gp_coro_birth_t birth = {
        .kind = reads ? GP_CORO_POLLED : GP_CORO_ANNOUNCED, .spawner = spawner, .object = (uintptr_t)greenlet};
    birth.spawn_site = spawner != NULL ? gp_cpython_spawn_site() : 0;
    prof_coro_t *coro = gp_coro_new(&birth);
    if (coro != NULL)
        gp_greenlet_put(&(gp_greenlet_t){greenlet, coro, coro->id, greenlet});
}

gp_greenlet_t gp_greenlet_record(const gp_task_step_t *step, gp_py_t *greenlet)
{
    if (step->task != NULL && step->greenlet == greenlet)
        return (gp_greenlet_t){step->task, step->coro, step->coro_id, step->task};
    if (gp_language_running(gp_greenlet_here.state) != NULL && greenlet == (*gp_greenlet_here.state)[0])
        return (gp_greenlet_t){0}; // the thread's main one, without a look into the table
    gp_greenlet_t *found = gp_greenlet_find(greenlet);
    if (found == NULL && !gp_greenlet_api.is_main(greenlet)) {
        gp_greenlet_add(greenlet, NULL);
        found = gp_greenlet_find(greenlet);
    }
    return found != NULL ? *found : (gp_greenlet_t){0};
}

const void *gp_greenlet_current(void)
{
    gp_py_t *current = gp_greenlet_api.is_hooked ? gp_greenlet_api.current() : NULL;
    if (current != NULL)
        gp_py.decref(current); // the running greenlet is not freed
    else if (gp_greenlet_api.is_hooked)
        gp_py.error_clear();
    return current;
}

gp_greenlet_t gp_greenlet_running(const gp_task_step_t *step)
{
    gp_py_t *current = (gp_py_t *)gp_greenlet_current();
    if (current != NULL)
        return gp_greenlet_record(step, current);
    return step->task != NULL ? (gp_greenlet_t){step->task, step->coro, step->coro_id, step->task} : (gp_greenlet_t){0};
}

// While nothing samples, hints are not kept: greenlet itself is asked which one spawns.
prof_coro_t *gp_greenlet_spawner(void)
{
    prof_coro_t *running = gp_greenlet_running(&gp_step_here).coro;
    gp_thread_t *thread = running == NULL ? gp_thread_attach() : NULL;
    return thread != NULL ? thread->root : running;
}
