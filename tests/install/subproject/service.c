// SPDX-License-Identifier: MIT
#include <stdio.h>

#include <greenprof/prof.h>

int main(void)
{
    prof_t *profile = prof_start(NULL);
    if (profile == NULL || prof_stop(profile) != 0 || prof_dump(profile, "json", "service.json") != 0)
        return 1;
    prof_free(profile);
    puts(prof_version(NULL, NULL, NULL));
    return 0;
}
