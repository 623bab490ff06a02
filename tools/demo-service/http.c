// SPDX-License-Identifier: MIT
#include "http.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static const struct {
    int status;
    const char *reason;
} reasons[] = {
    {200, "OK"},
    {400, "Bad Request"},
    {404, "Not Found"},
    {405, "Method Not Allowed"},
    {408, "Request Timeout"},
    {413, "Content Too Large"},
    {431, "Request Header Fields Too Large"},
    {500, "Internal Server Error"},
    {501, "Not Implemented"},
    {502, "Bad Gateway"},
    {503, "Service Unavailable"},
    {504, "Gateway Timeout"},
    {505, "HTTP Version Not Supported"},
};

static const char *reason_of(int status)
{
    for (size_t i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
        if (reasons[i].status == status)
            return reasons[i].reason;
    return "Unknown";
}

size_t http_head_len(const char *data, size_t len)
{
    const char *end = memmem(data, len, "\r\n\r\n", 4);
    return end != NULL ? (size_t)(end - data) + 4 : 0;
}

static bool is_token(const char *text)
{
    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++)
        if (!isalnum((unsigned char)*text) && strchr("!#$%&'*+-.^_`|~", *text) == NULL)
            return false;
    return true;
}

// Cuts `line` at the next space and returns what follows, or NULL.
static char *split_word(char *line)
{
    char *space = strchr(line, ' ');
    if (space == NULL)
        return NULL;
    *space = '\0';
    return space + 1;
}

static int parse_target(char *target, http_request_t *request)
{
    if (target[0] != '/')
        return 400;
    char *query = strchr(target, '?');
    if (query != NULL)
        *query++ = '\0';
    request->path = target;
    request->query = query != NULL ? query : "";
    return 0;
}

static int parse_request_line(char *line, http_request_t *request)
{
    char *target = split_word(line);
    char *version = target != NULL ? split_word(target) : NULL;
    if (version == NULL || !is_token(line) || strncmp(version, "HTTP/", 5) != 0)
        return 400;
    request->method = line;
    request->is_http10 = strcmp(version, "HTTP/1.0") == 0;
    if (!request->is_http10 && strcmp(version, "HTTP/1.1") != 0)
        return 505;
    return parse_target(target, request);
}

static char *trim(char *text)
{
    while (*text == ' ' || *text == '\t')
        text++;
    size_t len = strlen(text);
    while (len > 0 && (text[len - 1] == ' ' || text[len - 1] == '\t'))
        text[--len] = '\0';
    return text;
}

static int parse_header(char *line, http_request_t *request)
{
    char *colon = strchr(line, ':');
    if (colon == NULL)
        return 400;
    *colon = '\0';
    if (!is_token(line))
        return 400;
    if (request->header_count == HTTP_HEADERS_MAX)
        return 431;
    request->headers[request->header_count++] = (http_header_t){line, trim(colon + 1)};
    return 0;
}

// What the service does not do, said at once rather than misread later.
static int check_request(http_request_t *request)
{
    const char *length = http_header(request, "Content-Length");
    if (!request->is_http10 && http_header(request, "Host") == NULL)
        return 400;
    if (http_header(request, "Transfer-Encoding") != NULL)
        return 501;
    if (strcmp(request->method, "GET") != 0)
        return 405;
    if (length != NULL && strcmp(length, "0") != 0)
        return 413;
    request->keep_alive = request->is_http10 ? http_header_has(request, "Connection", "keep-alive")
                                             : !http_header_has(request, "Connection", "close");
    return 0;
}

static bool has_control_characters(const char *line)
{
    for (; *line != '\0'; line++)
        if (iscntrl((unsigned char)*line) && *line != '\t')
            return true;
    return false;
}

int http_parse(char *head, size_t head_len, http_request_t *request)
{
    request->header_count = 0;
    if (memchr(head, '\0', head_len) != NULL)
        return 400;
    head[head_len - 2] = '\0'; // the empty line
    for (char *line = head, *next; *line != '\0'; line = next) {
        char *end = strstr(line, "\r\n");
        *end = '\0';
        next = end + 2;
        if (has_control_characters(line))
            return 400;
        int status = line == head ? parse_request_line(line, request) : parse_header(line, request);
        if (status != 0)
            return status;
    }
    return check_request(request);
}

const char *http_header(const http_request_t *request, const char *name)
{
    for (size_t i = 0; i < request->header_count; i++)
        if (strcasecmp(request->headers[i].name, name) == 0)
            return request->headers[i].value;
    return NULL;
}

bool http_header_has(const http_request_t *request, const char *name, const char *word)
{
    const char *at = http_header(request, name);
    size_t word_len = strlen(word);
    while (at != NULL && *at != '\0') {
        at += strspn(at, " \t,");
        size_t len = strcspn(at, " \t,;");
        if (len == word_len && strncasecmp(at, word, len) == 0)
            return true;
        at += strcspn(at, ",");
    }
    return false;
}

static int hex_value(char digit)
{
    const char *digits = "0123456789abcdef";
    const char *at = digit != '\0' ? strchr(digits, tolower((unsigned char)digit)) : NULL;
    return at != NULL ? (int)(at - digits) : -1;
}

static bool decode(const char *text, size_t len, char *value, size_t value_size)
{
    size_t used = 0;
    for (size_t i = 0; i < len; i++) {
        int byte = text[i] == '+' ? ' ' : (unsigned char)text[i];
        if (byte == '%') {
            if (i + 2 >= len || hex_value(text[i + 1]) < 0 || hex_value(text[i + 2]) < 0)
                return false;
            byte = hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]);
            i += 2;
        }
        if (byte == 0 || used + 1 >= value_size)
            return false;
        value[used++] = (char)byte;
    }
    value[used] = '\0';
    return true;
}

bool http_query(const http_request_t *request, const char *key, char *value, size_t value_size)
{
    size_t key_len = strlen(key);
    for (const char *at = request->query; *at != '\0'; at += strspn(at, "&")) {
        size_t len = strcspn(at, "&");
        if (len > key_len && at[key_len] == '=' && strncmp(at, key, key_len) == 0)
            return decode(at + key_len + 1, len - key_len - 1, value, value_size);
        at += len;
    }
    return false;
}

void http_add_header(http_response_t *response, const char *name, const char *value)
{
    size_t used = strlen(response->headers);
    size_t room = sizeof response->headers - used;
    int len = snprintf(response->headers + used, room, "%s: %s\r\n", name, value);
    if (len < 0 || (size_t)len >= room)
        response->headers[used] = '\0';
}

size_t http_response_head(const http_response_t *response, char head[HTTP_RESPONSE_HEAD_BYTES])
{
    int len =
        snprintf(head, HTTP_RESPONSE_HEAD_BYTES,
                 "HTTP/1.1 %d %s\r\n"
                 "Content-Type: application/json\r\n"
                 "Content-Length: %zu\r\n"
                 "Connection: %s\r\n"
                 "%s%s%s\r\n",
                 response->status, reason_of(response->status), response->body_len,
                 response->keep_alive ? "keep-alive" : "close", response->gzipped ? "Content-Encoding: gzip\r\n" : "",
                 response->status == 405 ? "Allow: GET\r\n" : "", response->headers);
    return (size_t)len;
}
