// SPDX-License-Identifier: MIT
#include "control/control.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <time.h>

#include "base/own_thread.h"
#include "control/clients.h"
#include "control/keys.h"
#include "control/requests.h"
#include "control/socket.h"
#include "control/toggle.h"
#include "coro/threads.h"
#include "record/follow.h"
#include "settings.h"
#include "signal/ticks.h"

enum { LISTENER, BELL, FIRST_CLIENT };
enum { DAEMON_NS = 50000000 }; // a forked child may close all descriptors, or become another program

enum { LOOK_MS = 100 }; // while attached: for modules that were loaded
enum { LEAVE_STEP_NS = 1000000, LEAVE_STEPS = 1000 };

static _Atomic bool is_running; // in this process, or in its parent
static bool is_child;
static bool is_new;                             // its thread begins what one before it has not
static _Atomic bool is_removed;                 // the socket's file, for an exec
static _Atomic bool is_unwanted;                // what has attached cannot reach it
static const gp_control_attachment_t *attached; // NULL = it was there when the program started

bool gp_control_is_stopped(void)
{
    return gp_setting_is(GP_SETTING_CONTROL, "stopped");
}

static bool control_wants_socket(void)
{
    return attached != NULL || gp_setting_is(GP_SETTING_CONTROL, "1") || gp_control_is_stopped();
}

bool gp_control_is_wanted(void)
{
    return control_wants_socket() || gp_setting(GP_SETTING_TOGGLE_SIGNAL) != NULL;
}

static void control_open_all(void)
{
    gp_control_bell_open();
    if (control_wants_socket() && gp_control_listener.fd < 0)
        gp_control_socket_open();
}

static void control_look_at_bell(const struct pollfd *event)
{
    if (event->revents & (POLLNVAL | POLLERR | POLLHUP) || !gp_kept_fd_is_there(&gp_control_bell))
        gp_control_bell_open(); // the host closed it
    if (gp_control_listener.fd >= 0 && !gp_kept_fd_is_there(&gp_control_listener))
        gp_control_socket_open(); // and this
    unsigned toggles = gp_control_toggle_take();
    if (toggles % 2 != 0)
        gp_control_switch();
    if (atomic_exchange_explicit(&is_removed, false, memory_order_acquire) && control_wants_socket())
        gp_control_socket_open();
}

static void control_look_at_listener(void)
{
    if (!gp_kept_fd_is_there(&gp_control_listener))
        gp_control_socket_open(); // the host closed it
    gp_control_clients_accept();
}

static int control_sooner(int one_ms, int other_ms)
{
    return one_ms < 0 || (other_ms >= 0 && other_ms < one_ms) ? other_ms : one_ms;
}

static void control_serve_once(void)
{
    struct pollfd events[FIRST_CLIENT + GP_CONTROL_CLIENTS];
    unsigned clients = gp_control_clients_list(events + FIRST_CLIENT);
    bool has_room = clients < GP_CONTROL_CLIENTS;
    events[LISTENER] = (struct pollfd){.fd = has_room ? gp_control_listener.fd : -1, .events = POLLIN};
    events[BELL] = (struct pollfd){.fd = gp_control_bell.fd, .events = POLLIN};
    int wait_ms = control_sooner(gp_control_clients_patience_ms(), gp_control_lease_ms());
    if (attached != NULL) {
        attached->look();
        wait_ms = control_sooner(wait_ms, LOOK_MS);
    }
    if (poll(events, FIRST_CLIENT + clients, wait_ms) < 0)
        return;
    gp_control_clients_serve(events + FIRST_CLIENT, clients);
    if (events[LISTENER].revents != 0)
        control_look_at_listener();
    if (events[BELL].revents != 0)
        control_look_at_bell(&events[BELL]);
    gp_control_lease_look();
}

static _Atomic bool is_leaving;

// Nothing of this thread's is left but what a further attachment begins with.
static void control_detach(void)
{
    atomic_store_explicit(&is_leaving, true, memory_order_release);
    gp_control_clients_forget();
    gp_control_socket_remove();
    gp_control_socket_forget();
    gp_control_bell_forget();
    gp_control_keys_forget();
    gp_control_detached();
    gp_thread_helper_be_named(false);
    attached = NULL;
    atomic_store_explicit(&is_running, false, memory_order_release);
}

void gp_control_end_attachment(void)
{
    attached->end();
}

bool gp_control_is_attached(void)
{
    return attached != NULL;
}

static void control_begin_serving(void)
{
    struct timespec pause = {.tv_nsec = DAEMON_NS};
    if (is_child)
        syscall(SYS_nanosleep, &pause, NULL);
    if (attached != NULL && !is_child) {
        gp_control_keys_read();
        attached->begin();
    }
    if (attached != NULL || is_child)
        control_open_all();
}

static void *control_serve(void *unused)
{
    static bool is_away; // it has ended for a moment
    (void)unused;
    if (!is_away || is_new)
        control_begin_serving();
    is_away = is_new = false;
    while (!gp_control_is_to_detach() && gp_thread_helper_may_stay()) {
        control_serve_once();
        if (atomic_load_explicit(&is_unwanted, memory_order_acquire))
            gp_control_detach();
    }
    is_away = !gp_control_is_to_detach();
    if (is_away)
        return GP_THREAD_RETURNS;
    control_detach();
    return NULL;
}

static void control_begin(void)
{
    pthread_t thread;
    is_new = true;
    is_running = gp_thread_start_own(control_serve, NULL, &thread) == 0;
    if (is_running)
        pthread_detach(thread);
}

void gp_control_start(void)
{
    gp_ticks_init();
    gp_control_toggle_begin();
    if (control_wants_socket())
        gp_control_keys_read();
    control_open_all();
    control_begin();
}

bool gp_control_is_running(void)
{
    struct timespec pause = {.tv_nsec = LEAVE_STEP_NS};
    for (int i = 0; i < LEAVE_STEPS && is_running && atomic_load_explicit(&is_leaving, memory_order_acquire); i++)
        syscall(SYS_nanosleep, &pause, NULL);
    return is_running;
}

int gp_control_attach(const gp_control_attachment_t *attachment)
{
    gp_ticks_init();
    is_child = false;
    atomic_store_explicit(&is_leaving, false, memory_order_release);
    atomic_store_explicit(&is_unwanted, false, memory_order_relaxed);
    attached = attachment;
    int error = gp_control_socket_open();
    gp_thread_helper_be_named(true);
    if (error == 0)
        control_begin();
    if (is_running)
        return 0;
    gp_thread_helper_be_named(false);
    gp_control_socket_remove();
    gp_control_socket_forget();
    attached = NULL;
    return error != 0 ? error : -EAGAIN;
}

int gp_control_leave(void)
{
    if (attached == NULL)
        return -EPERM;
    atomic_store_explicit(&is_unwanted, true, memory_order_release);
    gp_control_bell_ring();
    struct timespec pause = {.tv_nsec = LEAVE_STEP_NS};
    for (int i = 0; i < LEAVE_STEPS && is_running; i++)
        syscall(SYS_nanosleep, &pause, NULL);
    return is_running ? -ETIMEDOUT : 0;
}

void gp_control_in_child(void)
{
    if (!is_running)
        return;
    int saved = errno;
    is_child = true;
    gp_control_clients_forget();
    gp_control_socket_forget();
    gp_control_bell_forget();
    is_running = false;
    if (gp_follow_forks())
        control_begin();
    errno = saved;
}

void gp_control_before_exec(void)
{
    if (is_running)
        gp_control_socket_remove();
}

void gp_control_after_failed_exec(void)
{
    if (!is_running)
        return;
    atomic_store_explicit(&is_removed, true, memory_order_release);
    gp_control_bell_ring();
}

bool gp_control_owns(int fd)
{
    return (fd == gp_control_listener.fd && gp_kept_fd_is_there(&gp_control_listener)) || gp_control_bell_owns(fd);
}

void gp_control_wake(void)
{
    if (is_running)
        gp_control_bell_ring();
}

void gp_control_end(void)
{
    if (is_running)
        gp_control_socket_remove();
}
