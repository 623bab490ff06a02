// SPDX-License-Identifier: MIT
// Open requests of an nginx worker, by the address of their ngx_http_request_t.
//
// Threads: the worker's one thread that has requests. Signals: not safe.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "greenprof/trace.h"
#include "signal/coro_record.h"

typedef struct gp_nginx_request {
    struct gp_nginx_request *next; // of its bucket, or of the free ones
    struct gp_nginx_request *subs; // of a main request: its sub-requests, by `sibling`
    struct gp_nginx_request *sibling;
    uintptr_t address;
    prof_coro_t *coro; // on which nginx works for it
    uint64_t id;
    prof_span_t *span; // NULL: it is over
    unsigned entered;  // calls for it, one within another
    bool is_sub, is_named;
    bool is_gone; // nginx has freed it
} gp_nginx_request_t;

// NULL: it is not open.
gp_nginx_request_t *gp_nginx_find(uintptr_t address);

// Add one that is not there. NULL: there is no memory.
gp_nginx_request_t *gp_nginx_add(uintptr_t address);

// Take one out; it can be read until it is given back.
void gp_nginx_take_out(gp_nginx_request_t *request);
void gp_nginx_give_back(gp_nginx_request_t *request);
