// SPDX-License-Identifier: MIT
// How the socket is called by which a process is controlled (live/control_protocol.h), in the directory of
// census_place.h.
//
// control-PID-SPACE: the process id as the process itself sees it, and the name space of process ids that it belongs
// to. The owner is the kernel's word of the connection: SO_PEERCRED. Threads: any. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

enum { GP_CONTROL_SOCKET_NAME_SIZE = 80 };

void gp_control_socket_name(int pid, uint64_t name_space, char name[GP_CONTROL_SOCKET_NAME_SIZE]);

// Call `look` with each possible name of a process, in whatever name space, until it returns true. Returns whether it
// did.
bool gp_control_socket_each(int directory, int pid, bool (*look)(int directory, const char *name, void *argument),
                            void *argument);

// The address of what is by a name now, however long the directory's path is. Returns the address' length.
//   name: "" = `directory` is the socket itself, opened with O_PATH.
socklen_t gp_control_socket_address(int directory, const char *name, struct sockaddr_un *address);

// Remove the sockets of processes of this name space that are gone.
void gp_control_socket_tidy(int directory, uint64_t name_space);
