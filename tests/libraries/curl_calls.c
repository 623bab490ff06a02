// SPDX-License-Identifier: MIT
// Transfers of the real libcurl, within a request and outside of one. The argument is the server's address.
#include <curl/curl.h>
#include <greenprof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *server;

static size_t drop(char *data, size_t size, size_t count, void *unused)
{
    (void)data, (void)unused;
    return size * count;
}

static CURL *prepare(CURL *curl, const char *path, struct curl_slist *headers)
{
    char url[256];
    snprintf(url, sizeof(url), "%s/%s", server, path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT, 60L);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, drop);
    curl_easy_setopt(curl, CURLOPT_MAX_SEND_SPEED_LARGE, (curl_off_t)1 << 33);
    if (headers != NULL)
        curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    return curl;
}

static void check(int result)
{
    if (result == 0)
        return;
    printf("curl says %d\n", result);
    exit(1);
}

static void get(CURL *curl, const char *path, struct curl_slist *headers)
{
    check((int)curl_easy_perform(prepare(curl, path, headers)));
}

static void use_multi(struct curl_slist *own)
{
    CURL *first = curl_easy_init(), *second = curl_easy_init();
    CURLM *multi = curl_multi_init();
    int running = 1;
    check((int)curl_multi_add_handle(multi, prepare(first, "multi", own)));
    check((int)curl_multi_add_handle(multi, prepare(second, "multi-none", NULL)));
    CURL *copy = curl_easy_duphandle(first);
    while (running > 0) {
        check((int)curl_multi_perform(multi, &running));
        check((int)curl_multi_wait(multi, NULL, 0, 1000, NULL));
    }
    check((int)curl_multi_remove_handle(multi, first));
    check((int)curl_multi_remove_handle(multi, second));
    get(copy, "copy-of-busy", NULL);
    prof_span_t *within = prof_span_begin(PROF_SPAN_REST_CALL, "second", NULL);
    check((int)curl_multi_add_handle(multi, prepare(first, "removed-at-once", NULL)));
    check((int)curl_multi_remove_handle(multi, first));
    check((int)curl_multi_add_handle(multi, prepare(second, "cleaned", NULL)));
    prof_span_end(within);
    curl_easy_cleanup(second);
    curl_easy_cleanup(first);
    curl_easy_cleanup(copy);
    curl_multi_cleanup(multi);
}

int main(int argc, char **argv)
{
    struct curl_slist *own = curl_slist_append(curl_slist_append(NULL, "X-Own: a"), "X-More: b");
    struct curl_slist *given = curl_slist_append(NULL, "TraceParent: mine");
    CURL *curl = curl_easy_init(), *plain = curl_easy_init();
    prof_trace_id_t trace;
    prof_span_options_t options = PROF_SPAN_OPTIONS_INIT;
    if (argc != 2 || prof_trace_parse("0af7651916cd43dd8448eb211c80319c", &trace) != 0)
        return 2;
    server = argv[1];
    options.trace = &trace;
    get(curl, "outside", own);
    prof_span_t *request = prof_span_begin(PROF_SPAN_REQUEST, "request", &options);
    get(curl, "own", NULL);
    get(plain, "none", NULL);
    CURL *copy = curl_easy_duphandle(curl);
    get(copy, "copy", NULL);
    get(copy, "given", given);
    curl_easy_reset(copy);
    get(copy, "reset", NULL);
    prof_hmac_keys("KEY");
    get(curl, "signed", NULL);
    curl_easy_setopt(plain, CURLOPT_FOLLOWLOCATION, 1L); // to whichever host
    get(plain, "follows", NULL);
    curl_easy_setopt(plain, CURLOPT_FOLLOWLOCATION, 0L);
    prof_hmac_keys(NULL);
    use_multi(own);
    prof_span_end(request);
    get(curl, "after", NULL);
    get(plain, "after-none", NULL);
    curl_easy_cleanup(copy);
    curl_easy_cleanup(curl);
    curl_easy_cleanup(plain);
    curl_slist_free_all(own);
    curl_slist_free_all(given);
    puts("done");
    return 0;
}
