// SPDX-License-Identifier: MIT
// dump_all DIRECTORY: profile this process for a moment, dump the profile in every format there is,
// as DIRECTORY/NAME. Prints the names and, first, the profile's total in ns.
#include <greenprof/prof.h>

#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "report/report.h"

static volatile unsigned long sink;

static __attribute__((noinline)) void burn(uint64_t ns)
{
    struct timespec now;
    uint64_t start = 0, at;
    do {
        for (int i = 0; i < 10000; i++)
            sink += (unsigned long)i;
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
        at = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
        start = start ? start : at;
    } while (at - start < ns);
}

int main(int argc, char **argv)
{
    prof_options_t options = PROF_OPTIONS_INIT;
    char path[4096];
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *profile = prof_start(&options);
    if (argc != 2 || profile == NULL)
        return 2;
    burn(200000000);
    prof_stop(profile);
    printf("%" PRIu64 "\n", prof_total_ns(profile));
    for (const gp_exporter_t *exporter = gp_exporter_table(); exporter->name; exporter++) {
        snprintf(path, sizeof(path), "%s/%s", argv[1], exporter->name);
        int result = prof_dump(profile, exporter->name, path);
        printf("%s %d\n", exporter->name, result);
    }
    prof_free(profile);
    return 0;
}
