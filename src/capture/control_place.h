// SPDX-License-Identifier: MIT
// How the socket is called by which a process is controlled (model/control.h), in the directory of census_place.h.
//
// control-PID-START-SPACE: the process id as the process itself sees it, its start time, and the name space of process
// ids that the former belongs to. So a process that has another's number is not taken for it. Threads: any. Signals:
// not safe.
#pragma once

#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>

enum { GP_CONTROL_SOCKET_NAME_SIZE = 80 };

void gp_control_socket_name(int pid, uint64_t start, uint64_t name_space, char name[GP_CONTROL_SOCKET_NAME_SIZE]);

// Find the socket of a process in whatever name space. Returns 0 or -ENOENT.
int gp_control_socket_find(int directory, int pid, uint64_t start, char name[GP_CONTROL_SOCKET_NAME_SIZE]);

// Its address, however long the directory's path is. Returns the address' length.
socklen_t gp_control_socket_address(int directory, const char *name, struct sockaddr_un *address);

// Remove the sockets of processes of this name space that are gone.
void gp_control_socket_tidy(int directory, uint64_t name_space);
