// SPDX-License-Identifier: MIT
// A host that profiles its requests and writes the results: its own computation does not depend on their success.
//   api FOLDER
#include <greenprof/prof.h>

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "features.h"

enum { REQUESTS = 3, WORK = 10000 };

// After a dump reported as done the file is there, and a failed one left nothing behind.
static void dump(prof_t *profile, const char *folder, const char *format)
{
    char path[4096];
    struct stat status;
    snprintf(path, sizeof(path), "%s/dump.%s", folder, format);
    unlink(path);
    int error = prof_dump(profile, format, path);
    bool exists = stat(path, &status) == 0;
    if (error == 0 ? !exists || status.st_size == 0 : exists)
        features_fail("a dump is not what it says");
}

static uint64_t serve(uint64_t request, const char *folder)
{
    static const char *const formats[] = {"pstats", "folded", "pprof", "json"};
    prof_options_t options = PROF_OPTIONS_INIT;
    options.name = "request";
    prof_t *profile = prof_start(&options);
    uint64_t result = features_work(request, WORK);
    if (profile == NULL)
        return result;
    prof_stop(profile);
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        dump(profile, folder, formats[i]);
    prof_free(profile);
    return result;
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    for (uint64_t request = 0; request < REQUESTS; request++)
        printf("REQUEST %d %016llx\n", (int)request, (unsigned long long)serve(request, argv[1]));
    return 0;
}
