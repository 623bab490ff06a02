// SPDX-License-Identifier: MIT
// Stands in for libgreenprof-core in the tests of `greenprof run`: says what it finds in the
// environment.
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__attribute__((constructor)) static void say(void)
{
    static const char *const names[] = {"GREENPROF_OUTPUT",  "GREENPROF_FREQUENCY", "GREENPROF_ENGINE",
                                        "GREENPROF_SESSION", "GREENPROF_PID",       "LD_PRELOAD"};
    const char *path = getenv("RECORDER_FILE");
    FILE *out = path ? fopen(path, "a") : NULL;
    if (out == NULL)
        return;
    fprintf(out, "pid=%d\n", (int)getpid());
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        fprintf(out, "%s=%s\n", names[i], getenv(names[i]) ? getenv(names[i]) : "(unset)");
    fclose(out);
}
