// SPDX-License-Identifier: MIT
#include "service_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    THREADS_MAX = 64,
    ROWS_MAX = 1000000,
    MILLISECONDS_MAX = 3600000,
};

static const char *const usage_text =
    "Usage: demo-service [OPTION...]\n"
    "A little HTTP service that runs each request on its own coroutine.\n"
    "\n"
    "  --address IP        listen here (127.0.0.1)\n"
    "  --port N            on this port; 0 picks a free one (8080)\n"
    "  --port-file FILE    write the port to FILE when ready\n"
    "  --threads N         worker threads (1)\n"
    "  --profile-dir DIR   write a profile of each request to DIR/<request id>.prof\n"
    "  --rows N            size of the database (20000)\n"
    "  --timeout MS        for a request's head, and for sending a response (5000)\n"
    "  --idle MS           how long a connection may stay open between requests (15000)\n"
    "  --scheduler PORT    ask the scheduler there, in place of an upstream of its own\n"
    "  --role ROLE         api, or scheduler: serve /stock to others, from what the conductor says (api)\n"
    "  --conductor PORT    the conductor that the scheduler asks\n"
    "  --upstream MS       how long the upstream may take before /proxy answers 504 (10000)\n"
    "  --help              print this\n"
    "\n"
    "Endpoints: /health /report[?by=customer] /search?q=TEXT /proxy[?delay=MS] /mixed[?delay=MS]\n"
    "SIGTERM and SIGINT end it: requests in flight are finished first.\n";

static const struct option long_options[] = {
    {"address", required_argument, NULL, 'a'},
    {"port", required_argument, NULL, 'p'},
    {"port-file", required_argument, NULL, 'f'},
    {"threads", required_argument, NULL, 't'},
    {"profile-dir", required_argument, NULL, 'd'},
    {"rows", required_argument, NULL, 'r'},
    {"timeout", required_argument, NULL, 'm'},
    {"idle", required_argument, NULL, 'i'},
    {"scheduler", required_argument, NULL, 's'},
    {"role", required_argument, NULL, 'R'},
    {"conductor", required_argument, NULL, 'c'},
    {"upstream", required_argument, NULL, 'u'},
    {"help", no_argument, NULL, 'h'},
    {NULL, 0, NULL, 0},
};

static void fail_usage(void)
{
    fprintf(stderr, "Try 'demo-service --help'.\n");
    exit(2);
}

static unsigned read_number(const char *text, unsigned low, unsigned high)
{
    char *end;
    errno = 0;
    unsigned long number = strtoul(text, &end, 10);
    if (errno == 0 && strchr(text, '-') == NULL && end != text && *end == '\0' && number >= low && number <= high)
        return (unsigned)number;
    fprintf(stderr, "demo-service: '%s' is not a number from %u to %u\n", text, low, high);
    fail_usage();
    return 0;
}

static bool is_scheduler(const char *role)
{
    if (strcmp(role, "api") == 0 || strcmp(role, "scheduler") == 0)
        return role[0] == 's';
    fprintf(stderr, "demo-service: '%s' is neither api nor scheduler\n", role);
    fail_usage();
    return false;
}

static void apply(int option, const char *value, settings_t *settings)
{
    switch (option) {
    case 'a':
        settings->address = value;
        break;
    case 'p':
        settings->port = (uint16_t)read_number(value, 0, 65535);
        break;
    case 'f':
        settings->port_file = value;
        break;
    case 't':
        settings->threads = read_number(value, 1, THREADS_MAX);
        break;
    case 'd':
        settings->profile_dir = value;
        break;
    case 'r':
        settings->rows = read_number(value, 1, ROWS_MAX);
        break;
    case 'm':
        settings->timeout_ms = read_number(value, 1, MILLISECONDS_MAX);
        break;
    case 'i':
        settings->idle_ms = read_number(value, 1, MILLISECONDS_MAX);
        break;
    case 's':
        settings->scheduler_port = (uint16_t)read_number(value, 1, 65535);
        break;
    case 'R':
        settings->is_scheduler = is_scheduler(value);
        break;
    case 'c':
        settings->conductor_port = (uint16_t)read_number(value, 1, 65535);
        break;
    case 'u':
        settings->upstream_ms = read_number(value, 1, MILLISECONDS_MAX);
        break;
    case 'h':
        fputs(usage_text, stdout);
        exit(0);
    default:
        fail_usage();
    }
}

void options_read(int argc, char **argv, settings_t *settings)
{
    *settings = (settings_t){.address = "127.0.0.1",
                             .port = 8080,
                             .threads = 1,
                             .rows = 20000,
                             .timeout_ms = 5000,
                             .idle_ms = 15000,
                             .upstream_ms = 10000};
    int option;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1)
        apply(option, optarg, settings);
    if (optind < argc) {
        fprintf(stderr, "demo-service: unexpected argument '%s'\n", argv[optind]);
        fail_usage();
    }
}
