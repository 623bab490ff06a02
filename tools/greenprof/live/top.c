// SPDX-License-Identifier: MIT
// greenprof top: what the coroutines of a running process do, now.
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "command.h"
#include "control.h"
#include "message.h"
#include "screen.h"
#include "top_print.h"

enum { GRACE_MS = 3000, LINES_BELOW = 1 };

static gp_top_order_t top_find_order(const char *name)
{
    gp_top_order_t order = GP_TOP_CPU;
    while (name != NULL && order < GP_TOP_ORDERS && strcmp(name, gp_top_orders[order]) != 0)
        order++;
    return order < GP_TOP_ORDERS ? order : GP_TOP_CPU;
}

static void top_show(const gp_arguments_t *arguments, gp_top_t *top, gp_top_order_t order, bool is_screen, pid_t pid)
{
    size_t lines = 0, columns = 0, rows = arguments->rows;
    gp_top_sort(top, order);
    if (arguments->json) {
        gp_top_print_json(top, pid, rows);
        return;
    }
    if (is_screen) {
        gp_screen_size(&lines, &columns);
        size_t fit = lines > GP_TOP_HEAD_LINES + LINES_BELOW ? lines - GP_TOP_HEAD_LINES - LINES_BELOW : 1;
        rows = rows == 0 || rows > fit ? fit : rows;
        gp_screen_page_begin();
    }
    gp_top_print(top, arguments->operands[0], order, rows, columns, is_screen ? gp_screen_line_end : "");
    if (is_screen)
        gp_screen_page_end();
    else
        printf("\n");
}

static uint64_t top_now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void top_pause_ms(uint64_t ms)
{
    struct timespec left = {.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&left, &left) != 0 && errno == EINTR)
        ;
}

// Wait for the next page; keys change the order meanwhile. Returns whether there is to be one.
static bool top_wait_for_next(const gp_arguments_t *arguments, gp_top_t *top, gp_top_order_t *order, bool is_screen,
                              pid_t pid)
{
    static const char keys[] = "crpl"; // in the order of gp_top_order_t
    uint64_t end = top_now_ms() + arguments->interval_ms, now;
    if (!is_screen)
        top_pause_ms(arguments->interval_ms);
    while (is_screen && (now = top_now_ms()) < end) {
        int key = gp_screen_key((int)(end - now));
        const char *found = key != 0 ? strchr(keys, key) : NULL;
        if (key == 'q' || key == 3)
            return false;
        if (found != NULL)
            *order = (gp_top_order_t)(found - keys);
        if (top->interval_ns != 0)
            top_show(arguments, top, *order, true, pid);
    }
    return true;
}

static int top_show_all(const gp_arguments_t *arguments, pid_t pid, bool is_screen)
{
    gp_top_order_t order = top_find_order(arguments->order);
    uint32_t lease_ms = (uint32_t)(arguments->interval_ms * 2 + GRACE_MS);
    gp_top_t last, next;
    int status = gp_top_take(&last, pid, arguments->operands[0], NULL, lease_ms);
    if (status != 0)
        return status;
    while (status == 0 && top_wait_for_next(arguments, &last, &order, is_screen, pid)) {
        status = gp_top_take(&next, pid, arguments->operands[0], &last, arguments->once ? 0 : lease_ms);
        if (status != 0)
            break;
        gp_top_free(&last);
        last = next;
        top_show(arguments, &last, order, is_screen, pid);
        if (arguments->once)
            break;
        status = is_screen ? 0 : gp_finish_stdout();
    }
    gp_top_free(&last);
    return status;
}

int gp_command_top(const gp_arguments_t *arguments)
{
    pid_t pid;
    int status = gp_control_parse_pid(arguments, &pid);
    if (status != 0)
        return status;
    bool is_screen = !arguments->once && !arguments->json && gp_screen_open();
    status = top_show_all(arguments, pid, is_screen);
    if (is_screen)
        gp_screen_close();
    return status != 0 ? status : gp_finish_stdout();
}
