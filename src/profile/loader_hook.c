// dlclose() is interposed: what was sampled in a module is resolved before another one can be loaded in its place.
#include <dlfcn.h>
#include <stddef.h>
#include <stdint.h>

#include "greenprof/coro.h"
#include "profile/collector.h"
#include "profile/process.h"

// The collector asks the loader which modules there are; should it not get an answer, the host goes on all the same.
enum { PATIENCE_NS = 100000000 };

typedef int close_t(void *);

PROF_API int dlclose(void *handle)
{
    static close_t *_Atomic next;
    if (next == NULL)
        next = (close_t *)(uintptr_t)dlsym(RTLD_NEXT, "dlclose");
    if (__atomic_load_n(&prof_coro_active, __ATOMIC_RELAXED) && gp_process_is_mine())
        gp_collector_sync_within(PATIENCE_NS);
    return next(handle);
}
