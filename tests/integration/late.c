// SPDX-License-Identifier: MIT
// A program that knows nothing of greenprof when it starts its threads: it loads the library later, and profiles
// itself.
//   late LIBRARY OUTPUT_DIRECTORY
#include "truth.h"

#include <dlfcn.h>
#include <pthread.h>

#include <greenprof/prof.h>

enum { EARLIER = 3 };

WORK(early_0)
WORK(early_1)
WORK(early_2)
WORK(later)

static int phase; // 0 = idle, 1 = profiled, 2 = over
static void (*const works[EARLIER])(uint64_t) = {work_early_0, work_early_1, work_early_2};
static uint64_t *const books[EARLIER] = {&early_0_ns, &early_1_ns, &early_2_ns};

static int current_phase(void)
{
    return __atomic_load_n(&phase, __ATOMIC_ACQUIRE);
}

static void *early(void *argument)
{
    uintptr_t id = (uintptr_t)argument;
    while (current_phase() == 0) {
        works[id](1000000); // not profiled
        usleep(1000);
    }
    *books[id] = 0;
    truth_thread_begin();
    for (int i = 0; i < 200; i++)
        works[id]((id + 1) * 1500000);
    truth_thread_end();
    while (current_phase() != 2)
        usleep(50000);
    return NULL;
}

static void *later(void *unused)
{
    truth_thread_begin();
    work_later(1000000000);
    truth_thread_end();
    return unused;
}

static void *find(void *library, const char *name)
{
    void *found = dlsym(library, name);
    if (found == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        exit(3);
    }
    return found;
}

int main(int argc, char **argv)
{
    pthread_t threads[EARLIER], last;
    char path[4096];
    if (argc < 3)
        return 2;
    for (uintptr_t i = 0; i < EARLIER; i++)
        pthread_create(&threads[i], NULL, early, (void *)i);
    usleep(50000);
    void *library = dlopen(argv[1], RTLD_NOW);
    if (library == NULL) {
        fprintf(stderr, "%s\n", dlerror());
        return 3;
    }
    prof_t *(*start)(const prof_options_t *) = (prof_t * (*)(const prof_options_t *)) find(library, "prof_start");
    int (*stop)(prof_t *) = (int (*)(prof_t *))find(library, "prof_stop");
    int (*dump)(prof_t *, const char *, const char *) =
        (int (*)(prof_t *, const char *, const char *))find(library, "prof_dump");
    uint64_t (*total)(prof_t *) = (uint64_t(*)(prof_t *))find(library, "prof_total_ns");
    prof_options_t options = PROF_OPTIONS_INIT;
    options.scope = PROF_SCOPE_PROCESS;
    prof_t *profile = start(&options);
    if (profile == NULL) {
        perror("prof_start");
        return 4;
    }
    truth_thread_begin();
    __atomic_store_n(&phase, 1, __ATOMIC_RELEASE);
    pthread_create(&last, NULL, later, NULL);
    pthread_join(last, NULL);
    for (int i = 0; i < EARLIER; i++) // each has stopped work when its own book is full
        while (__atomic_load_n(books[i], __ATOMIC_RELAXED) < (uint64_t)(i + 1) * 300000000)
            usleep(50000);
    truth_thread_end();
    if (stop(profile) != 0)
        return 5;
    snprintf(path, sizeof(path), "%s/late.folded", argv[2]);
    if (dump(profile, "folded", path) != 0)
        return 6;
    __atomic_store_n(&phase, 2, __ATOMIC_RELEASE);
    for (int i = 0; i < EARLIER; i++)
        pthread_join(threads[i], NULL);
    EXPECT(early_0);
    EXPECT(early_1);
    EXPECT(early_2);
    EXPECT(later);
    printf("PROFILE %.6f\n", truth_seconds(total(profile)));
    printf("TOTAL %.6f\n", truth_seconds(truth_total_ns));
    fflush(stdout);
    if (dlclose(library) != 0) // its threads and handler must survive this
        return 7;
    work_later(100000000);
    usleep(700000);
    return 0;
}
