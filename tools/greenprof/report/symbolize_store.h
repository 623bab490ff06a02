// SPDX-License-Identifier: MIT
// Names, later, in a store of many hosts: stacks that have addresses and build-ids instead.
#pragma once

#include <stdbool.h>

#define GP_STORE_SCHEME "clickhouse://"

// Name what can be named of a store's stacks: debug files of this host, and where `servers` is not NULL those of
// debuginfod
// ("env" = of DEBUGINFOD_URLS). A stack that was named is put into the store once more, with the same id: the one
// without addresses counts. Says what came of it. Returns an exit status, with a message.
int gp_symbolize_store(const char *url, const char *servers);

// Say why debuginfod cannot be asked. Returns the exit status.
int gp_symbolize_no_servers(int error);
