// SPDX-License-Identifier: MIT
// Threads, a sort by musl's qsort(), a child and an exec, of known CPU time. With CODE, two profiles' files besides.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#ifdef CODE
#include <greenprof/prof.h>
#endif

static double cpu(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static volatile uint64_t sink;

#define WORK(name)                                                                                                     \
    __attribute__((noipa)) static double name(double seconds)                                                          \
    {                                                                                                                  \
        double begin = cpu(), now = begin;                                                                             \
        for (; now < begin + seconds; now = cpu())                                                                     \
            for (uint64_t i = 0; i < 200000; i++)                                                                      \
                sink = sink * 3 + i;                                                                                   \
        return now - begin;                                                                                            \
    }

WORK(work_thread)
WORK(work_main)
WORK(work_child)

static int order(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

__attribute__((noipa)) static double work_sort(double seconds)
{
    static int numbers[20000];
    double begin = cpu(), now = begin;
    for (; now < begin + seconds; now = cpu()) {
        for (size_t i = 0; i < 20000; i++)
            numbers[i] = rand();
        qsort(numbers, 20000, sizeof(numbers[0]), order);
    }
    return now - begin;
}

static double thread_took, sort_took;

static void *in_thread(void *unused)
{
    thread_took = work_thread(0.8);
    return unused;
}

static void *in_sorter(void *unused)
{
    sort_took = work_sort(0.8);
    return unused;
}

int main(int argc, char **argv)
{
    pthread_t thread, sorter;
    int status = 0;
    if (argc > 1 && strcmp(argv[1], "child") == 0) {
        printf("EXPECT work_child %.6f\n", work_child(0.4));
        return 5;
    }
#ifdef CODE
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *profile = prof_start(&options);
    if (profile == NULL)
        return 1;
#endif
    pthread_create(&thread, NULL, in_thread, NULL);
    pthread_create(&sorter, NULL, in_sorter, NULL);
    double main_took = work_main(0.4);
    pthread_join(thread, NULL);
    pthread_join(sorter, NULL);
#ifdef CODE
    if (prof_stop(profile) != 0 || prof_dump_stats(profile, argv[1]) != 0)
        return 2;
    prof_free(profile);
#else
    fflush(stdout);
    if (fork() == 0)
        execl(argv[0], argv[0], "child", (char *)NULL);
    wait(&status);
    if (WEXITSTATUS(status) != 5)
        return 3;
#endif
    printf("EXPECT work_thread %.6f\nEXPECT work_sort %.6f\nEXPECT work_main %.6f\n", thread_took, sort_took,
           main_took);
    return 0;
}
