// SPDX-License-Identifier: MIT
// Loads a library with RTLD_DEEPBIND, and one by a name that is found by this program's own RUNPATH alone.
//   deepbind DIRECTORY
#define _GNU_SOURCE
#include "truth.h"

#include <dlfcn.h>

typedef int run_t(uint64_t *raising, uint64_t *blocking);

int main(int argc, char **argv)
{
    char path[4096];
    uint64_t raising = 0, blocking = 0;
    truth_thread_begin();
    snprintf(path, sizeof(path), "%s/deepbind_plugin.so", argc > 1 ? argv[1] : ".");
    void *own = dlopen("plugin_even.so", RTLD_NOW), *deep = dlopen(path, RTLD_LAZY | RTLD_DEEPBIND);
    run_t *run = deep != NULL ? (run_t *)dlsym(deep, "plugin_run") : NULL;
    if (own == NULL || run == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    printf("HANDLED %d\n", run(&raising, &blocking));
    printf("EXPECT work_blocked %.6f\n", truth_seconds(blocking));
    truth_print_total();
    return 0;
}
