// SPDX-License-Identifier: MIT
// GNU Pth: three named threads and an unnamed one.
#include <pth.h>

#include "shares.h"

static void *run(void *argument)
{
    int id = (int)(intptr_t)argument;
    for (int i = 0; i < shares_rounds; i++) {
        shares_step(id);
        pth_yield(NULL);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"the alpha one", "the beta one", "the gamma one"};
    pth_t threads[SHARES_COUNT];
    if (shares_begin(argc, argv) < 0 || !pth_init())
        return 2;
    for (int id = 0; id < SHARES_COUNT; id++) {
        pth_attr_t attributes = pth_attr_new();
        pth_attr_set(attributes, PTH_ATTR_JOINABLE, TRUE);
        if (id < 3)
            pth_attr_set(attributes, PTH_ATTR_NAME, names[id]);
        threads[id] = pth_spawn(attributes, run, (void *)(intptr_t)id);
        pth_attr_destroy(attributes);
    }
    for (int id = 0; id < SHARES_COUNT; id++)
        pth_join(threads[id], NULL);
    int status = shares_end();
    pth_kill();
    return status;
}
