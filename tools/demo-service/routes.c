// SPDX-License-Identifier: MIT
#include "handlers.h"

const route_t client_routes[] = {
    {"/health", handle_health}, {"/report", handle_report}, {"/search", handle_search},
    {"/proxy", handle_proxy},   {"/mixed", handle_mixed},   {NULL, NULL},
};

const route_t upstream_routes[] = {
    {"/stock", handle_stock},
    {NULL, NULL},
};
