// SPDX-License-Identifier: MIT
#include "control/toggle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "record/asked_signal.h"
#include "settings.h"

gp_kept_fd_t gp_control_bell = {.fd = -1};
static gp_kept_fd_t rope = {.fd = -1}; // the end that is written
static _Atomic unsigned toggles;

void gp_control_bell_ring(void)
{
    int saved = errno;
    if (gp_kept_fd_is_there(&rope) && write(rope.fd, "", 1) < 0)
        errno = saved; // full: it rings
    errno = saved;
}

bool gp_control_bell_owns(int fd)
{
    const gp_kept_fd_t *end = fd == rope.fd ? &rope : &gp_control_bell;
    return fd == end->fd && gp_kept_fd_is_there(end);
}

static void toggle_on_signal(int number)
{
    (void)number;
    atomic_fetch_add_explicit(&toggles, 1, memory_order_release);
    gp_control_bell_ring();
}

void gp_control_toggle_begin(void)
{
    gp_asked_signal_take(gp_setting(GP_SETTING_TOGGLE_SIGNAL), toggle_on_signal);
}

void gp_control_bell_open(void)
{
    int ends[2];
    gp_control_bell_forget();
    gp_descriptor_low_begins();
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0) {
        gp_control_bell = gp_kept_fd_keep(ends[0]);
        rope = gp_kept_fd_keep(ends[1]);
    }
    gp_descriptor_low_ends();
}

void gp_control_bell_forget(void)
{
    gp_kept_fd_close(&rope);
    gp_kept_fd_close(&gp_control_bell);
}

unsigned gp_control_toggle_take(void)
{
    char bytes[64];
    while (gp_kept_fd_is_there(&gp_control_bell) && read(gp_control_bell.fd, bytes, sizeof(bytes)) > 0)
        ;
    return atomic_exchange_explicit(&toggles, 0, memory_order_acquire);
}
