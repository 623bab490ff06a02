// SPDX-License-Identifier: MIT
// Sockets for coroutines: what would block parks the calling coroutine instead.
//
// All descriptors are non-blocking. Functions return 0 or a negative errno value unless they say
// otherwise; deadlines are in terms of loop_now_ms().
#pragma once

#include "loop.h"

#include <sys/types.h>

// Listen on an IPv4 address. `port` 0 picks a free one. Returns the descriptor or a negative errno value.
int socket_listen(const char *address, uint16_t port);

// The port a socket is bound to; 0 when it is not.
uint16_t socket_port(int fd);

// Accept a connection: waits, idle, until there is one. Returns the descriptor or a negative errno value.
int socket_accept(int listen_fd);

// Connect to a port of this host. Returns the descriptor or a negative errno value.
int socket_connect(uint16_t port, int64_t deadline_ms);

// Receive at least one byte. Returns how many, 0 at the end of the stream, or a negative errno value.
ssize_t socket_recv(int fd, char *data, size_t size, int64_t deadline_ms, loop_wait_kind_t kind);

// The same, and when the last of these bytes reached this host, ns since 1970; 0 where the kernel did not say. Only for
// descriptors of socket_accept().
ssize_t socket_recv_stamped(int fd, char *data, size_t size, int64_t deadline_ms, loop_wait_kind_t kind,
                            int64_t *arrival_ns);

// Send all of it; the second, where more follows at once: the peer is not woken for a part.
int socket_send(int fd, const char *data, size_t len, int64_t deadline_ms);
int socket_send_part(int fd, const char *data, size_t len, int64_t deadline_ms);

// Close a connection while its peer may still be sending, without the reset that would destroy the answer on its way.
void socket_close_gently(int fd);
