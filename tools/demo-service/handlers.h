// SPDX-License-Identifier: MIT
// One function an endpoint; the routes are listed in routes.c.
#pragma once

#include "service.h"

void handle_health(exchange_t *exchange); // /health
void handle_report(exchange_t *exchange); // /report[?by=COLUMN]: orders, summed up
void handle_search(exchange_t *exchange); // /search?q=TEXT: orders with this text in their note
void handle_proxy(exchange_t *exchange);  // /proxy[?delay=MS]: asks the slow upstream for its stock,
                                          // and sums it up
void handle_mixed(exchange_t *exchange);  // /mixed[?delay=MS]: upstream and a forecast at the same time
void handle_stock(exchange_t *exchange);  // the upstream's own: /stock[?delay=MS]
