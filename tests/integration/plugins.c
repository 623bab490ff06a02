// SPDX-License-Identifier: MIT
// Two plugins are loaded and unloaded in turn, hundreds of times, often to the same address.
//   plugins DIRECTORY ROUNDS [quick]
#include "truth.h"

#include <dlfcn.h>

typedef void work_t(uint64_t, uint64_t *);

int main(int argc, char **argv)
{
    static const char *const names[2] = {"plugin_even.so", "plugin_odd.so"};
    uint64_t books[2] = {0, 0};
    unsigned same_place = 0;
    void *places[2] = {NULL, NULL};
    truth_thread_begin();
    if (argc < 3)
        return 2;
    uint64_t slice = argc > 3 ? 20000 : 3000000;
    for (int i = 0; i < atoi(argv[2]); i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s/%s", argv[1], names[i % 2]);
        void *plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (plugin == NULL) {
            fprintf(stderr, "%s\n", dlerror());
            return 3;
        }
        work_t *(*find)(void) = (work_t * (*)(void)) dlsym(plugin, "plugin_work");
        work_t *work = find();
        places[i % 2] = (void *)work;
        same_place += places[0] == places[1];
        work(i % 2 ? slice / 2 : slice, &books[i % 2]);
        dlclose(plugin);
    }
    printf("EXPECT work_plugin_even %.6f\nEXPECT work_plugin_odd %.6f\n", truth_seconds(books[0]),
           truth_seconds(books[1]));
    printf("SAME_PLACE %u\n", same_place);
    truth_print_total();
    return 0;
}
