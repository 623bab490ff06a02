// SPDX-License-Identifier: MIT
// Output files: whole or not at all.
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "example_report.h"
#include "export/output.h"

static int enter_directory(void **state)
{
    char *path = strdup("/tmp/greenprof-output-XXXXXX");
    *state = path;
    return mkdtemp(path) != NULL && chdir(path) == 0 ? 0 : -1;
}

static int count_entries(void)
{
    DIR *directory = opendir(".");
    int count = -2; // . and ..
    while (readdir(directory) != NULL)
        count++;
    closedir(directory);
    return count;
}

static int leave_directory(void **state)
{
    DIR *directory = opendir(".");
    struct dirent *entry;
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.' || strlen(entry->d_name) > 2)
            unlink(entry->d_name);
    closedir(directory);
    rmdir(*state);
    free(*state);
    return chdir("/");
}

static void put(const char *path, const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static void expect_content(const char *path, const char *text)
{
    char content[64] = "";
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    content[fread(content, 1, sizeof(content) - 1, file)] = '\0';
    fclose(file);
    assert_string_equal(content, text);
}

static int write_text(const char *path, const char *text)
{
    gp_output_t output;
    int result = gp_output_open(&output, path);
    if (result < 0)
        return result;
    fputs(text, output.file);
    return gp_output_commit(&output);
}

static void test_appears_at_commit(void **state)
{
    (void)state;
    gp_output_t output;
    assert_int_equal(gp_output_open(&output, "out"), 0);
    fputs("new", output.file);
    fflush(output.file);
    assert_int_equal(access("out", F_OK), -1);
    assert_int_equal(gp_output_commit(&output), 0);
    expect_content("out", "new");
    assert_int_equal(count_entries(), 1);
}

static void test_abort_leaves_the_old(void **state)
{
    (void)state;
    gp_output_t output;
    put("out", "old");
    assert_int_equal(gp_output_open(&output, "out"), 0);
    fputs("new", output.file);
    gp_output_abort(&output);
    expect_content("out", "old");
    assert_int_equal(count_entries(), 1);
}

// A process that ends amid a dump, whichever way.
static void test_end_leaves_nothing(void **state)
{
    (void)state;
    gp_output_t output;
    int status, fd = open(".", O_TMPFILE | O_WRONLY, 0600);
    if (fd < 0)
        skip();
    close(fd);
    pid_t pid = fork();
    if (pid == 0) {
        if (gp_output_open(&output, "out") == 0 && fputs("half", output.file) >= 0 && fflush(output.file) == 0)
            _exit(7);
        _exit(1);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 7);
    assert_int_equal(count_entries(), 0);
}

static void test_keeps_mode_and_link(void **state)
{
    (void)state;
    struct stat status;
    put("target", "old");
    chmod("target", 0640);
    assert_int_equal(symlink("target", "link"), 0);
    assert_int_equal(write_text("link", "new"), 0);
    expect_content("target", "new");
    assert_int_equal(lstat("link", &status), 0);
    assert_true(S_ISLNK(status.st_mode));
    assert_int_equal(stat("target", &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
}

static void test_errors(void **state)
{
    (void)state;
    char name[300];
    assert_int_equal(write_text(".", "x"), -EISDIR);
    assert_int_equal(write_text("missing/out", "x"), -ENOENT);
    assert_int_equal(write_text("", "x"), -ENOENT);
    put("file", "x");
    assert_int_equal(write_text("file/out", "x"), -ENOTDIR);
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(write_text(name, "x"), -ENAMETOOLONG);
    assert_int_equal(write_text("/dev/full", "x"), -ENOSPC);
    char *more = calloc(1, 1000001); // than the stream's buffer: it has failed before the end
    assert_int_equal(write_text("/dev/full", memset(more, 'x', 1000000)), -ENOSPC);
    free(more);
    assert_int_equal(write_text("/dev/null", "x"), 0);
    assert_int_equal(count_entries(), 1);
    if (geteuid() != 0) {
        chmod(".", 0500);
        assert_int_equal(write_text("out", "x"), -EACCES);
        chmod(".", 0700);
    }
}

// A name of 255 bytes leaves no room for a longer temporary one.
static void test_longest_name(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'n', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    assert_int_equal(write_text(name, "x"), 0);
    expect_content(name, "x");
}

static int fail_to_write(const gp_report_t *report, FILE *out)
{
    (void)report;
    fputs("half", out);
    return -ENOMEM;
}

static void test_failed_exporter_leaves_nothing(void **state)
{
    (void)state;
    const gp_exporter_t exporter = {.name = "failing", .write = fail_to_write};
    assert_int_equal(gp_output_write(&exporter, &example_report, "out"), -ENOMEM);
    assert_int_equal(count_entries(), 0);
    assert_int_equal(gp_output_write(gp_exporter_find("folded"), &example_report, "out"), 0);
    assert_int_equal(count_entries(), 1);
    assert_int_equal(gp_output_write(gp_exporter_find("folded"), &example_report, "/dev/full"), -ENOSPC);
}

// Standard output stays open, and a closed one is an error.
static void test_stdout(void **state)
{
    (void)state;
    int saved = dup(STDOUT_FILENO), fd = open("captured", O_WRONLY | O_CREAT, 0600);
    fflush(stdout);
    dup2(fd, STDOUT_FILENO);
    int result = write_text("-", "to stdout");
    int still_open = fcntl(STDOUT_FILENO, F_GETFD);
    close(STDOUT_FILENO);
    int closed = write_text("-", "nowhere");
    dup2(saved, STDOUT_FILENO);
    close(saved);
    close(fd);
    assert_int_equal(result, 0);
    assert_true(still_open >= 0);
    assert_int_equal(closed, -EBADF);
    expect_content("captured", "to stdout");
}

static void test_table(void **state)
{
    (void)state;
    unsigned count = 0;
    for (const gp_exporter_t *exporter = gp_exporter_table(); exporter->name; exporter++, count++) {
        assert_ptr_equal(gp_exporter_find(exporter->name)->write, exporter->write);
        assert_true(exporter->suffix[0] == '.' && exporter->what[0] != '\0');
    }
    assert_true(count >= 3);
    assert_null(gp_exporter_find(""));
    assert_null(gp_exporter_find("pstat"));
    assert_null(gp_exporter_find("pstatsx"));
    assert_null(gp_exporter_find("FOLDED"));
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, enter_directory, leave_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(test_appears_at_commit),
        IN_DIRECTORY(test_abort_leaves_the_old),
        IN_DIRECTORY(test_end_leaves_nothing),
        IN_DIRECTORY(test_keeps_mode_and_link),
        IN_DIRECTORY(test_errors),
        IN_DIRECTORY(test_longest_name),
        IN_DIRECTORY(test_failed_exporter_leaves_nothing),
        IN_DIRECTORY(test_stdout),
        cmocka_unit_test(test_table),
    };
    return cmocka_run_group_tests_name("output", tests, NULL, NULL);
}
