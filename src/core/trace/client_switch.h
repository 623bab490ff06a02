// SPDX-License-Identifier: MIT
// Which calls of libraries become spans now (model/clients.h): as GREENPROF_SPANS says, until `greenprof start --spans`
// says otherwise, or the file that the variable names (@FILE) changes. Threads: any. Signals: not safe.
#pragma once

#include <stdbool.h>

#include "greenprof/trace.h"
#include "model/clients.h"

// Is it switched on? Cost: ~1 ns.
bool gp_client_is_on(gp_client_t client);

// Is a call to be recorded: is it switched on, and a span open that is no call of this kind already? So a statement is
// one span, whichever of the libraries that it goes through would tell of it. Cost where nothing is open: ~3 ns.
bool gp_client_may_call(gp_client_t client, prof_span_kind_t kind);

// The bits of those that are on.
uint64_t gp_clients_on(void);

// Obey a list, as of now. Returns 0, or -EINVAL, nothing changed: a word is none that is known.
int gp_clients_switch(const char *list);

// While a capture is written: look whether the file has changed. The collector; a call of stat() a second.
void gp_clients_look_at_file(void);
