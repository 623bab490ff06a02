// SPDX-License-Identifier: MIT
// CPU time of threads that is in no sample, and why it is not.
//
// Model: what a thread has used since its last sample is in the weight of its next one. As a rule that is under way,
// and takes as long as it takes: a CPU timer comes with the kernel's ticks, and where the thread has a small share of a
// busy processor none may meet it at work for 100 ms of its CPU time. This is GP_COUNTER_PENDING_NS: the kernel counts
// it as used, so it is in every total. Only where no signal can reach the thread is it GP_COUNTER_UNSAMPLED_NS, which
// the totals of processes leave out, as no sample tells where it belongs: the thread has no timer, or the signal was
// sent and its mask holds it back. How long ago the last sample was tells neither. Both last until the next sample; for
// good where the thread, or sampling, ends before that.
//
// Threads: any, while sampling is on. Signals: not safe. Cost: ~0.5 us a thread; ~20 us where a sample is overdue.
#pragma once

#include "model/counters.h"
#include "signal/thread.h"

// Add to one of the two what a live thread has used since its last sample.
void gp_cpu_without_sample_add(const gp_thread_t *thread, uint64_t counters[GP_COUNTER_COUNT]);

// The same to the thread's own counters, for good, and begin anew: its sampling ends. Before its timer is taken away.
void gp_cpu_without_sample_keep(gp_thread_t *thread);

// Time that no signal could reach so far, of all threads, ns. Caller holds the drain lock.
uint64_t gp_cpu_without_sample_ns(void);
