// What happens when the core library is loaded.
#include "capture/session.h"
#include "profile/process.h"
#include "profile/snapshot.h"

// Where the core is in the process twice (preloaded, and inside libgreenprof), the first in symbol order is the active
// one: all public names lead to it, and the other stays inert.
static int is_active(void)
{
    const gp_core_interface_t *(*volatile first)(void) = prof_core_interface;
    return first() == gp_core_own_interface();
}

__attribute__((constructor)) static void load(void)
{
    if (!is_active())
        return;
    gp_process_init();
    gp_session_start();
}

__attribute__((destructor)) static void unload(void)
{
    if (is_active())
        gp_process_ending();
}
