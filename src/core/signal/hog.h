// SPDX-License-Identifier: MIT
// Long slices, and the coroutines they kept waiting.
//
// Model: a slice of at least gp_ledger_edge_hog_ticks is put into the thread's `hogs`, and the collector is notified;
// it has kept the samples of the slice. A coroutine resumed on the same thread, and ready while such a slice went on,
// is one of its victims: its delay is the overlap of the two. So a hog of H over N ready coroutines is charged N * H,
// no matter which is resumed first. A thread's own stack, or a loop's, counts as a hog only once it has a victim: event
// loops sleep there. A hub that slept until its last stretch on the CPU kept others waiting for this stretch only:
// before, it had nothing to do, or the machine woke it up late.
#pragma once

#include "signal/thread.h"

// Slices from which on are kept, ns. Signals: safe, any thread.
void gp_hog_set_threshold(uint64_t ns);
