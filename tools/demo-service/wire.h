// SPDX-License-Identifier: MIT
// Common work of the service and its clients: receive with the kernel's time stamp, find a header.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

// Ask for time stamps: sockets that are accepted inherit it.
void wire_stamp_arrivals(int fd);

// recv(2), and when the last of the bytes reached this host: ns since 1970; 0 where the kernel does not say.
ssize_t wire_receive(int fd, char *data, size_t size, int64_t *stamp_ns);

// Copy a header's value, cut at `size`; "" where there is none. Returns whether there is one.
bool wire_header(const char *head, const char *name, char *value, size_t size);
