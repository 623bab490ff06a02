// SPDX-License-Identifier: MIT
// A program that makes code while it runs, as just-in-time compilers do, and says so in /tmp/perf-PID.map. jit SECONDS
// SELF_DUMP: spins in made code for SECONDS; with SELF_DUMP it writes a pstats file of itself there.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#ifdef SELF_DUMP
#include <greenprof/prof.h>
#endif

typedef uint64_t code_t(uint64_t count);

// mov %rdi,%rax; dec %rdi; jnz; ret
static const uint8_t loop_code[] = {0x48, 0x89, 0xf8, 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3};

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

int main(int argc, char **argv)
{
    double seconds = argc > 1 ? atof(argv[1]) : 1;
    char path[64];
    uint8_t *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    snprintf(path, sizeof(path), "/tmp/perf-%d.map", (int)getpid());
    FILE *map = fopen(path, "w");
    if (page == MAP_FAILED || map == NULL)
        return 1;
    memcpy(page, loop_code, sizeof(loop_code));
    fprintf(map, "%lx %zx made:loop at run time\n", (unsigned long)(uintptr_t)page, sizeof(loop_code));
    fclose(map);
    code_t *code;
    memcpy(&code, &page, sizeof(code));
#ifdef SELF_DUMP
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_THREAD;
    options.frequency_hz = 1000;
    prof_t *profile = prof_start(&options);
#endif
    while (now() < seconds)
        code(1000000);
#ifdef SELF_DUMP
    prof_stop(profile);
    if (prof_dump_stats(profile, argv[2]) != 0)
        return 1;
    prof_free(profile);
#endif
    printf("%s\n", path);
    return 0;
}
