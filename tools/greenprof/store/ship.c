// SPDX-License-Identifier: MIT
// greenprof ship: captures into stores of many hosts.
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/number.h"
#include "command.h"
#include "message.h"
#include "ship/follow/shipper.h"
#include "slow.h"

static gp_ship_state_t shipping;

static void ship_on_stop(int number)
{
    (void)number;
    atomic_store_explicit(&shipping.order, GP_SHIP_STOP, memory_order_release);
    atomic_fetch_add_explicit(&shipping.bell, 1, memory_order_release);
}

// "10s", "500ms", "1m", "1h".
static bool ship_read_time(const char *text, uint64_t *ns)
{
    static const struct {
        const char *unit;
        uint64_t ns;
    } units[] = {{"ms", 1000000}, {"s", 1000000000}, {"m", 60000000000}, {"h", 3600000000000}};
    const char *unit;
    double value = gp_number_read(text, &unit);
    for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++) {
        if (strcmp(unit, units[i].unit) != 0 || unit == text || !(value > 0) || value > 86400)
            continue;
        *ns = (uint64_t)(value * (double)units[i].ns + 0.5);
        return *ns >= 1000000;
    }
    return false;
}

static const char *ship_state_folder(const char *given, char path[PATH_MAX])
{
    const char *state = getenv("XDG_STATE_HOME"), *home = getenv("HOME");
    if (given != NULL)
        return given;
    if (state != NULL && state[0] == '/')
        snprintf(path, PATH_MAX, "%s/greenprof", state);
    else if (home != NULL && home[0] == '/')
        snprintf(path, PATH_MAX, "%s/.local/state/greenprof", home);
    else
        return NULL;
    return path;
}

static void ship_stop_on_signals(void)
{
    struct sigaction action = {.sa_handler = ship_on_stop};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
}

int gp_command_ship(const gp_arguments_t *arguments)
{
    char path[PATH_MAX];
    gp_ship_options_t options = {
        .paths = (const char *const *)arguments->operands,
        .path_count = (size_t)arguments->operand_count,
        .urls = arguments->to.items,
        .url_count = arguments->to.count,
        .state = ship_state_folder(arguments->state, path),
        .grain_ns = UINT64_C(10000000000),
        .rows_per_s = arguments->rate,
        .bytes_per_s = arguments->bytes_per_second,
        .once = arguments->once,
        .dry_run = arguments->dry_run,
        .no_traces = arguments->no_traces,
        .with_info = arguments->with_info,
        .out = stdout,
        .say = gp_warn,
        .coroutines = gp_slow_coroutines,
        .state_now = &shipping,
    };
    if (arguments->to.count == 0)
        return gp_usage_error("ship", "missing --to");
    if (arguments->grain != NULL &&
        (!ship_read_time(arguments->grain, &options.grain_ns) || options.grain_ns % 1000000000 != 0))
        return gp_usage_error("ship", "--grain '%s' is no time of whole seconds, as 10s or 1m", arguments->grain);
    options.interval_ns = options.grain_ns;
    if (arguments->interval != NULL && !ship_read_time(arguments->interval, &options.interval_ns))
        return gp_usage_error("ship", "--interval '%s' is no time, as 500ms, 10s or 1m", arguments->interval);
    if (options.state == NULL && !options.dry_run)
        return gp_usage_error("ship", "missing --state: there is no $HOME");
    ship_stop_on_signals();
    int status = gp_ship(&options);
    return status == 0 && options.dry_run ? gp_finish_stdout() : status == GP_SHIP_BUSY ? 1 : status;
}
