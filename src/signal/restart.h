// Let a system call that our signal ended with EINTR go on, as if nothing had happened.
//
// The engines `perf` and `cpu` signal a thread only while it runs: one that ends a wait came on the way into it, before any
// time of it had passed. So the call can be made again with the arguments it had: they are all still in the registers.
#ifndef GP_SIGNAL_RESTART_H
#define GP_SIGNAL_RESTART_H

#include <ucontext.h>

// Make the interrupted context repeat its system call, if that has just failed with EINTR and no other signal is waiting
// whose handler may want it to. Signals: safe. Cost: nothing in other contexts, else one system call.
void gp_restart_call(ucontext_t *context);

#endif
