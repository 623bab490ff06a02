// SPDX-License-Identifier: MIT
// A stack switch as coroutine libraries write it: callee-saved registers, stack pointer, nothing else.
#pragma once

// Save this context at *from and go on where `to` was saved.
void bench_swap(void **from, void *to);

// Two contexts that switch to and fro `amount` times, bare or announced to greenprof first.
void bench_switch_bare(unsigned long amount);
void bench_switch_announced(unsigned long amount);

// The same with ~190 ns of work before each switch: five million a second.
void bench_work_bare(unsigned long amount);
void bench_work_announced(unsigned long amount);
