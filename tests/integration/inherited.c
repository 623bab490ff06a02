// SPDX-License-Identifier: MIT
// SIGPROF in executed programs: by each way, whether it is ignored there, and blocked.
//   inherited nothing | ignored | by_signal | reset | blocked
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern char **environ;

static int is_changed_in_child;

static int show(void)
{
    struct sigaction action;
    sigset_t mask;
    sigaction(SIGPROF, NULL, &action);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    printf("%s%s\n", action.sa_handler == SIG_IGN ? "ignored" : "default",
           sigismember(&mask, SIGPROF) ? ", blocked" : "");
    return fflush(stdout);
}

static void change(const char *how)
{
    struct sigaction action = {.sa_handler = strcmp(how, "ignored") == 0 ? SIG_IGN : SIG_DFL};
    sigset_t mask;
    sigemptyset(&mask);
    sigaddset(&mask, SIGPROF);
    if (strcmp(how, "by_signal") == 0)
        signal(SIGPROF, SIG_IGN);
    else if (strcmp(how, "blocked") == 0)
        sigprocmask(SIG_BLOCK, &mask, NULL);
    else if (strcmp(how, "nothing") != 0)
        sigaction(SIGPROF, &action, NULL);
}

static void work(void)
{
    while (clock() < CLOCKS_PER_SEC / 20) // for some samples
        ;
}

static void wait_for(pid_t child)
{
    int status;
    if (waitpid(child, &status, 0) != child || status != 0)
        exit(3);
}

static void begin(const char *way, char *path)
{
    char *words[] = {path, (char *)"show", NULL};
    pid_t child = -1;
    printf("%s: ", way);
    fflush(stdout);
    if (strcmp(way, "spawn") == 0)
        posix_spawn(&child, path, NULL, NULL, words, environ);
    else
        child = strcmp(way, "vfork") == 0 ? vfork() : fork();
    if (child == 0) {
        if (strcmp(way, "vfork") == 0 && is_changed_in_child)
            signal(SIGPROF, SIG_IGN);
        if (strcmp(way, "number") == 0)
            syscall(SYS_execve, path, words, environ);
        else
            execv(path, words);
        _exit(4);
    }
    wait_for(child);
}

int main(int argc, char **argv)
{
    if (argc < 2)
        return 2;
    if (strcmp(argv[1], "show") == 0)
        return show();
    char *words[] = {argv[0], (char *)"show", NULL}, command[4096];
    show();
    change(argv[1]);
    work();
    show();
    begin("fork", argv[0]);
    begin("vfork", argv[0]);
    is_changed_in_child = 1;
    begin("vfork", argv[0]);
    show(); // the child's alone
    begin("spawn", argv[0]);
    begin("number", argv[0]);
    snprintf(command, sizeof(command), "exec '%s' show", argv[0]);
    if (strcmp(argv[1], "blocked") != 0 && system(command) != 0) // shells unblock what they like
        return 5;
    execv(argv[0], words);
    return 6;
}
