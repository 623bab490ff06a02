// SPDX-License-Identifier: MIT
// The endpoints that wait for the upstream: /proxy, and /mixed, which meanwhile computes.
#include "handlers.h"

#include "respond.h"
#include "upstream.h"

#include <stdlib.h>

enum {
    WAREHOUSES = 12,
    DAYS = 365,
    RESAMPLES = 3000,
};

static json_t *sum_up_warehouses(const json_t *stock)
{
    double values[WAREHOUSES] = {0};
    size_t index;
    json_t *item;
    json_array_foreach(json_object_get(stock, "items"), index, item)
    {
        json_int_t warehouse = json_integer_value(json_object_get(item, "warehouse"));
        json_int_t pieces = json_integer_value(json_object_get(item, "pieces"));
        if (warehouse >= 0 && warehouse < WAREHOUSES)
            values[warehouse] += (double)pieces * json_number_value(json_object_get(item, "price"));
    }
    json_t *sums = json_array();
    for (size_t i = 0; i < WAREHOUSES; i++)
        json_array_append_new(sums, json_real(values[i]));
    return sums;
}

void handle_proxy(exchange_t *exchange)
{
    json_t *stock = NULL;
    int status = upstream_fetch_stock(exchange, &stock);
    if (status != 0) {
        respond_error(exchange, status, "the upstream did not answer");
        return;
    }
    json_t *sums = sum_up_warehouses(stock);
    respond_json(exchange, json_pack("{s:o, s:o}", "warehouses", sums, "stock", stock));
}

static int compare_doubles(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double resample_mean(const double sales[DAYS], uint32_t *random)
{
    double sum = 0;
    for (int i = 0; i < DAYS; i++) {
        *random = *random * 1664525u + 1013904223u;
        sum += sales[(*random >> 8) % DAYS];
    }
    return sum / DAYS;
}

// Bootstrap: the means of many resamples, sorted, give the interval in which the mean lies with 90 %.
static json_t *forecast_demand(void)
{
    double sales[DAYS];
    double means[RESAMPLES];
    uint32_t random = 1;
    for (int i = 0; i < DAYS; i++)
        sales[i] = 100 + i % 7 * 12 + i % 30;
    for (int i = 0; i < RESAMPLES; i++) {
        means[i] = resample_mean(sales, &random);
        loop_yield_if_due();
    }
    qsort(means, RESAMPLES, sizeof means[0], compare_doubles);
    return json_pack("{s:f, s:f, s:f}", "low", means[RESAMPLES / 20], "median", means[RESAMPLES / 2], "high",
                     means[RESAMPLES - RESAMPLES / 20]);
}

// One request's two children work on this.
typedef struct scatter {
    const exchange_t *exchange;
    int status; // of the upstream's
    json_t *stock;
    json_t *forecast;
} scatter_t;

static void scatter_upstream(void *arg)
{
    scatter_t *scatter = arg;
    scatter->status = upstream_fetch_stock(scatter->exchange, &scatter->stock);
}

static void scatter_forecast(void *arg)
{
    scatter_t *scatter = arg;
    scatter->forecast = forecast_demand();
}

void handle_mixed(exchange_t *exchange)
{
    scatter_t scatter = {.exchange = exchange, .status = 503};
    join_t join = {0};
    join_child_t children[2];
    int rc = join_spawn(&join, &children[0], scatter_upstream, &scatter);
    if (rc == 0)
        rc = join_spawn(&join, &children[1], scatter_forecast, &scatter);
    join_wait(&join);
    if (rc == 0 && scatter.status == 0)
        respond_json(exchange, json_pack("{s:O, s:o}", "forecast", scatter.forecast, "warehouses",
                                         sum_up_warehouses(scatter.stock)));
    else
        respond_error(exchange, rc == 0 ? scatter.status : 503, "the upstream did not answer");
    json_decref(scatter.forecast);
    json_decref(scatter.stock);
}
