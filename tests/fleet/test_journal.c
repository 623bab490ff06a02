// SPDX-License-Identifier: MIT
// The journal of `greenprof ship`: what has arrived stays known, whatever the clock says; what is no journal is an
// error.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "../core/cmocka_all.h"
#include "ship/follow/journal.h"

enum { DAY = 86400, PLACE = 7, TURNS = 4000 };

static time_t now = 1800000000;
static char folder[] = "/tmp/greenprof-journal-XXXXXX";

time_t __wrap_time(time_t *out);
int __wrap_fdatasync(int fd);

time_t __wrap_time(time_t *out)
{
    if (out != NULL)
        *out = now;
    return now;
}

int __wrap_fdatasync(int fd)
{
    (void)fd;
    return 0;
}

static gp_journal_t *open_journal(void)
{
    gp_journal_t *journal;
    char error[GP_FLEET_ERROR_SIZE];
    assert_int_equal(gp_journal_open(&journal, folder, error), 0);
    return journal;
}

static void arrive(gp_journal_t *journal, uint64_t capture, uint64_t to)
{
    const gp_journal_piece_t piece = {.capture = capture, .to = to};
    assert_int_equal(gp_journal_begin(journal, PLACE, &piece, 1), 0);
    assert_int_equal(gp_journal_end(journal, PLACE), 0);
}

// So much that the file is written anew.
static void go_on(uint64_t capture)
{
    gp_journal_t *journal = open_journal();
    for (uint64_t to = 1; to <= TURNS; to++)
        arrive(journal, capture, to);
    gp_journal_close(journal);
}

static void what_has_arrived_stays_known(void **state)
{
    static const int days[] = {1, 100, 400, 27000, 1}; // the clock is ahead once, and behind
    (void)state;
    gp_journal_t *journal = open_journal();
    arrive(journal, 1, 1000);
    gp_journal_close(journal);
    for (size_t i = 0; i < sizeof(days) / sizeof(days[0]); i++) {
        now = 1800000000 + (time_t)days[i] * DAY;
        go_on(2);
        go_on(3);
        journal = open_journal();
        assert_int_equal(gp_journal_arrived(journal, PLACE, 1), 1000);
        gp_journal_close(journal);
    }
}

// Where there is no room for all of them, the store is asked for what was begun before.
static void what_is_forgotten_is_asked_for(void **state)
{
    (void)state;
    static gp_journal_piece_t pieces[GP_JOURNAL_GROUP_MAX];
    now = 1900000000;
    gp_journal_t *journal = open_journal();
    uint64_t capture = 100;
    for (uint64_t groups = 0; groups * GP_JOURNAL_GROUP_MAX < 2 * GP_JOURNAL_CAPTURES; groups++, now++) {
        for (size_t i = 0; i < GP_JOURNAL_GROUP_MAX; i++)
            pieces[i] = (gp_journal_piece_t){.capture = capture++, .to = 5};
        assert_int_equal(gp_journal_arrived(journal, PLACE, 1), 1000); // is looked at
        assert_int_equal(gp_journal_begin(journal, PLACE, pieces, GP_JOURNAL_GROUP_MAX), 0);
        assert_int_equal(gp_journal_end(journal, PLACE), 0);
    }
    assert_int_equal(gp_journal_arrived(journal, PLACE, capture - 1), 5);
    assert_int_equal(gp_journal_arrived(journal, PLACE, 100), 0);
    assert_true(gp_journal_since_s(journal) > 1900000000);
    gp_journal_close(journal);
}

static int open_with(const char *text, off_t size)
{
    char path[64], error[GP_FLEET_ERROR_SIZE];
    gp_journal_t *journal;
    snprintf(path, sizeof(path), "%s/ship.journal", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    assert_int_equal(ftruncate(fd, size > 0 ? size : (off_t)strlen(text)), 0);
    close(fd);
    int result = gp_journal_open(&journal, folder, error);
    gp_journal_close(journal);
    return result;
}

static void hostile_ones_end(void **state)
{
    char path[64];
    (void)state;
    assert_int_equal(open_with("no journal\n\n\n", 0), 0); // it begins anew
    assert_int_equal(open_with("", (off_t)1 << 40), -EFBIG);
    assert_int_equal(open_with("0000000000000000 B 1 99999999999999999999\n", 0), 0);
    snprintf(path, sizeof(path), "%s/ship.journal", folder);
    unlink(path);
    assert_int_equal(symlink("/dev/zero", path), 0);
    gp_journal_t *journal;
    char error[GP_FLEET_ERROR_SIZE];
    assert_int_equal(gp_journal_open(&journal, folder, error), -ELOOP);
    unlink(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(gp_journal_open(&journal, folder, error), -EFBIG);
}

static int make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) != NULL ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[64];
    (void)state;
    snprintf(command, sizeof(command), "rm -r %s", folder);
    return system(command);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_has_arrived_stays_known),
        cmocka_unit_test(what_is_forgotten_is_asked_for),
        cmocka_unit_test(hostile_ones_end),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
