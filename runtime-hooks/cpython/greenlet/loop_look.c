// SPDX-License-Identifier: MIT
#include "greenlet/loop_look.h"

#include "greenlet/greenlet_records.h"
#include "greenlet/hubs.h"
#include "interpreter/api.h"
#include "interpreter/task_step.h"
#include "signal/ledger_edges.h"
#include "signal/sleeps.h"

typedef gp_py_t *fastcall_t(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count, gp_py_t *names);

static fastcall_t *real_poll;

static __thread struct {
    uint64_t ticks; // when this thread's loop looked last
    uint32_t epoch; // of signal/ledger_edges.h: what was before sampling stopped is not known
} last_look __attribute__((tls_model("initial-exec")));

// Is it the loop that runs? Not what it runs: a green thread, or a task, may have an epoll of its own.
static bool loop_look_is_loop(void)
{
    return gp_hub_here.hub != NULL ? gp_hub_runs() : gp_step_here.task == NULL;
}

typedef struct look {
    bool may_be_late;
    uint64_t sleeps; // before it, where it may be late
} look_t;

static look_t loop_look_begin(void)
{
    uint64_t now = gp_ticks(), last = last_look.ticks;
    bool is_old = last != 0 && last_look.epoch == atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed) &&
                  now - last >= gp_ledger_edge_load(&gp_ledger_edge_hog_ticks);
    return (look_t){.may_be_late = is_old, .sleeps = is_old ? gp_sleeps() : 0};
}

static void loop_look_end(const look_t *look)
{
    gp_thread_t *thread = gp_thread_self;
    bool is_late = look->may_be_late && gp_sleeps() == look->sleeps;
    uint64_t now = gp_ticks();
    if (thread != NULL)
        gp_ledger_edge_looked(thread, is_late ? last_look.ticks : now, now);
    last_look.ticks = now;
    last_look.epoch = atomic_load_explicit(&gp_ledger_edge_epoch, memory_order_relaxed);
    if (gp_hub_here.hub != NULL) {
        gp_hub_here.ready_ticks = now;
        gp_hub_here.polls = true;
    }
}

static gp_py_t *loop_look_on_poll(gp_py_t *self, gp_py_t *const *args, ptrdiff_t count, gp_py_t *names)
{
    if (!gp_greenlet_is_sampling() || !loop_look_is_loop())
        return real_poll(self, args, count, names);
    look_t look = loop_look_begin();
    gp_py_t *events = real_poll(self, args, count, names);
    loop_look_end(&look);
    return events;
}

void gp_loop_look_hook(void)
{
    // eventlet.monkey_patch() takes epoll out of its module; hubs use the epoll of the module that eventlet keeps.
    static const char *const modules[] = {"select", "__original_module_select"};
    for (size_t i = 0; i < sizeof(modules) / sizeof(modules[0]) && real_poll == NULL; i++)
        real_poll = (fastcall_t *)(uintptr_t)gp_py_replace_method(gp_py_method_in(modules[i], "epoll", "poll"),
                                                                  GP_PY_FASTCALL | GP_PY_KEYWORDS,
                                                                  (void *)(uintptr_t)loop_look_on_poll);
}
