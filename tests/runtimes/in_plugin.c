// SPDX-License-Identifier: MIT
// Runs main() of a plugin: PLUGIN ARGUMENT... The plugin's library of coroutines is in no scope but its own.
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

typedef int main_t(int argc, char **argv);

int main(int argc, char **argv)
{
    void *plugin = argc > 1 ? dlopen(argv[1], RTLD_NOW | RTLD_LOCAL) : NULL;
    main_t *run = plugin != NULL ? (main_t *)(uintptr_t)dlsym(plugin, "main") : NULL;
    if (run == NULL)
        return fprintf(stderr, "%s\n", argc > 1 ? dlerror() : "no plugin"), 2;
    return run(argc - 1, argv + 1);
}
