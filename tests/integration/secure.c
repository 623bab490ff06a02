// SPDX-License-Identifier: MIT
// Linked with the core, as a set-user-ID program may be: works for a while, and prints the signals that it handles.
#include <greenprof/coro.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

int main(void)
{
    struct timespec now;
    char line[256];
    do
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    while (now.tv_nsec < 50000000);
    FILE *status = fopen("/proc/self/status", "r");
    while (status != NULL && fgets(line, sizeof(line), status) != NULL)
        if (strncmp(line, "SigCgt:", 7) == 0)
            fputs(line + 7, stdout);
    return status == NULL || prof_coro_active > 1;
}
