// SPDX-License-Identifier: MIT
#include "record/session_flush.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "collect/collector.h"
#include "coro/threads.h"
#include "record/budget.h"
#include "record/closing_line.h"
#include "record/ring_file.h"
#include "record/session_file.h"
#include "record/session_records.h"
#include "record/session_report.h"
#include "settings.h"

enum { LEAVE_TRIES = 100 }; // to leave the ring file, 1 ms each

static uint64_t flush_ns;
static bool keeps_rings; // where they outlive the process: a kill is to take next to nothing
static int rings_error;

// Events right after a round are taken by the next one, and written then. Where it is to be written soon, it is looked
// four times as often: a busy machine may let the threads wait for some milliseconds each.
void gp_session_flush_set(void)
{
    bool is_thrifty = gp_budget_ppm() != 0; // half as often, unless the user says how often
    uint64_t within_ns = gp_session_flush_within_ns(), most_ns = GP_COLLECTOR_ROUND_NS;
    bool is_asked_for = within_ns != 0;
    if (!is_asked_for)
        within_ns = (uint64_t)(gp_setting_number(GP_SETTING_FLUSH_MS) * 1e6) * (is_thrifty ? 2 : 1);
    if (is_thrifty)
        most_ns *= 2;
    uint64_t round_ns = within_ns / 4 < most_ns ? within_ns / 4 : most_ns;
    gp_collector_set_round(round_ns);
    gp_thread_helper_hurry(round_ns < GP_COLLECTOR_ROUND_NS);
    gp_session_report_within(round_ns);
    flush_ns = round_ns < GP_COLLECTOR_ROUND_NS ? round_ns : within_ns - round_ns;
    gp_budget_let_slow_down(!is_asked_for);
    keeps_rings = is_asked_for && flush_ns < GP_COLLECTOR_ROUND_NS;
}

uint64_t gp_session_flush_every_ns(void)
{
    return flush_ns * gp_budget_slowness() / 100;
}

// Before anything is sampled for it. Without it, a kill loses what the collector has had no time for.
void gp_session_rings_make(gp_recording_t *recording, bool is_late)
{
    char path[4096];
    gp_drain_enter();
    bool has_path = keeps_rings && gp_session_path(recording, path, sizeof(path));
    rings_error = !has_path ? 0 : recording->writer.lent != 0 ? -EXDEV : gp_ring_file_begin(path);
    gp_drain_leave();
    if (rings_error != 0 && !is_late) // else the command says it
        gp_closing_line_say_no_rings(rings_error);
}

int gp_session_rings_error(void)
{
    return rings_error;
}

// A forked child: most become another program before they have a capture.
void gp_session_open_in_child(gp_recording_t *recording)
{
    gp_session_open_later(recording);
    if (keeps_rings && recording->writer.to_open)
        gp_ring_file_begin(recording->writer.path);
}

// A thread that was in the middle of a record may have had no processor since.
void gp_session_rings_leave(bool is_left)
{
    struct timespec pause = {.tv_nsec = 1000000};
    for (int i = 0; !is_left && i < LEAVE_TRIES; i++) {
        syscall(SYS_nanosleep, &pause, NULL);
        gp_drain_enter();
        is_left = gp_ring_file_end();
        gp_drain_leave();
    }
}
