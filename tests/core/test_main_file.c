// SPDX-License-Identifier: MIT
// Which file the program is, however it was started and whatever became of its path.
#define _GNU_SOURCE
#include "base/main_file.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cmocka_all.h"

enum { SAID = 2 * GP_MAIN_FILE_SIZE };

static char own[GP_MAIN_FILE_SIZE];

// The child's part: the path, and which file is opened by what it is told.
static int say(int fd)
{
    char path[GP_MAIN_FILE_SIZE];
    struct stat status = {0};
    int file = open(gp_main_file(path), O_RDONLY | O_CLOEXEC);
    fstat(file, &status);
    return dprintf(fd, "%lu %s", (unsigned long)status.st_ino, path) < 0;
}

// Run argv, or the file `program` by its descriptor, and have what it says.
static void ask(char *argv[], int program, const char *removed, char said[SAID])
{
    int ends[2], status;
    char number[16];
    assert_int_equal(pipe2(ends, 0), 0);
    snprintf(number, sizeof(number), "%d", ends[1]);
    setenv("SAY_TO", number, 1);
    pid_t child = fork();
    if (child == 0) {
        if (removed != NULL)
            setenv("REMOVE", removed, 1);
        if (program >= 0)
            fexecve(program, argv, environ);
        execv(argv[0], argv);
        _exit(127);
    }
    close(ends[1]);
    ssize_t len = read(ends[0], said, SAID - 1);
    said[len > 0 ? len : 0] = '\0';
    close(ends[0]);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
}

static void check(const char *said, ino_t inode, const char *path)
{
    char expected[SAID];
    snprintf(expected, sizeof(expected), "%lu %s", (unsigned long)inode, path);
    assert_string_equal(said, expected);
}

static ino_t copy_to(int fd)
{
    struct stat status;
    int from = open(own, O_RDONLY | O_CLOEXEC);
    assert_int_equal(fstat(from, &status), 0);
    for (off_t at = 0; at < status.st_size;)
        assert_true(sendfile(fd, from, &at, (size_t)(status.st_size - at)) > 0);
    close(from);
    assert_int_equal(fstat(fd, &status), 0);
    return status.st_ino;
}

static void as_programs_are_started(void **state)
{
    char said[SAID], *argv[] = {own, NULL};
    struct stat status;
    (void)state;
    assert_int_equal(stat(own, &status), 0);
    ask(argv, -1, NULL, said);
    check(said, status.st_ino, own);
}

static void by_the_loader(void **state)
{
    char said[SAID], loader[GP_MAIN_FILE_SIZE], library_path[] = "--library-path", library[] = "/lib";
    char *plain[] = {loader, own, NULL}, *with_options[] = {loader, library_path, library, own, NULL};
    struct stat status;
    (void)state;
    gp_mapped_file(getauxval(AT_BASE), loader);
    if (loader[0] == '\0')
        skip();
    assert_int_equal(stat(own, &status), 0);
    ask(plain, -1, NULL, said);
    check(said, status.st_ino, own);
    ask(with_options, -1, NULL, said);
    check(said, status.st_ino, own);
}

static void one_that_is_removed(void **state)
{
    char said[SAID], path[] = "/tmp/test_main_file.XXXXXX", *argv[] = {path, NULL};
    (void)state;
    int fd = mkstemp(path);
    ino_t inode = copy_to(fd);
    fchmod(fd, 0700);
    close(fd);
    ask(argv, -1, path, said);
    check(said, inode, path);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void one_in_memory(void **state)
{
    char said[SAID], *argv[] = {own, NULL};
    (void)state;
    int fd = memfd_create("in_memory", MFD_CLOEXEC);
    ino_t inode = copy_to(fd);
    ask(argv, fd, NULL, said);
    check(said, inode, "/memfd:in_memory");
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_programs_are_started),
        cmocka_unit_test(by_the_loader),
        cmocka_unit_test(one_that_is_removed),
        cmocka_unit_test(one_in_memory),
    };
    const char *fd = getenv("SAY_TO"), *removed = getenv("REMOVE");
    if (removed != NULL)
        unlink(removed);
    if (fd != NULL)
        return say(atoi(fd));
    gp_main_file(own);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
