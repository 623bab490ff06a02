// SPDX-License-Identifier: MIT
// libcurl and libdebuginfod: the machine's own, looked for at the first call. The command does so as few subcommands
// need them, and both bring 34 libraries along; what is in a wheel, as the machine's have its certificates and its
// security updates. Where libcurl is missing, gp_http_create() fails with ELIBACC.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#if __has_include(<elfutils/debuginfod.h>)
#include <elfutils/debuginfod.h>
#endif

#undef curl_easy_setopt
#undef curl_easy_getinfo

// libcurl-gnutls.so.4 is the same interface with another library for TLS, which Debian's git brings.
static const char *const found_curl[] = {"libcurl.so.4", "libcurl-gnutls.so.4", NULL};

static void *found_function(const char *const *libraries, const char *name)
{
    void *library = NULL;
    for (; *libraries != NULL && library == NULL; libraries++)
        library = dlopen(*libraries, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    void *function = library != NULL ? dlsym(library, name) : NULL;
    if (function == NULL)
        errno = ELIBACC;
    return function;
}

#define FOUND(libraries, function) __typeof__(&function) found = found_function(libraries, #function)

CURLcode curl_global_init(long flags)
{
    FOUND(found_curl, curl_global_init);
    return found != NULL ? found(flags) : CURLE_FAILED_INIT;
}

CURL *curl_easy_init(void)
{
    FOUND(found_curl, curl_easy_init);
    return found != NULL ? found() : NULL;
}

// No other function is called where there is no handle. Each takes one argument of the size of a register after the
// second (curl_easy_setopt(3): long, curl_off_t or a pointer).
CURLcode curl_easy_setopt(CURL *curl, CURLoption option, ...)
{
    va_list arguments;
    va_start(arguments, option);
    void *value = va_arg(arguments, void *);
    va_end(arguments);
    FOUND(found_curl, curl_easy_setopt);
    return found(curl, option, value);
}

CURLcode curl_easy_getinfo(CURL *curl, CURLINFO info, ...)
{
    va_list arguments;
    va_start(arguments, info);
    void *value = va_arg(arguments, void *);
    va_end(arguments);
    FOUND(found_curl, curl_easy_getinfo);
    return found(curl, info, value);
}

CURLcode curl_easy_perform(CURL *curl)
{
    FOUND(found_curl, curl_easy_perform);
    return found(curl);
}

void curl_easy_reset(CURL *curl)
{
    FOUND(found_curl, curl_easy_reset);
    found(curl);
}

void curl_easy_cleanup(CURL *curl)
{
    FOUND(found_curl, curl_easy_cleanup);
    found(curl);
}

const char *curl_easy_strerror(CURLcode code)
{
    FOUND(found_curl, curl_easy_strerror);
    return found(code);
}

struct curl_slist *curl_slist_append(struct curl_slist *list, const char *text)
{
    FOUND(found_curl, curl_slist_append);
    return found(list, text);
}

void curl_slist_free_all(struct curl_slist *list)
{
    FOUND(found_curl, curl_slist_free_all);
    found(list);
}

#if __has_include(<elfutils/debuginfod.h>)
static const char *const found_debuginfod[] = {"libdebuginfod.so.1", NULL};

debuginfod_client *debuginfod_begin(void)
{
    FOUND(found_debuginfod, debuginfod_begin);
    return found != NULL ? found() : NULL;
}

int debuginfod_find_debuginfo(debuginfod_client *client, const unsigned char *build_id, int len, char **path)
{
    FOUND(found_debuginfod, debuginfod_find_debuginfo);
    return found(client, build_id, len, path);
}

void debuginfod_end(debuginfod_client *client)
{
    FOUND(found_debuginfod, debuginfod_end);
    found(client);
}
#endif
