// SPDX-License-Identifier: MIT
#include "record/census_view.h"

#include <stdlib.h>
#include <string.h>

#include "collect/functions.h"
#include "coro/coro_name.h"
#include "record/census.h"
#include "signal/ticks.h"

enum { FIRST_ROOM = 64 };

typedef struct views {
    gp_coro_view_t *all;
    size_t count, room;
} views_t;

// The language's frames of a stack; the others have no names yet.
static void census_view_stack(gp_coro_view_t *view, const gp_stack_t *stack)
{
    view->frames = stack->depth > 0 ? calloc(stack->depth, sizeof(*view->frames)) : NULL;
    // -Wanalyzer-malloc-leak: the view keeps it until gp_census_views_free().
    for (size_t i = 0; view->frames != NULL && i < stack->depth; i++) {
        uint64_t offset = GP_LOC_OFFSET(stack->locs[i]);
        bool is_language = GP_LOC_MODULE(stack->locs[i]) == GP_MODULE_LANGUAGE;
        const gp_function_name_t *function = is_language ? gp_functions_at(GP_LANGUAGE_FUNCTION(offset)) : NULL;
        if (function == NULL)
            continue;
        view->frames[view->depth].function = function->name;
        view->frames[view->depth].file = function->file;
        view->frames[view->depth++].line = GP_LANGUAGE_LINE(offset);
    }
}

static void census_view_add(const gp_census_seen_t *seen, void *argument)
{
    views_t *views = argument;
    if (views->count == views->room) {
        size_t room = views->room > 0 ? views->room * 2 : FIRST_ROOM;
        gp_coro_view_t *grown = realloc(views->all, room * sizeof(*grown));
        if (grown == NULL)
            return;
        views->all = grown;
        views->room = room;
    }
    gp_coro_view_t *view = &views->all[views->count++];
    *view = (gp_coro_view_t){
        .id = seen->id,
        .parent_id = seen->coro->parent_id,
        .trace = {seen->trace[0], seen->trace[1]},
        .state_ns = seen->state_ns,
        .state = seen->state,
        .is_thread = seen->coro->kind == GP_CORO_THREAD,
    };
    gp_coro_name_get(seen->coro, view->name);
    if (view->is_thread && seen->thread != NULL) {
        gp_recording_name_thread(seen->thread);
        memcpy(view->name, seen->thread->name, sizeof(seen->thread->name));
    }
    census_view_stack(view, &seen->stack);
}

// Not the collector's thread: what was unloaded meanwhile is asked for here.
static void census_view_between_pieces(void *unused)
{
    (void)unused;
    gp_drain_pass();
    gp_modules_refresh();
}

gp_coro_view_t *gp_census_views(size_t *count)
{
    views_t views = {.all = calloc(FIRST_ROOM, sizeof(*views.all)), .room = FIRST_ROOM};
    if (views.all == NULL)
        return NULL;
    gp_ticks_init();
    gp_drain_enter();
    gp_modules_refresh();
    gp_census_each(NULL, census_view_add, census_view_between_pieces, &views);
    gp_drain_leave();
    *count = views.count;
    return views.all;
}
