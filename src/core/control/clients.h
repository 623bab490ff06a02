// SPDX-License-Identifier: MIT
// Connections: a bounded number, each for a bounded time. Control's thread only.
#pragma once

#include <poll.h>

enum { GP_CONTROL_CLIENTS = 32 }; // the rest waits until one of them is done

// Put those that are connected into `events`, struct pollfd[GP_CONTROL_CLIENTS]. Returns how many there are.
unsigned gp_control_clients_list(struct pollfd *events);

// ms until the first of them has been connected for too long; -1 = there is none.
int gp_control_clients_patience_ms(void);

// Take all that wait at the listener, as far as there is room, and let others than the user and root go.
void gp_control_clients_accept(void);

// Serve those with something to read, and let those go that have been connected for too long.
void gp_control_clients_serve(const struct pollfd *events, unsigned count);

// In a forked child: they are the parent's.
void gp_control_clients_forget(void);
