// The host's own use of the sampling signal: sigaction() and signal() are interposed.
//
// A host that installs a handler of its own gets the signal at once: sampling moves to another one (sampling_signal.h), or
// where there is none ends for good, and the capture says so. One that resets the signal to its default or ignores it (daemons reset all of them) means no harm, but
// the next sample would kill it: it is told that this was done, and the handler stays.
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "greenprof/prof.h"
#include "profile/host_mask.h"
#include "profile/sampler.h"
#include "profile/sampling_signal.h"

// glibc's own name, which nobody interposes. Needs no look-up: sigaction() may be called from a handler.
extern int __sigaction(int number, const struct sigaction *action, struct sigaction *old);

static struct sigaction told; // what the host believes is installed; all zero is SIG_DFL

static bool handles(const struct sigaction *action)
{
    return (action->sa_flags & SA_SIGINFO) || (action->sa_handler != SIG_DFL && action->sa_handler != SIG_IGN);
}

// `action` may be where `old` is.
static int answer(int number, const struct sigaction *action, struct sigaction *old)
{
    struct sigaction before = told;
    int result = 0;
    if (action != NULL && handles(action)) {
        gp_sampler_yield();
        memset(&told, 0, sizeof(told)); // of the signal that is taken next, nothing
        result = __sigaction(number, action, NULL);
    } else if (action != NULL) {
        told = *action;
    }
    if (old != NULL)
        *old = before;
    return result;
}

PROF_API int sigaction(int number, const struct sigaction *action, struct sigaction *old)
{
    if (number == gp_sampling_signal() && gp_sampling_signal_is_ours())
        return answer(number, action, old);
    struct sigaction filtered;
    bool believed = gp_host_mask_action_is_believed(number);
    if (action != NULL) {
        filtered = *action; // `old` may be where it is
        gp_host_mask_filter_action(number, &filtered);
    }
    int result = __sigaction(number, action != NULL ? &filtered : NULL, old);
    if (result == 0 && old != NULL && believed)
        sigaddset(&old->sa_mask, gp_sampling_signal());
    return result;
}

// BSD semantics, as glibc's has: system calls are restarted, the signal is blocked in its handler.
PROF_API sighandler_t signal(int number, sighandler_t handler)
{
    extern sighandler_t bsd_signal(int, sighandler_t);
    if (number != gp_sampling_signal() || handler == SIG_ERR || !gp_sampling_signal_is_ours())
        return bsd_signal(number, handler);
    struct sigaction action, old;
    memset(&action, 0, sizeof(action));
    action.sa_handler = handler;
    action.sa_flags = SA_RESTART;
    sigaddset(&action.sa_mask, number);
    return answer(number, &action, &old) == 0 ? old.sa_handler : SIG_ERR;
}
