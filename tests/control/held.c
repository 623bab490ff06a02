// SPDX-License-Identifier: MIT
// A program at places where another one must not be attached to without care. The main thread counts its turns, and
// says on each line of standard input how many there were; the line "go" lets go all that is held. By KIND:
//   constructor PLUGIN  another thread is in dlopen(), in a constructor waiting for "go"
//   iterate             another thread is in dl_iterate_phdr(), in a function waiting for "go"
//   fork                another thread is in fork(), in a handler waiting for "go"
//   user                another thread changes its user, and so all threads', over and over
//   sequence            four threads add to a counter by a restartable sequence (rseq(2)); at the end, "lost N of M"
//   vfork               the main thread has a child by vfork(); "ready PID" is the child's
//   execs               with "go", children by fork(), which work and execute another program, by each name; "killed N"
//   swap FILE           another thread puts FILE, opened with O_PATH, in the place of each memfd that there is
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/rseq.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ADDERS = 4,
    WORK = 20000,
    FILES = 910,
    HIGH_FILE = 900,
    WAYS = 9,
    CHILDREN = 5 * WAYS,
    CHILD_TICKS = CLOCKS_PER_SEC / 125
};

static atomic_bool is_released, is_over, is_held;
static const char *argument;
static long counter, added[ADDERS]; // of the one processor that all have

__attribute__((visibility("default"))) void held_wait(void); // the plugin's, too
void held_wait(void)
{
    atomic_store(&is_held, true);
    while (!atomic_load(&is_released) && !atomic_load(&is_over))
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
}

static int visit(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info, (void)size, (void)unused;
    held_wait();
    return 1;
}

static void *load(void *unused)
{
    if (dlopen(argument, RTLD_NOW) == NULL)
        abort();
    return unused;
}

static void *iterate(void *unused)
{
    dl_iterate_phdr(visit, NULL);
    return unused;
}

static void *start_child(void *unused)
{
    pthread_atfork(held_wait, NULL, NULL);
    pid_t pid = fork();
    if (pid == 0)
        _exit(0);
    waitpid(pid, NULL, 0);
    return unused;
}

static void *change_user(void *unused)
{
    atomic_store(&is_held, true);
    for (; !atomic_load(&is_over); nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL))
        if (setresuid((uid_t)-1, (uid_t)-1, (uid_t)-1) != 0)
            abort();
    return unused;
}

static void *swap(void *unused)
{
    char path[64], link[128];
    int victim = open(argument, O_PATH);
    if (victim < 0)
        abort();
    atomic_store(&is_held, true);
    for (int n = 3;; n = n == 10 ? HIGH_FILE : n + 1 < FILES ? n + 1 : 3) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", n);
        ssize_t length = readlink(path, link, sizeof(link) - 1);
        link[length > 0 ? length : 0] = '\0';
        if (strncmp(link, "/memfd:libgreenprof", 19) == 0)
            dup2(victim, n);
    }
    return unused;
}

// The part between the load and the store begins anew after an interruption. Source: rseq(2), the kernel's selftests.
__attribute__((noinline)) static int add_one(struct rseq *area)
{
    uint32_t cpu = __atomic_load_n(&area->cpu_id_start, __ATOMIC_RELAXED);
    __asm__ __volatile__ goto(
        ".pushsection __rseq_cs, \"aw\"\n.balign 32\n3:\n.long 0, 0\n.quad 1f, 2f-1f, 4f\n.popsection\n"
        "leaq 3b(%%rip), %%rax\n movq %%rax, 8(%[area])\n"
        "1:\n cmpl %[cpu], 4(%[area])\n jnz %l[again]\n movq (%[at]), %%rcx\n"
        "movl %[work], %%edx\n5: decl %%edx\n jnz 5b\n addq $1, %%rcx\n movq %%rcx, (%[at])\n"
        "2:\n.pushsection __rseq_failure, \"ax\"\n.byte 0x0f, 0xb9, 0x3d\n.long 0x53053053\n"
        "4:\n jmp %l[again]\n.popsection\n"
        :
        : [area] "r"(area), [cpu] "r"(cpu), [at] "r"(&counter), [work] "i"(WORK)
        : "rax", "rcx", "rdx", "memory", "cc"
        : again);
    return 1;
again:
    return 0;
}

static void *add(void *sum)
{
    struct rseq *area = (struct rseq *)((char *)__builtin_thread_pointer() + __rseq_offset);
    while (!atomic_load(&is_over))
        *(long *)sum += add_one(area);
    return NULL;
}

static int add_all(void)
{
    pthread_t threads[ADDERS];
    cpu_set_t one;
    char byte;
    long sum = 0;
    CPU_ZERO(&one);
    CPU_SET((size_t)sched_getcpu(), &one);
    sched_setaffinity(0, sizeof(one), &one);
    for (int i = 0; i < ADDERS; i++)
        pthread_create(&threads[i], NULL, add, &added[i]);
    puts(__rseq_size > 0 ? "ready" : "none");
    ssize_t got = read(STDIN_FILENO, &byte, 1);
    atomic_store(&is_over, got >= 0);
    for (int i = 0; i < ADDERS; i++) {
        pthread_join(threads[i], NULL);
        sum += added[i];
    }
    printf("lost %ld of %ld\n", sum - counter, sum);
    return 0;
}

// The child is in the parent's memory, which waits for it.
static int have_child(void)
{
    char byte;
    pid_t pid = vfork();
    if (pid == 0) {
        dprintf(STDOUT_FILENO, "ready %d\n", (int)getpid());
        _exit(read(STDIN_FILENO, &byte, 1) < 0);
    }
    waitpid(pid, NULL, 0);
    return 0;
}

static void become(int way)
{
    extern char **environ;
    char *words[] = {"true", NULL};
    switch (way) {
    case 0:
        execv("/bin/true", words);
        break;
    case 1:
        execve("/bin/true", words, environ);
        break;
    case 2:
        execvp("true", words);
        break;
    case 3:
        execvpe("true", words, environ);
        break;
    case 4:
        execl("/bin/true", "true", NULL);
        break;
    case 5:
        execlp("true", "true", NULL);
        break;
    case 6:
        execle("/bin/true", "true", NULL, environ);
        break;
    case 7:
        fexecve(open("/bin/true", O_RDONLY | O_CLOEXEC), words, environ);
        break;
    default:
        execveat(AT_FDCWD, "/bin/true", words, environ, 0);
    }
}

static void work_as_child(int way)
{
    clock_t until = clock() + CHILD_TICKS;
    while (clock() < until)
        ;
    become(way);
    _exit(EXIT_FAILURE);
}

static int execute_others(void)
{
    int killed = 0, status;
    puts("ready");
    (void)getchar();
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (child == 0)
            work_as_child(i % WAYS);
        killed += waitpid(child, &status, 0) != child || status != 0;
    }
    printf("killed %d\n", killed);
    return killed;
}

static void serve(void)
{
    char line[16];
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    for (unsigned long turns = 0;; turns++) {
        if (poll(&input, 1, 1) <= 0)
            continue;
        if (fgets(line, sizeof(line), stdin) == NULL)
            return;
        atomic_store(&is_released, atomic_load(&is_released) || line[0] == 'g');
        printf("turns %lu\n", turns);
    }
}

int main(int count, char **words)
{
    static const struct {
        const char *name;
        void *(*run)(void *);
    } kinds[] = {
        {"constructor", load}, {"iterate", iterate}, {"fork", start_child}, {"user", change_user}, {"swap", swap}};
    const char *kind = count > 1 ? words[1] : "";
    pthread_t thread;
    setvbuf(stdout, NULL, _IOLBF, 0);
    argument = count > 2 ? words[2] : NULL;
    if (strcmp(kind, "sequence") == 0)
        return add_all();
    if (strcmp(kind, "vfork") == 0)
        return have_child();
    if (strcmp(kind, "execs") == 0)
        return execute_others();
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(kind, kinds[i].name) == 0)
            pthread_create(&thread, NULL, kinds[i].run, NULL);
    while (!atomic_load(&is_held))
        sched_yield();
    puts("ready");
    serve();
    atomic_store(&is_over, true);
    return strcmp(kind, "swap") == 0 ? 0 : pthread_join(thread, NULL);
}
