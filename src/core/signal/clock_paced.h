// SPDX-License-Identifier: MIT
// What the engine `monotonic` shares with the pacer, which sends its signals.
#ifndef GP_SIGNAL_CLOCK_PACED_H
#define GP_SIGNAL_CLOCK_PACED_H

#include "signal/clock_engine.h"

// All timers that were ever armed, by `next_paced`; append-only. Acquire to read.
extern _Atomic(gp_timer_t *) gp_clock_paced;

// The timer that the pacer is at. disarm() waits until it has left it.
extern _Atomic(gp_timer_t *) gp_clock_pacing;

// A timer was armed: tell the pacer, which may sleep. NULL = there is none yet.
extern void (*gp_clock_paced_wake)(void);

#endif
