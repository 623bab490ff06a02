// The host's own use of the sampling signal: sigaction() and signal() are interposed.
//
// A host that installs a handler of its own gets the signal at once: sampling ends for good, its timers with it, and the
// capture says so. One that resets the signal to its default or ignores it (daemons reset all of them) means no harm, but
// the next sample would kill it: it is told that this was done, and the handler stays.
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "greenprof/prof.h"
#include "profile/sampler.h"
#include "signal/handler.h"

enum { SAMPLING_SIGNAL = SIGPROF };

// glibc's own name, which nobody interposes. Needs no look-up: sigaction() may be called from a handler.
extern int __sigaction(int number, const struct sigaction *action, struct sigaction *old);

static struct sigaction told; // what the host believes is installed; all zero is SIG_DFL

static bool handles(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

static bool is_ours(void)
{
    struct sigaction now;
    return __sigaction(SAMPLING_SIGNAL, NULL, &now) == 0 && (now.sa_flags & SA_SIGINFO) &&
           now.sa_sigaction == gp_handler;
}

// `action` may be where `old` is.
static int answer(const struct sigaction *action, struct sigaction *old)
{
    struct sigaction before = told;
    int result = 0;
    if (action != NULL && handles(action)) {
        gp_sampler_yield();
        result = __sigaction(SAMPLING_SIGNAL, action, NULL);
    } else if (action != NULL) {
        told = *action;
    }
    if (old != NULL)
        *old = before;
    return result;
}

PROF_API int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (number == SAMPLING_SIGNAL && is_ours())
        return answer(action, old);
    return __sigaction(number, action, old);
}

// BSD semantics, as glibc's has: system calls are restarted, the signal is blocked in its handler.
PROF_API sighandler_t signal(int number, sighandler_t handler)
{
    extern sighandler_t bsd_signal(int, sighandler_t);
    if (number != SAMPLING_SIGNAL || handler == SIG_ERR || !is_ours())
        return bsd_signal(number, handler);
    struct sigaction action, old;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaddset(&action.sa_mask, number);
    return answer(&action, &old) == 0 ? old.sa_handler : SIG_ERR;
}
