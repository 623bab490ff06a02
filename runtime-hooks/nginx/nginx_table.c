// SPDX-License-Identifier: MIT
#include "nginx/nginx_table.h"

#include <stddef.h>

#include "base/index.h"
#include "coro/helper_memory.h"

enum { BUCKETS_LOG2 = 12, CHUNK = 128 };

static gp_nginx_request_t *buckets[1 << BUCKETS_LOG2], *unused;

static gp_nginx_request_t **nginx_table_bucket(uintptr_t address)
{
    return &buckets[gp_hash_u64(address) >> (64 - BUCKETS_LOG2)];
}

gp_nginx_request_t *gp_nginx_find(uintptr_t address)
{
    gp_nginx_request_t *request = *nginx_table_bucket(address);
    while (request != NULL && request->address != address)
        request = request->next;
    return request;
}

gp_nginx_request_t *gp_nginx_add(uintptr_t address)
{
    gp_nginx_request_t *chunk = unused == NULL ? gp_own_map(CHUNK * sizeof(*chunk)) : NULL;
    for (int i = 0; chunk != NULL && i < CHUNK; i++)
        gp_nginx_give_back(&chunk[i]);
    gp_nginx_request_t *request = unused, **bucket = nginx_table_bucket(address);
    if (request == NULL)
        return NULL;
    unused = request->next;
    *request = (gp_nginx_request_t){.next = *bucket, .address = address};
    *bucket = request;
    return request;
}

void gp_nginx_take_out(gp_nginx_request_t *request)
{
    gp_nginx_request_t **place = nginx_table_bucket(request->address);
    while (*place != request)
        place = &(*place)->next;
    *place = request->next;
}

void gp_nginx_give_back(gp_nginx_request_t *request)
{
    request->next = unused;
    unused = request;
}
