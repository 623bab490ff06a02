// SPDX-License-Identifier: MIT
#include "pause_others.h"

#include <errno.h>
#include <sched.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "model/own_name.h"
#include "safe_point.h"
#include "target_modules.h"
#include "thread_stop.h"

enum {
    CROWD = 4,  // threads that compute, for each processor
    TIMES = 20, // that they are stopped
    STEP_NS = 50000,
    LOOK_MS = 10,
    FIRST = -20, // nice
};

#define STOP_NS     50000000ull    // for all of them to stop; a processor that is the program's own takes some ms
#define AGAIN_NS    20000000ull    // between two looks for more that compute
#define COME_OUT_NS 100000000ull   // for those in an allocator to be out of it
#define LIMIT_NS    500000000ull   // they are stopped for so long at most,
#define REST_NS     500000000ull   // and run for so long
#define LET_GO_NS   10000000000ull // a thread that did not stop cannot be let go before it does

typedef struct held {
    pid_t tid;
    bool is_stopped; // else it was told to
    bool is_judged;
    enum gp_lock_guess guess;
} held_t;

typedef struct known {
    pid_t tid;
    bool is_left; // to itself
} known_t;

static struct {
    pid_t pid;
    known_t *known; // when it began: what greenprof starts since then has no name at first
    size_t known_count, known_room;
    held_t *threads;
    size_t count, room;
    gp_safe_places_t places;
    uint64_t begin_ns, look_ns, end_ns; // of the latest time that they were stopped
    unsigned times;
    int priority; // of its threads, as of the first one (nice)
    bool is_wanted, is_on;
} quiet;

static uint64_t pause_others_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static held_t *pause_others_find(pid_t tid)
{
    for (size_t i = 0; i < quiet.count; i++)
        if (quiet.threads[i].tid == tid)
            return &quiet.threads[i];
    return NULL;
}

static void pause_others_forget(held_t *held)
{
    *held = quiet.threads[--quiet.count];
}

// Room for one more in a list that has `count`. Returns the list, which may be elsewhere now, or NULL.
static void *pause_others_with_room(void *list, size_t count, size_t *room, size_t size)
{
    if (count < *room)
        return list;
    size_t more = *room > 0 ? 2 * *room : 64;
    void *grown = realloc(list, more * size);
    if (grown != NULL)
        *room = more;
    return grown;
}

static int pause_others_note(pid_t tid, void *unused)
{
    (void)unused;
    known_t *list = pause_others_with_room(quiet.known, quiet.known_count, &quiet.known_room, sizeof(*list));
    if (list == NULL)
        return -ENOMEM;
    quiet.known = list;
    quiet.known[quiet.known_count++] = (known_t){.tid = tid};
    return -EAGAIN;
}

static known_t *pause_others_known(pid_t tid)
{
    for (size_t i = 0; i < quiet.known_count; i++)
        if (quiet.known[i].tid == tid)
            return &quiet.known[i];
    return NULL;
}

// Add a thread that computes; greenprof's own get the processor first instead, where permitted.
static int pause_others_add(pid_t tid, void *unused)
{
    char name[GP_THREAD_NAME_SIZE];
    (void)unused;
    if (pause_others_find(tid) != NULL)
        return -EAGAIN;
    char state = gp_thread_stop_state(quiet.pid, tid, name);
    bool is_own = strcmp(name, GP_OWN_NAME) == 0;
    if (is_own && quiet.is_on)
        setpriority(PRIO_PROCESS, (id_t)tid, FIRST);
    const known_t *self = pause_others_known(tid);
    if (state != 'R' || is_own || self == NULL || self->is_left)
        return -EAGAIN;
    held_t *list = pause_others_with_room(quiet.threads, quiet.count, &quiet.room, sizeof(*list));
    if (list == NULL)
        return -ENOMEM;
    quiet.threads = list;
    quiet.threads[quiet.count++] = (held_t){.tid = tid};
    return -EAGAIN;
}

static size_t pause_others_processors(pid_t pid)
{
    cpu_set_t set;
    return sched_getaffinity(pid, sizeof(set), &set) == 0 ? (size_t)CPU_COUNT(&set) : CPU_SETSIZE;
}

// Ask threads from the list's end on to stop: an unstoppable one leaves the list.
static void pause_others_ask_from(size_t first)
{
    for (size_t i = quiet.count; i-- > first;) {
        pid_t tid = quiet.threads[i].tid;
        if (ptrace(PTRACE_SEIZE, tid, 0, 0) != 0)
            pause_others_forget(&quiet.threads[i]);
        else
            ptrace(PTRACE_INTERRUPT, tid, 0, 0);
    }
}

static void pause_others_restart_call(pid_t tid)
{
    struct user_regs_struct registers;
    if (ptrace(PTRACE_GETREGS, tid, 0, &registers) == 0 && gp_thread_stop_restart_call(&registers))
        ptrace(PTRACE_SETREGS, tid, 0, &registers);
}

static void pause_others_let_go(const held_t *held)
{
    int status;
    pause_others_restart_call(held->tid);
    if (ptrace(PTRACE_DETACH, held->tid, 0, 0) != 0) // ended: ours to be reaped
        waitpid(held->tid, &status, __WALL | WNOHANG);
}

// Let it run for a moment. Returns whether it has stopped again.
static bool pause_others_step(held_t *held)
{
    pause_others_restart_call(held->tid);
    held->is_stopped = false;
    if (ptrace(PTRACE_CONT, held->tid, 0, 0) != 0)
        return false;
    nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
    ptrace(PTRACE_INTERRUPT, held->tid, 0, 0);
    held->is_stopped = gp_thread_stop_wait_asked(held->tid, STOP_NS) == 0;
    return held->is_stopped;
}

// Let a thread in an allocator, or in a hook or the handler of greenprof's, come out of it: some microseconds, unless
// it waits. A thread that does not stop again is seen to later.
static void pause_others_let_come_out(held_t *held, uint64_t until_ns)
{
    while (held->guess == GP_LOCK_BRIEF && pause_others_now_ns() < until_ns && pause_others_step(held)) {
        held->guess = gp_may_hold_lock(&quiet.places, held->tid);
        if (gp_thread_stop_call(held->tid) == SYS_futex)
            return;
    }
    held->is_judged = held->is_stopped;
}

// Judge stopped threads that may hold a lock. First, while all others are stopped, holders of a brief lock give it
// back, one after the other, or go on and are looked at again later. Threads in the loader go on for good: others queue
// up for its lock.
static void pause_others_judge_all(void)
{
    uint64_t until = pause_others_now_ns() + COME_OUT_NS;
    for (size_t i = quiet.count; i-- > 0;) {
        held_t *held = &quiet.threads[i];
        if (!held->is_stopped || held->is_judged)
            continue;
        held->is_judged = true;
        held->guess = gp_may_hold_lock(&quiet.places, held->tid);
        pause_others_let_come_out(held, until);
    }
    for (size_t i = quiet.count; i-- > 0;) {
        held_t *held = &quiet.threads[i];
        known_t *self = pause_others_known(held->tid);
        if (!held->is_judged || held->guess == GP_LOCK_NONE)
            continue;
        if (held->guess == GP_LOCK_LONG && self != NULL)
            self->is_left = true;
        pause_others_let_go(held);
        pause_others_forget(held);
    }
}

// Returns how many of them have not stopped yet.
static size_t pause_others_look_for_stops(void)
{
    size_t missing = 0;
    for (size_t i = quiet.count; i-- > 0;) {
        held_t *held = &quiet.threads[i];
        if (held->is_stopped)
            continue;
        int error = gp_thread_stop_wait_asked(held->tid, 0);
        held->is_stopped = error == 0;
        missing += error == -ETIMEDOUT;
        if (error == -ESRCH)
            pause_others_forget(held);
    }
    return missing;
}

static void pause_others_wait_for_stops(uint64_t limit_ns)
{
    uint64_t end = pause_others_now_ns() + limit_ns;
    while (pause_others_look_for_stops() > 0 && pause_others_now_ns() < end)
        nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
}

// The list has some more.
static void pause_others_hold_from(size_t first)
{
    pause_others_ask_from(first);
    pause_others_wait_for_stops(STOP_NS);
    pause_others_judge_all();
    quiet.look_ns = pause_others_now_ns();
}

static void pause_others_hold_more(void)
{
    size_t first = quiet.count;
    gp_thread_stop_each(quiet.pid, pause_others_add, NULL);
    pause_others_hold_from(first);
}

// Stop the threads that compute, if there are many.
static void pause_others_begin(void)
{
    size_t enough = CROWD * pause_others_processors(quiet.pid);
    quiet.count = 0;
    gp_thread_stop_each(quiet.pid, pause_others_add, NULL);
    if (quiet.count <= enough)
        return;
    gp_thread_stop_hold_signals();
    quiet.is_on = true;
    quiet.times++;
    quiet.begin_ns = pause_others_now_ns();
    pause_others_hold_from(0);
    pause_others_hold_more(); // meanwhile others begin to compute
}

static void pause_others_end(void)
{
    uint64_t limit = pause_others_now_ns() + LET_GO_NS;
    do {
        pause_others_look_for_stops();
        for (size_t i = quiet.count; i-- > 0;)
            if (quiet.threads[i].is_stopped) {
                pause_others_let_go(&quiet.threads[i]);
                pause_others_forget(&quiet.threads[i]);
            }
        if (quiet.count > 0)
            nanosleep(&(struct timespec){.tv_nsec = STEP_NS}, NULL);
    } while (quiet.count > 0 && pause_others_now_ns() < limit);
    quiet.is_on = false;
    quiet.end_ns = pause_others_now_ns();
    gp_thread_stop_let_signals_go();
}

static int pause_others_calm(pid_t tid, void *unused)
{
    char name[GP_THREAD_NAME_SIZE];
    (void)unused;
    gp_thread_stop_state(quiet.pid, tid, name);
    if (strcmp(name, GP_OWN_NAME) == 0)
        setpriority(PRIO_PROCESS, (id_t)tid, quiet.priority);
    return -EAGAIN;
}

static bool pause_others_read_places(void)
{
    gp_target_modules_t modules;
    int error = gp_target_modules_read(quiet.pid, &modules);
    gp_safe_places_free(&quiet.places);
    if (error == 0)
        error = gp_safe_places_read(&quiet.places, &modules);
    gp_target_modules_free(&modules);
    return error == 0;
}

void gp_pause_others_begin(pid_t pid)
{
    quiet.pid = pid;
    quiet.times = 0;
    quiet.priority = getpriority(PRIO_PROCESS, (id_t)pid);
    quiet.known_count = 0;
    gp_thread_stop_each(pid, pause_others_note, NULL);
    quiet.is_wanted = pause_others_read_places();
    if (quiet.is_wanted)
        pause_others_begin();
}

void gp_pause_others_is_loaded(void)
{
    if (quiet.is_on && !pause_others_read_places())
        gp_pause_others_end();
}

void gp_pause_others_look(void)
{
    uint64_t now = pause_others_now_ns();
    if (!quiet.is_wanted || quiet.times == 0)
        return;
    if (quiet.is_on && now - quiet.begin_ns > LIMIT_NS)
        pause_others_end();
    else if (quiet.is_on && now - quiet.look_ns > AGAIN_NS)
        pause_others_hold_more();
    else if (!quiet.is_on && now - quiet.end_ns > REST_NS && quiet.times < TIMES)
        pause_others_begin();
}

int gp_pause_others_look_ms(int most_ms)
{
    return quiet.is_on ? LOOK_MS : most_ms;
}

bool gp_pause_others_holds(pid_t tid)
{
    return quiet.is_on && pause_others_find(tid) != NULL;
}

void gp_pause_others_give(pid_t tid)
{
    held_t *held = pause_others_find(tid);
    if (held != NULL)
        pause_others_forget(held);
}

void gp_pause_others_end(void)
{
    if (quiet.is_on)
        pause_others_end();
    if (quiet.times > 0)
        gp_thread_stop_each(quiet.pid, pause_others_calm, NULL);
    gp_safe_places_free(&quiet.places);
    quiet.is_wanted = false;
    quiet.times = 0;
}
