// SPDX-License-Identifier: MIT
#include "trace/client_switch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "settings.h"
#include "signal/ticks.h"
#include "trace/span.h"

#define IS_READ (1ull << 63) // the variable was
#define LOOK_NS 1000000000ull

static _Atomic uint64_t on; // bits of gp_client_t, and IS_READ

static void client_switch_set(uint64_t bits)
{
    atomic_store_explicit(&on, bits | IS_READ, memory_order_relaxed);
}

// Two threads may do it at once: with the same result.
__attribute__((noinline)) static uint64_t client_switch_read_setting(void)
{
    const char *list = gp_setting(GP_SETTING_SPANS);
    uint64_t bits = gp_clients_standard();
    size_t len;
    if (list != NULL && list[0] != '@')
        gp_clients_obey(list, &bits, &len);
    uint64_t unread = 0;
    atomic_compare_exchange_strong_explicit(&on, &unread, bits | IS_READ, memory_order_relaxed, memory_order_relaxed);
    if (list != NULL && list[0] == '@')
        gp_clients_look_at_file();
    return atomic_load_explicit(&on, memory_order_relaxed);
}

uint64_t gp_clients_on(void)
{
    uint64_t bits = atomic_load_explicit(&on, memory_order_relaxed);
    return (bits != 0 ? bits : client_switch_read_setting()) & ~IS_READ;
}

bool gp_client_is_on(gp_client_t client)
{
    return gp_clients_on() & GP_CLIENT_BIT(client);
}

bool gp_client_may_call(gp_client_t client, prof_span_kind_t kind)
{
    return __builtin_expect(gp_span_may_call(kind), 0) && gp_client_is_on(client);
}

int gp_clients_switch(const char *list)
{
    uint64_t bits = gp_clients_on();
    size_t len;
    if (gp_clients_obey(list, &bits, &len) != NULL)
        return -EINVAL;
    client_switch_set(bits);
    return 0;
}

// The file's list, as a change of what holds without it. An unreadable file changes nothing.
static void client_switch_read_file(int fd)
{
    char list[4096];
    ssize_t got = read(fd, list, sizeof(list) - 1);
    uint64_t bits = gp_clients_standard();
    size_t len;
    if (got < 0)
        return;
    list[got] = '\0';
    gp_clients_obey(list, &bits, &len);
    client_switch_set(bits);
}

void gp_clients_look_at_file(void)
{
    static _Atomic uint64_t next_ns;
    static struct stat known;
    const char *name = gp_setting(GP_SETTING_SPANS);
    uint64_t now = gp_clock_ns(CLOCK_MONOTONIC), due = atomic_load_explicit(&next_ns, memory_order_relaxed);
    struct stat is;
    int error = errno; // of the program, where its call is the first
    if (name == NULL || name[0] != '@' || now < due ||
        !atomic_compare_exchange_strong_explicit(&next_ns, &due, now + LOOK_NS, memory_order_relaxed,
                                                 memory_order_relaxed))
        return;
    int fd = gp_descriptor_open(AT_FDCWD, name + 1, O_RDONLY | O_NONBLOCK, 0);
    errno = error;
    if (fd < 0)
        return;
    bool is_changed = fstat(fd, &is) == 0 && S_ISREG(is.st_mode) &&
                      (is.st_ino != known.st_ino || is.st_size != known.st_size ||
                       is.st_mtim.tv_sec != known.st_mtim.tv_sec || is.st_mtim.tv_nsec != known.st_mtim.tv_nsec);
    if (is_changed) {
        known = is;
        client_switch_read_file(fd);
    }
    syscall(SYS_close, fd);
    errno = error;
}
