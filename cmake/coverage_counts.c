// SPDX-License-Identifier: MIT
// In builds for gcov: a profiled process that ends without destructors, by a fatal signal among them, or becomes
// another program, leaves its counts behind as well.
#include <stddef.h>

void gp_coverage_leave(void);
void __gcov_dump(void);
void __gcov_reset(void);

// What is counted from here on is added when there is another end.
void gp_coverage_leave(void)
{
    __gcov_dump();
    __gcov_reset();
}

void __real_gp_session_ending(void);
void __wrap_gp_session_ending(void);
void __wrap_gp_session_ending(void)
{
    __real_gp_session_ending();
    gp_coverage_leave();
}

void __real_gp_host_mask_before_exec(void);
void __wrap_gp_host_mask_before_exec(void);
void __wrap_gp_host_mask_before_exec(void)
{
    __real_gp_host_mask_before_exec();
    gp_coverage_leave();
}

// The last that is done for a process which a signal ends.
int __real_gp_census_write(const char *path, const void *fatal);
int __wrap_gp_census_write(const char *path, const void *fatal);
int __wrap_gp_census_write(const char *path, const void *fatal)
{
    int result = __real_gp_census_write(path, fatal);
    if (fatal != NULL)
        gp_coverage_leave();
    return result;
}
