// SPDX-License-Identifier: MIT
// A C++ host that uses every header.
#include <cstdio>
#include <cstring>
#include <greenprof/coro.h>
#include <greenprof/prof.h>
#include <greenprof/trace.h>

int main()
{
    char version[64];
    int major = -1, minor = -1, patch = -1;
    const char *text = prof_version(&major, &minor, &patch);
    std::snprintf(version, sizeof(version), "%d.%d.%d", PROF_VERSION_MAJOR, PROF_VERSION_MINOR, PROF_VERSION_PATCH);
    if (std::strcmp(text, version) != 0 || std::strcmp(prof_version(nullptr, nullptr, nullptr), version) != 0 ||
        major != PROF_VERSION_MAJOR || minor != PROF_VERSION_MINOR || patch != PROF_VERSION_PATCH)
        return 5;
    prof_options_t options = PROF_OPTIONS_INIT;
    options.name = "user";
    prof_t *profile = prof_start(&options);
    if (profile == nullptr)
        return 1;
    prof_coro_switch(nullptr);
    prof_trace_id_t id;
    if (prof_trace_parse("4bf92f35-77b3-4da6-a3ce-929d0e0e4736", &id) != 0 || prof_trace_set(&id) != 0)
        return 2;
    for (volatile int i = 0; i < 20000000; i = i + 1)
        ;
    if (prof_stop(profile) != 0 || prof_total_ns(profile) == 0)
        return 3;
    if (prof_dump_stats(profile, "user.prof") != 0)
        return 4;
    prof_free(profile);
    return 0;
}
