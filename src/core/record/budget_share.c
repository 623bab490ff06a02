// SPDX-License-Identifier: MIT
#include "record/budget_share.h"

#include <fcntl.h>
#include <stdatomic.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "collect/cost.h"
#include "record/census_service.h"
#include "signal/ticks.h"

#define MAGIC   0x32544744554250ull // of this layout, and of how a signal is priced
#define HOUR_NS 3600000000000ull

typedef struct head {
    uint64_t magic;
    struct {
        uint64_t ns, when_ns; // CLOCK_MONOTONIC
    } delivery[3];            // by engine
    uint64_t reserved;
} head_t;

typedef struct row {
    uint64_t owner; // 0 = free
    uint64_t when_ns, base, cost, may, is_at_least;
    uint64_t reserved[2];
} row_t;
_Static_assert(sizeof(head_t) == sizeof(row_t), "a table of rows");

static _Atomic unsigned count;
static uint64_t owner;
static unsigned mine; // row
static row_t rows[64];

unsigned gp_budget_share_count(void)
{
    return atomic_load_explicit(&count, memory_order_relaxed);
}

// Locked; -1 = it cannot be had at once.
static int budget_share_open_file(void)
{
    struct stat status;
    int directory = gp_census_service_place();
    if (directory < 0)
        return -1;
    int fd = gp_descriptor_open(directory, "budget", O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK, 0600);
    close(directory);
    if (fd >= 0 && (fstat(fd, &status) != 0 || !S_ISREG(status.st_mode) || flock(fd, LOCK_EX | LOCK_NB) != 0)) {
        close(fd);
        return -1;
    }
    return fd;
}

static bool budget_share_read_head(int fd, head_t *head)
{
    if (pread(fd, head, sizeof(*head), 0) == (ssize_t)sizeof(*head) && head->magic == MAGIC)
        return true;
    *head = (head_t){.magic = MAGIC};
    return false;
}

static off_t budget_share_place_of(unsigned row)
{
    return (off_t)(sizeof(head_t) + row * sizeof(row_t));
}

static bool budget_share_is_live(const row_t *row, uint64_t now_ns)
{
    return row->owner != 0 && row->when_ns <= now_ns && now_ns - row->when_ns < GP_BUDGET_SHARE_STALE_MS * 1000000ull;
}

typedef struct sums {
    unsigned live;
    unsigned free, end;     // the first free row, and that behind the last
    bool is_there;          // the row of this process
    uint64_t too_much, may; // excess of the others at their lowest rate; shares of those with means left
} sums_t;

static void budget_share_add(sums_t *sums, const row_t *row, unsigned number, uint64_t now_ns)
{
    sums->end = number + 1;
    if (row->owner == owner) {
        sums->is_there = true;
        mine = number;
        return;
    }
    if (!budget_share_is_live(row, now_ns)) {
        sums->free = sums->free < number ? sums->free : number;
        return;
    }
    sums->live++;
    if (!row->is_at_least)
        sums->may += row->may;
    else if (row->cost > row->may)
        sums->too_much += row->cost - row->may;
}

static sums_t budget_share_read_rows(int fd, uint64_t now_ns)
{
    sums_t sums = {.free = GP_BUDGET_SHARE_ROWS};
    ssize_t got = sizeof(rows);
    for (unsigned at = 0; at < GP_BUDGET_SHARE_ROWS && got == (ssize_t)sizeof(rows);
         at += sizeof(rows) / sizeof(rows[0])) {
        got = pread(fd, rows, sizeof(rows), budget_share_place_of(at));
        for (unsigned i = 0; got > 0 && i < (size_t)got / sizeof(row_t); i++)
            budget_share_add(&sums, &rows[i], at + i, now_ns);
    }
    return sums;
}

static void budget_share_write_row(int fd, const sums_t *sums, const gp_budget_part_t *part, uint64_t now_ns)
{
    row_t row = {owner, now_ns, part->base, part->cost, part->may, part->is_at_least, {0}};
    if (!sums->is_there)
        mine = sums->free < GP_BUDGET_SHARE_ROWS ? sums->free : sums->end;
    if (mine < GP_BUDGET_SHARE_ROWS &&
        pwrite(fd, &row, sizeof(row), budget_share_place_of(mine)) != (ssize_t)sizeof(row))
        return; // a full disk: the others do not know of this process
}

static void budget_share_write_head(int fd, enum gp_engine engine, uint64_t now_ns)
{
    head_t head;
    bool is_there = budget_share_read_head(fd, &head);
    if (engine < GP_ENGINE_PERF || engine > GP_ENGINE_MONOTONIC)
        return;
    uint64_t known = head.delivery[engine - 1].ns, age = now_ns - head.delivery[engine - 1].when_ns;
    if (is_there && (known == gp_cost_delivery_ns() || (known != 0 && age < HOUR_NS)))
        return;
    head.delivery[engine - 1].ns = gp_cost_delivery_ns();
    head.delivery[engine - 1].when_ns = now_ns;
    if (pwrite(fd, &head, sizeof(head), 0) != (ssize_t)sizeof(head))
        return; // each measures by itself
}

uint64_t gp_budget_share(const gp_budget_part_t *part, uint64_t now_ns, enum gp_engine engine)
{
    static pid_t pid;
    int fd = budget_share_open_file();
    if (fd < 0)
        return part->may;
    if (pid != getpid()) // a forked child has a row of its own
        owner = (uint64_t)getpid() << 40 ^ gp_ticks();
    pid = getpid();
    budget_share_write_head(fd, engine, now_ns);
    sums_t sums = budget_share_read_rows(fd, now_ns);
    budget_share_write_row(fd, &sums, part, now_ns);
    close(fd); // and the lock with it
    atomic_store_explicit(&count, sums.live + 1, memory_order_relaxed);
    if (part->is_at_least || sums.too_much == 0 || part->may == 0)
        return part->may;
    uint64_t less = (uint64_t)((double)sums.too_much * (double)part->may / (double)(sums.may + part->may));
    return less < part->may ? part->may - less : 0;
}

void gp_budget_share_tell_delivery(enum gp_engine engine)
{
    int fd = budget_share_open_file();
    if (fd < 0)
        return;
    budget_share_write_head(fd, engine, gp_clock_ns(CLOCK_MONOTONIC));
    close(fd);
}

uint64_t gp_budget_share_delivery(enum gp_engine engine)
{
    head_t head;
    uint64_t now_ns = gp_clock_ns(CLOCK_MONOTONIC);
    int fd = budget_share_open_file();
    if (fd < 0)
        return 0;
    bool is_known = budget_share_read_head(fd, &head) && engine >= GP_ENGINE_PERF && engine <= GP_ENGINE_MONOTONIC &&
                    head.delivery[engine - 1].when_ns <= now_ns && now_ns - head.delivery[engine - 1].when_ns < HOUR_NS;
    close(fd);
    return is_known ? head.delivery[engine - 1].ns : 0;
}
