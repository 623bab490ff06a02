// SPDX-License-Identifier: MIT
#include "top_rows.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "message.h"

enum { ROWS_MAX = 1 << 24 };

const char *const gp_top_orders[] = {
    [GP_TOP_CPU] = "cpu",
    [GP_TOP_READY] = "ready",
    [GP_TOP_PARKED] = "parked",
    [GP_TOP_LONGEST] = "longest",
};

static int top_rows_by_id(const void *a, const void *b)
{
    uint64_t one = ((const gp_top_row_t *)a)->now.id, other = ((const gp_top_row_t *)b)->now.id;
    return (one > other) - (one < other);
}

static bool top_rows_read_row(int fd, size_t i, gp_top_row_t *row)
{
    off_t at = (off_t)(i * sizeof(row->now));
    if (pread(fd, &row->now, sizeof(row->now), at) != (ssize_t)sizeof(row->now))
        return false;
    row->now.name[sizeof(row->now.name) - 1] = '\0';
    row->change = row->now;
    row->is_blocked = false;
    return true;
}

static int top_rows_read_rows(gp_top_t *top, int fd)
{
    struct stat status;
    uint64_t count = top->reply.rows;
    if (fd < 0 || count > ROWS_MAX || fstat(fd, &status) != 0 ||
        (uint64_t)status.st_size < count * sizeof(gp_control_row_t))
        return -EPROTO;
    top->rows = malloc((count + 1) * sizeof(*top->rows));
    if (top->rows == NULL)
        return -ENOMEM;
    while (top->count < count && top_rows_read_row(fd, top->count, &top->rows[top->count]))
        top->count++;
    qsort(top->rows, top->count, sizeof(*top->rows), top_rows_by_id);
    return top->count == count ? 0 : -EPROTO;
}

// Parts of a ledger that is read while the coroutine runs may go back by a little.
static uint64_t top_rows_less(uint64_t now, uint64_t before)
{
    return now > before ? now - before : 0;
}

static void top_rows_subtract(gp_top_row_t *row, const gp_control_row_t *before)
{
    gp_control_row_t *change = &row->change;
    change->cpu_ns = top_rows_less(change->cpu_ns, before->cpu_ns);
    change->blocked_ns = top_rows_less(change->blocked_ns, before->blocked_ns);
    change->slice_ns = top_rows_less(change->slice_ns, before->slice_ns);
    change->ready_ns = top_rows_less(change->ready_ns, before->ready_ns);
    change->parked_ns = top_rows_less(change->parked_ns, before->parked_ns);
    change->waiting_ns = top_rows_less(change->waiting_ns, before->waiting_ns);
    change->switches = top_rows_less(change->switches, before->switches);
}

// Both are in the order of ids here.
static void top_rows_compare(gp_top_t *top, const gp_top_t *before)
{
    size_t at = 0;
    top->interval_ns = top_rows_less(top->reply.now_ns, before->reply.now_ns);
    top->recorded_ns = top_rows_less(top->interval_ns, top_rows_less(top->reply.counters[GP_COUNTER_REST_NS],
                                                                     before->reply.counters[GP_COUNTER_REST_NS]));
    top->process_cpu_ns = top_rows_less(top->reply.process_cpu_ns, before->reply.process_cpu_ns);
    top->own_cpu_ns = top_rows_less(top->reply.own_cpu_ns, before->reply.own_cpu_ns);
    for (size_t i = 0; i < top->count; i++) {
        gp_top_row_t *row = &top->rows[i];
        while (at < before->count && before->rows[at].now.id < row->now.id)
            at++;
        if (at < before->count && before->rows[at].now.id == row->now.id)
            top_rows_subtract(row, &before->rows[at].now);
        row->is_blocked = row->now.state == GP_CONTROL_ROW_RUNNING && row->change.cpu_ns < top->interval_ns / 1000;
    }
}

int gp_top_take(gp_top_t *top, pid_t pid, const char *subject, const gp_top_t *before, uint32_t lease_ms)
{
    gp_control_request_t request = gp_control_request(GP_CONTROL_TOP);
    int fd = -1;
    memset(top, 0, sizeof(*top));
    request.lease_ms = lease_ms;
    int status = gp_control_ask(pid, subject, &request, &top->reply, &fd);
    if (status != 0)
        return status;
    int error = top->reply.error;
    if (error == 0)
        error = top->reply.error = top_rows_read_rows(top, fd);
    if (fd >= 0)
        close(fd);
    if (error != 0) {
        gp_top_free(top);
        return gp_control_refused(subject, &request, &top->reply);
    }
    if (before != NULL) {
        gp_top_t earlier = *before;
        qsort(earlier.rows, earlier.count, sizeof(*earlier.rows), top_rows_by_id);
        top_rows_compare(top, &earlier);
    }
    return 0;
}

static gp_top_order_t order_asked;

static uint64_t top_rows_key(const gp_top_row_t *row)
{
    switch (order_asked) {
    case GP_TOP_READY:
        return row->change.ready_ns;
    case GP_TOP_PARKED:
        return row->change.parked_ns + row->change.waiting_ns;
    case GP_TOP_LONGEST:
        return row->now.longest_ns;
    default:
        return row->change.cpu_ns;
    }
}

static int top_rows_by_key(const void *a, const void *b)
{
    uint64_t one = top_rows_key(a), other = top_rows_key(b);
    return one != other ? (one < other) - (one > other) : top_rows_by_id(a, b);
}

void gp_top_sort(gp_top_t *top, gp_top_order_t order)
{
    order_asked = order;
    qsort(top->rows, top->count, sizeof(*top->rows), top_rows_by_key);
}

void gp_top_free(gp_top_t *top)
{
    free(top->rows);
    top->rows = NULL;
    top->count = 0;
}
