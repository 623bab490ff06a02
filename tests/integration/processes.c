// SPDX-License-Identifier: MIT
// A process and what becomes of it: fork, exec, vfork, posix_spawn, system, daemons, closed descriptors.
//   processes fork | fork_exec PROGRAM [ARGUMENT...] | exec_self | children | daemon FILE | close_all | failed_exec |
//   many
#include "truth.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

extern char **environ;

WORK(before)
WORK(parent)
WORK(child)

static uint64_t ms(unsigned n)
{
    return n * UINT64_C(1000000);
}

static int wait_for(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

// Lines of the two processes are told apart by their first word.
static int forks(void)
{
    work_before(ms(600));
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0) {
        truth_thread_begin();
        work_child(ms(1000));
        truth_thread_end();
        printf("CHILD %d %.6f %.6f\n", (int)getpid(), truth_seconds(child_ns), truth_seconds(truth_cpu_ns()));
        exit(7);
    }
    work_parent(ms(800));
    if (wait_for(pid) != 7)
        return 3;
    EXPECT(before);
    EXPECT(parent);
    return 0;
}

static int fork_exec(char **command)
{
    pid_t pid = fork();
    if (pid == 0) {
        work_child(ms(500));
        printf("CHILD %d %.6f\n", (int)getpid(), truth_seconds(child_ns));
        fflush(stdout);
        execv(command[0], command);
        _exit(127);
    }
    work_parent(ms(500));
    int status = wait_for(pid);
    EXPECT(parent);
    return status;
}

static int exec_self(char *self)
{
    work_before(ms(800));
    EXPECT(before);
    printf("FIRST %.6f\n", truth_seconds(before_ns));
    fflush(stdout);
    execl(self, self, "exec_self_second", (char *)NULL);
    return 3;
}

static int exec_self_second(void)
{
    work_parent(ms(700));
    printf("SECOND %.6f\n", truth_seconds(parent_ns));
    return 0;
}

// The program becomes itself again, in each way there is; ways with an environment of their own say so in it.
static int exec_forms(char *self, char *stage)
{
    char next[16], *const argv[] = {self, "exec_forms", next, NULL}, *said = getenv("SAID");
    size_t count = 0;
    while (environ[count] != NULL)
        count++;
    char *saying[count + 2];
    memcpy(saying, environ, count * sizeof(*saying));
    saying[count] = "SAID=more";
    saying[count + 1] = NULL;
    snprintf(next, sizeof(next), "%d", atoi(stage) + 1);
    printf("STAGE %s %s\n", stage, said != NULL ? said : "nothing");
    fflush(stdout);
    unsetenv("SAID");
    switch (atoi(stage)) {
    case 0:
        return execl(self, self, "exec_forms", next, (char *)NULL);
    case 1:
        return execle(self, self, "exec_forms", next, (char *)NULL, saying);
    case 2:
        return execlp(self, self, "exec_forms", next, (char *)NULL);
    case 3:
        return execve(self, argv, saying);
    case 4:
        return execv(self, argv);
    case 5:
        return execvpe(self, argv, saying);
    case 6:
        return execvp(self, argv);
    case 7:
        return fexecve(open(self, O_RDONLY | O_CLOEXEC), argv, saying);
    default:
        return 0;
    }
}

static int failed_exec(void)
{
    work_before(ms(500));
    for (int i = 0; i < 3; i++)
        if (execl("/nonexistent", "nonexistent", (char *)NULL) != -1 || errno != ENOENT)
            return 3;
    work_parent(ms(700));
    EXPECT(before);
    EXPECT(parent);
    return 0;
}

// vfork() has its own function: no variable is there for it to clobber.
static int vfork_and(char *const *command, int status)
{
    pid_t pid = vfork();
    if (pid == 0) {
        if (command != NULL)
            execve(command[0], command, environ);
        _exit(status);
    }
    return wait_for(pid);
}

static int children(void)
{
    char *const command[] = {"/bin/sh", "-c", "exit 5", NULL};
    pid_t pid;
    for (int i = 0; i < 20; i++) {
        work_parent(ms(40));
        if (posix_spawn(&pid, command[0], NULL, NULL, command, environ) != 0 || wait_for(pid) != 5)
            return 3;
        if (vfork_and(command, 126) != 5)
            return 4;
        if (vfork_and(NULL, 9) != 9)
            return 5;
        if (WEXITSTATUS(system("exit 6")) != 6)
            return 6;
        FILE *pipe = popen("cat > /dev/null; exit 4", "w");
        if (pipe == NULL || WEXITSTATUS(pclose(pipe)) != 4)
            return 7;
    }
    EXPECT(parent);
    return 0;
}

static int become_daemon(const char *path)
{
    if (fork() != 0)
        _exit(0);
    setsid();
    if (fork() != 0)
        _exit(0);
    if (chdir("/") != 0)
        return 3;
    for (int fd = 0; fd < 1024; fd++)
        close(fd);
    open("/dev/null", O_RDWR);
    if (dup(0) != 1 || dup(0) != 2)
        return 3;
    truth_thread_begin();
    work_child(ms(1000));
    FILE *file = fopen(path, "w");
    if (file == NULL)
        return 4;
    fprintf(file, "EXPECT work_child %.6f\nCHILD %d\n", truth_seconds(child_ns), (int)getpid());
    fclose(file);
    return 0;
}

static int close_all(void)
{
    work_before(ms(700));
    syscall(SYS_close_range, 3, ~0u, 0);
    // The numbers are soon used again, for something that must not be touched.
    int pair[2];
    for (int i = 0; i < 20; i++) {
        if (pipe(pair) != 0)
            return 3;
        dup2(pair[1], 512 + 2 * i);
        dup2(pair[0], 513 + 2 * i);
    }
    work_parent(ms(2000));
    for (int i = 0; i < 20; i++) {
        char byte = 'x';
        fcntl(513 + 2 * i, F_SETFL, O_NONBLOCK);
        if (write(512 + 2 * i, &byte, 1) != 1 || read(513 + 2 * i, &byte, 1) != 1 || byte != 'x' ||
            read(513 + 2 * i, &byte, 1) != -1 || errno != EAGAIN)
            return 4;
    }
    EXPECT(before);
    EXPECT(parent);
    return 0;
}

static void *fork_storm(void *unused)
{
    for (int i = 0; i < 100; i++) {
        pid_t pid = fork();
        if (pid == 0)
            _exit(i % 50);
        if (wait_for(pid) != i % 50)
            exit(5);
    }
    return unused;
}

// Two threads fork while two others work and allocate.
static void *busy(void *unused)
{
    truth_thread_begin();
    for (int i = 0; i < 1000; i++) {
        free(malloc((size_t)i * 100 + 1));
        work_parent(1000000);
    }
    truth_thread_end();
    return unused;
}

static int many(void)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        pthread_create(&threads[i], NULL, i < 2 ? busy : fork_storm, NULL);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    EXPECT(parent);
    return 0;
}

static int run(char **argv)
{
    const char *what = argv[1];
    if (strcmp(what, "fork") == 0)
        return forks();
    if (strcmp(what, "fork_exec") == 0)
        return fork_exec(argv + 2);
    if (strcmp(what, "exec_self") == 0)
        return exec_self(argv[0]);
    if (strcmp(what, "exec_self_second") == 0)
        return exec_self_second();
    if (strcmp(what, "exec_forms") == 0)
        return exec_forms(argv[0], argv[2]);
    if (strcmp(what, "failed_exec") == 0)
        return failed_exec();
    if (strcmp(what, "children") == 0)
        return children();
    if (strcmp(what, "daemon") == 0)
        return become_daemon(argv[2]);
    if (strcmp(what, "close_all") == 0)
        return close_all();
    if (strcmp(what, "many") == 0)
        return many();
    return 2;
}

int main(int argc, char **argv)
{
    truth_thread_begin();
    if (argc < 2)
        return 2;
    int status = run(argv);
    truth_print_total();
    return status;
}
