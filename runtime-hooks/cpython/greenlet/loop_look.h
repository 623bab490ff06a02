// SPDX-License-Identifier: MIT
// Looks for events, by loops written in Python: eventlet's hub, and asyncio's.
//
// Model: both ask select.epoll.poll(), of which the C function is hooked. Where that has slept, an event ended the
// sleep, and came then. Where it has not, the events may have been there since the look before: what a loop that was
// kept from looking finds is not known to have come late (gp_ledger_edge_looked()).
//
// Caller holds the interpreter lock everywhere.
#pragma once

// Hook it, once. Cost: two look-ups.
void gp_loop_look_hook(void);
