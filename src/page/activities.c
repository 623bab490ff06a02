// SPDX-License-Identifier: MIT
// The timeline of a page: activities, as many as have room, and the heat map of how long coroutines were ready before
// they ran.
//
// Where there are too many activities, those of a coroutine that begin within a short time are put together, as the
// capture itself does with short waits: it was active, ran for so long of it, then waited.
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "page/page.h"
#include "report/timeline.h"

enum { FLAG_LAST = 1 };

const uint64_t gp_heat_edges[GP_HEAT_ROWS + 1] = {
    0,
    10000,
    30000,
    100000,
    300000,
    1000000,
    3000000,
    10000000,
    30000000,
    100000000,
    300000000,
    1000000000,
    UINT64_C(1000000000000000),
};

typedef struct taking {
    gp_page_writer_t *writer;
    const gp_timeline_t *timeline;
    uint32_t *coros;        // by track: number of the page plus 1
    uint64_t resolution_ns; // activities that begin within it are put together
    size_t count;           // of what is left
    bool putting;
    gp_activity_t held;
    bool has_held;
    uint64_t *heat;
} taking_t;

static void activities_put(taking_t *taking)
{
    gp_page_writer_t *writer = taking->writer;
    const gp_activity_t *one = &taking->held;
    uint32_t waker = one->waker != GP_NO_TRACK ? taking->coros[one->waker] : 0;
    const char *thread = one->thread_name;
    char number[16];
    if (thread[0] == '\0' && one->thread_id != 0) {
        snprintf(number, sizeof(number), "%u", one->thread_id);
        thread = number;
    }
    const uint64_t row[] = {
        taking->coros[one->track] - 1,
        one->start_ns,
        one->left_ns - one->start_ns,
        one->end_ns - one->left_ns,
        one->slice_ns,
        one->is_ready_known ? one->ready_ns - one->start_ns + 1 : 0,
        waker,
        thread[0] != '\0' ? (uint64_t)gp_string_table_number(&writer->threads, thread) + 1 : 0,
        one->trace != NULL ? (uint64_t)gp_string_table_number(&writer->traces, one->trace) + 1 : 0,
        one->goes_on ? FLAG_LAST : 0,
    };
    gp_page_table_row(&writer->tables[GP_PAGE_ACTIVITIES], row);
}

static void activities_finish_held(taking_t *taking)
{
    if (!taking->has_held)
        return;
    taking->count++;
    if (taking->putting)
        activities_put(taking);
    taking->has_held = false;
}

static bool activities_join(taking_t *taking, const gp_activity_t *next)
{
    gp_activity_t *held = &taking->held;
    if (!taking->has_held || held->track != next->track || next->left_ns - held->start_ns >= taking->resolution_ns)
        return false;
    uint64_t slice_ns = held->slice_ns + next->slice_ns, start_ns = held->start_ns;
    *held = *next;
    held->start_ns = start_ns;
    held->slice_ns = slice_ns;
    return true;
}

static void activities_add_heat(taking_t *taking, const gp_activity_t *activity)
{
    const gp_page_writer_t *writer = taking->writer;
    if (!activity->is_ready_known || activity->goes_on || taking->heat == NULL)
        return;
    uint64_t delay_ns = activity->end_ns - activity->ready_ns;
    size_t column = (size_t)(activity->end_ns / writer->heat_column_ns), row = 0;
    while (row + 1 < GP_HEAT_ROWS && delay_ns >= gp_heat_edges[row + 1])
        row++;
    if (column < writer->heat_columns)
        taking->heat[column * GP_HEAT_ROWS + row]++;
}

static int activities_take(void *context, const gp_activity_t *activity, const gp_activity_t *before, size_t number)
{
    taking_t *taking = context;
    (void)before, (void)number;
    activities_add_heat(taking, activity);
    if (taking->coros[activity->track] == 0 || taking->coros[activity->track] > taking->writer->coros.own)
        return 0; // of those that are folded no timeline is shown
    if (activities_join(taking, activity))
        return 0;
    activities_finish_held(taking);
    taking->held = *activity;
    taking->has_held = true;
    return 0;
}

static int activities_pass(taking_t *taking)
{
    taking->count = 0;
    taking->has_held = false;
    int result = gp_timeline_each_activity(taking->timeline, activities_take, taking);
    activities_finish_held(taking);
    return result;
}

// The width of columns: whole ticks, so that a column can be chosen.
static void activities_plan_heat(gp_page_writer_t *writer)
{
    uint64_t tick_ns = writer->page->tick_ns << writer->rows.coarse.tick_shift;
    uint64_t ticks = writer->dataset->facts.end_ns / tick_ns + 1;
    uint64_t each = (ticks + GP_HEAT_COLUMNS_MAX - 1) / GP_HEAT_COLUMNS_MAX;
    writer->heat_column_ns = each * tick_ns;
    writer->heat_columns = (size_t)(writer->dataset->facts.end_ns / writer->heat_column_ns + 1);
}

static void activities_put_heat(gp_page_writer_t *writer, const uint64_t *heat)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < writer->heat_columns * GP_HEAT_ROWS; i++)
        sum += heat[i];
    for (size_t i = 0; i < writer->heat_columns * GP_HEAT_ROWS && sum > 0; i++)
        gp_page_table_row(&writer->tables[GP_PAGE_HEAT], &heat[i]);
    if (sum == 0)
        writer->heat_columns = 0;
}

static int activities_take_all(taking_t *taking)
{
    gp_page_writer_t *writer = taking->writer;
    int result = activities_pass(taking);
    activities_put_heat(writer, taking->heat);
    free(taking->heat);
    taking->heat = NULL; // each is counted once
    while (result == 0 && taking->count > GP_PAGE_ACTIVITIES_MAX) {
        taking->resolution_ns = taking->resolution_ns > 0 ? 4 * taking->resolution_ns : 20000;
        result = activities_pass(taking);
    }
    taking->putting = true;
    if (result == 0)
        result = activities_pass(taking);
    char ms[GP_NUMBER_SIZE];
    if (taking->resolution_ns > 0)
        gp_page_note(writer,
                     "There are so many activities that those of a coroutine within %s ms are put together in the "
                     "timeline.",
                     gp_number_write(ms, taking->resolution_ns, 6));
    return result;
}

int gp_page_timeline(gp_page_writer_t *writer)
{
    gp_page_table_begin(&writer->tables[GP_PAGE_ACTIVITIES], "activity",
                        "d:coro d:start active wait slice ready waker thread trace flags");
    gp_page_table_begin(&writer->tables[GP_PAGE_HEAT], "heat", "count");
    if (writer->dataset == NULL || writer->report->timeline == NULL)
        return 0;
    taking_t taking = {.writer = writer, .timeline = writer->report->timeline};
    activities_plan_heat(writer);
    taking.heat = calloc(writer->heat_columns * GP_HEAT_ROWS + 1, sizeof(*taking.heat));
    taking.coros = calloc((size_t)taking.timeline->track_count + 1, sizeof(*taking.coros));
    int result = taking.heat != NULL && taking.coros != NULL ? 0 : -ENOMEM;
    for (uint32_t i = 0; i < taking.timeline->track_count && result == 0; i++)
        taking.coros[i] =
            gp_page_coro(writer, gp_dataset_coro_find(writer->dataset, taking.timeline->tracks[i].coroutine_id));
    if (result == 0)
        result = activities_take_all(&taking);
    free(taking.coros);
    free(taking.heat);
    return result;
}
