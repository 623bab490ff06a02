// SPDX-License-Identifier: MIT
// Object stores: s3+http://host[:port]/BUCKET[/PREFIX][?region=R&keys_file=F&...], for captures as they are.
//
// Model: a capture that has ended and was not sent before is one object, NAME.greenprof; of one that grows, or is
// large, each part is an object NAME.greenprof/OFFSET, and the parts one after the other are the capture: `cat` in the
// order of their names. An object has the same name whenever it is sent, and replaces itself: twice changes nothing.
// Requests are signed by libcurl (AWS signature version 4) where there are keys: from the file, the environment or the
// URL.
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <openssl/sha.h>

#include "base/hex.h"
#include "ship/send/capture_copy.h"
#include "ship/send/post.h"
#include "ship/send/sends.h"

enum { PART_BYTES = 64 << 20, LINE_SIZE = 4096, SIGNATURE_SIZE = 128 };

typedef struct s3_keys {
    char id[LINE_SIZE], secret[LINE_SIZE], token[LINE_SIZE];
} s3_keys_t;

typedef struct s3 {
    gp_post_t post;
    char signature[SIGNATURE_SIZE]; // what libcurl is told; "" = there are no keys
    char token_header[LINE_SIZE + 32];
    uint8_t *bytes;
    size_t room;
} s3_t;

static const char *const names[] = {"region", "keys_file", NULL};

static uint64_t not_before_ns(const void *destination)
{
    return gp_http_not_before_ns(((const s3_t *)destination)->post.http);
}

static void close_s3(void *destination)
{
    s3_t *s3 = destination;
    gp_post_close(&s3->post);
    explicit_bzero(s3->token_header, sizeof(s3->token_header));
    free(s3->bytes);
    free(s3);
}

// "aws_access_key_id = AKIA...": the first of each counts.
static void read_line(char *line, s3_keys_t *keys)
{
    char *equals = strchr(line, '='), *value = equals != NULL ? equals + 1 + strspn(equals + 1, " \t") : NULL;
    if (value == NULL)
        return;
    value[strcspn(value, " \t\r\n")] = '\0';
    line[strcspn(line, " \t=")] = '\0';
    char *to = strcmp(line, "aws_access_key_id") == 0       ? keys->id
               : strcmp(line, "aws_secret_access_key") == 0 ? keys->secret
               : strcmp(line, "aws_session_token") == 0     ? keys->token
                                                            : NULL;
    if (to != NULL && to[0] == '\0')
        memcpy(to, value, strlen(value) + 1);
}

static int read_keys_file(const char *path, s3_keys_t *keys, char *error)
{
    char line[LINE_SIZE];
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        read_line(line + strspn(line, " \t"), keys);
    if (file == NULL)
        snprintf(error, GP_FLEET_ERROR_SIZE, "keys file %.180s: %s", path, strerror(errno));
    else
        fclose(file);
    if (file != NULL && (keys->id[0] == '\0' || keys->secret[0] == '\0'))
        snprintf(error, GP_FLEET_ERROR_SIZE, "keys file %.180s: has no aws_access_key_id or no aws_secret_access_key",
                 path);
    explicit_bzero(line, sizeof(line));
    return file != NULL && keys->id[0] != '\0' && keys->secret[0] != '\0' ? 0 : -EINVAL;
}

static void copy_text(char to[LINE_SIZE], const char *text)
{
    snprintf(to, LINE_SIZE, "%s", text != NULL ? text : "");
}

static int find_keys(const gp_fleet_url_t *url, s3_keys_t *keys, char *error)
{
    const char *path = gp_fleet_url_option(url, "keys_file");
    memset(keys, 0, sizeof(*keys));
    if (path != NULL)
        return read_keys_file(path, keys, error);
    if (url->user[0] != '\0') {
        copy_text(keys->id, url->user);
        copy_text(keys->secret, url->password);
        return 0;
    }
    copy_text(keys->id, getenv("AWS_ACCESS_KEY_ID"));
    copy_text(keys->secret, getenv("AWS_SECRET_ACCESS_KEY"));
    copy_text(keys->token, getenv("AWS_SESSION_TOKEN"));
    return 0;
}

static const char *region_of(const gp_fleet_url_t *url)
{
    const char *region = gp_fleet_url_option(url, "region");
    if (region == NULL)
        region = getenv("AWS_REGION");
    if (region == NULL)
        region = getenv("AWS_DEFAULT_REGION");
    return region != NULL ? region : "us-east-1";
}

static int open_post(s3_t *s3, const gp_fleet_url_t *given, s3_keys_t *keys, char *error)
{
    gp_fleet_url_t url = *given;
    if (url.path[0] == '\0' || url.path[1] == '\0') {
        snprintf(error, GP_FLEET_ERROR_SIZE, "needs a bucket: %s://HOST:PORT/BUCKET/PREFIX", given->scheme);
        return -EINVAL;
    }
    if (keys->id[0] != '\0' &&
        snprintf(s3->signature, sizeof(s3->signature), "aws:amz:%s:s3", region_of(given)) >= SIGNATURE_SIZE) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "the region's name is too long");
        return -EINVAL;
    }
    if (keys->token[0] != '\0')
        snprintf(s3->token_header, sizeof(s3->token_header), "X-Amz-Security-Token: %s", keys->token);
    url.user = keys->id;
    url.password = keys->secret;
    return gp_post_open(&s3->post, &url, names, error);
}

static int open_s3(void **destination, const gp_fleet_url_t *url, char error[GP_FLEET_ERROR_SIZE])
{
    s3_t *s3 = calloc(1, sizeof(*s3));
    s3_keys_t *keys = malloc(sizeof(*keys));
    int result = s3 != NULL && keys != NULL ? find_keys(url, keys, error) : -ENOMEM;
    if (result == 0)
        result = open_post(s3, url, keys, error);
    if (keys != NULL)
        explicit_bzero(keys, sizeof(*keys));
    free(keys);
    if (result < 0 && s3 != NULL)
        close_s3(s3);
    else
        *destination = s3;
    return result;
}

// The header that the service wants, which libcurl signs but does not make before version 8.
static void make_sum_header(const void *bytes, size_t len, char header[SIGNATURE_SIZE])
{
    static const char name[] = "X-Amz-Content-Sha256: ";
    uint8_t sum[SHA256_DIGEST_LENGTH];
    SHA256(bytes, len, sum);
    memcpy(header, name, sizeof(name));
    gp_hex_write(header + sizeof(name) - 1, sum, sizeof(sum));
}

static int put_object(s3_t *s3, const char *url, size_t len, char *error)
{
    char sum[SIGNATURE_SIZE];
    const char *const headers[] = {"Content-Type: application/octet-stream", sum,
                                   s3->token_header[0] != '\0' ? s3->token_header : NULL, NULL};
    make_sum_header(s3->bytes, len, sum);
    const gp_http_request_t request = {
        .method = "PUT",
        .url = url,
        .headers = headers,
        .body = s3->bytes,
        .body_len = len,
        .sigv4 = s3->signature[0] != '\0' ? s3->signature : NULL,
    };
    gp_http_answer_t answer;
    int result = gp_post_send(&s3->post, &request, &answer, error);
    gp_http_answer_free(&answer);
    return result;
}

static int make_room(s3_t *s3, size_t len)
{
    if (len <= s3->room)
        return 0;
    free(s3->bytes);
    s3->bytes = malloc(len);
    s3->room = s3->bytes != NULL ? len : 0;
    return s3->bytes != NULL ? 0 : -ENOMEM;
}

static char *put_name(char *at, const char *end, const char *name)
{
    while (at != NULL && *name != '\0') {
        char word[GP_COPY_NAME_SIZE];
        size_t len = strcspn(name, "/");
        memcpy(word, name, len);
        word[len] = '\0';
        name += len + (name[len] == '/');
        if (end - at < 2)
            return NULL;
        *at++ = '/';
        at = gp_http_escape(at, end, word);
    }
    return at;
}

static int send_parts(s3_t *s3, const gp_batch_t *batch, int fd, char *error)
{
    bool is_whole = batch->from == 0 && batch->is_last && batch->to <= PART_BYTES;
    char name[GP_COPY_NAME_SIZE], url[GP_POST_URL_SIZE];
    char *end = url + snprintf(url, sizeof(url), "%s", s3->post.base);
    int result = gp_copy_name(batch, name);
    end = result == 0 ? put_name(end, url + sizeof(url) - 32, name) : NULL;
    if (end == NULL)
        result = -ENAMETOOLONG;
    for (uint64_t from = batch->from; from < batch->to && result == 0; from += PART_BYTES) {
        size_t len = batch->to - from < PART_BYTES ? (size_t)(batch->to - from) : PART_BYTES;
        if (!gp_post_is_due(&s3->post))
            continue;
        if (!is_whole)
            snprintf(end, 32, "/%020llu", (unsigned long long)from);
        result = make_room(s3, len);
        if (result == 0)
            result = gp_copy_read(fd, from, s3->bytes, len);
        if (result < 0)
            break;
        result = put_object(s3, url, len, error);
        if (result < 0)
            return result;
    }
    if (result < 0)
        snprintf(error, GP_FLEET_ERROR_SIZE, "%.180s: %s", batch->capture, strerror(-result));
    return result == 0 || result == -ENOMEM || result == -EACCES ? result : -EAGAIN;
}

static int send_one(s3_t *s3, const gp_batch_t *batch, char *error)
{
    if (!gp_copy_has_bytes(batch) || batch->from == batch->to)
        return 0;
    int result = gp_post_begin(&s3->post, batch);
    if (result < 0) {
        snprintf(error, GP_FLEET_ERROR_SIZE, "%s", strerror(-result));
        return result;
    }
    int fd = gp_copy_open(batch, error);
    if (fd < 0)
        return fd == -EACCES ? fd : -EAGAIN;
    result = send_parts(s3, batch, fd, error);
    close(fd);
    return result;
}

static int send_s3(void *destination, const gp_batch_t *batches, size_t count, bool again,
                   char error[GP_FLEET_ERROR_SIZE])
{
    s3_t *s3 = destination;
    int result = 0;
    (void)again; // the same object once more changes nothing
    for (size_t i = 0; i < count && result == 0; i++)
        result = send_one(s3, &batches[i], error);
    if (result == 0)
        gp_post_done(&s3->post);
    return result;
}

static uint64_t sent_bytes(void *destination)
{
    return gp_http_bytes(((s3_t *)destination)->post.http);
}

static void describe(void *destination, const gp_batch_t *batch, FILE *out)
{
    gp_copy_describe(batch, ((s3_t *)destination)->post.base, out);
}

#define KIND(name)                                                                                                     \
    {                                                                                                                  \
        .scheme = name, .takes = GP_TAKES_BYTES, .asks = true, .open = open_s3, .send = send_s3,                       \
        .sent_bytes = sent_bytes, .describe = describe, .not_before_ns = not_before_ns, .close = close_s3              \
    }
const gp_destination_kind_t gp_destination_s3_http = KIND("s3+http");
const gp_destination_kind_t gp_destination_s3_https = KIND("s3+https");
