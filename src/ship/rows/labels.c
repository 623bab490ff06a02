// SPDX-License-Identifier: MIT
#include "ship/rows/labels.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hex.h"

enum { FILE_MAX = 16384, CONTAINER_DIGITS = 64 };

int gp_labels_set(gp_labels_t *labels, const char *key, size_t key_len, const char *value, size_t value_len)
{
    size_t at = 0;
    char *name = gp_arena_text(&labels->arena, key, key_len);
    char *text = gp_arena_text(&labels->arena, value, value_len);
    if (name == NULL || text == NULL)
        return -ENOMEM;
    while (at < labels->count && strcmp(labels->items[at].key, name) < 0)
        at++;
    if (at < labels->count && strcmp(labels->items[at].key, name) == 0) {
        labels->items[at].value = text;
        return 0;
    }
    if (key_len == 0 || labels->count >= GP_LABELS_MAX)
        return 0;
    if (gp_grow(&labels->items, &labels->capacity, labels->count, sizeof(*labels->items)) < 0)
        return -ENOMEM;
    memmove(&labels->items[at + 1], &labels->items[at], (labels->count - at) * sizeof(*labels->items));
    labels->items[at] = (gp_row_pair_t){name, text};
    labels->count++;
    return 0;
}

static void labels_trim(const char **from, const char **to)
{
    while (*from < *to && isspace((unsigned char)**from))
        ++*from;
    while (*from < *to && isspace((unsigned char)(*to)[-1]))
        --*to;
}

static int labels_add_pair(gp_labels_t *labels, const char *from, const char *to)
{
    const char *equals = memchr(from, '=', (size_t)(to - from));
    if (equals == NULL)
        return 0;
    const char *key_end = equals, *value = equals + 1;
    labels_trim(&from, &key_end);
    labels_trim(&value, &to);
    if (to - value > 1 && value[0] == '"' && to[-1] == '"') { // as the downward API writes labels
        value++;
        to--;
    }
    char *copy = gp_arena_text(&labels->arena, value, (size_t)(to - value));
    if (copy == NULL)
        return -ENOMEM;
    gp_hex_decode_percent(copy, (size_t)(to - value)); // else it stays as it is
    return gp_labels_set(labels, from, (size_t)(key_end - from), copy, strlen(copy));
}

int gp_labels_add_list(gp_labels_t *labels, const char *list)
{
    int result = 0;
    for (const char *end; *list != '\0' && result == 0; list = *end != '\0' ? end + 1 : end) {
        end = list + strcspn(list, ",\n");
        result = labels_add_pair(labels, list, end);
    }
    return result;
}

static int labels_set_text(gp_labels_t *labels, const char *key, const char *value, size_t len)
{
    return gp_labels_set(labels, key, strlen(key), value, len);
}

// The first 64 hex digits in a row: what container runtimes call a container.
static const char *labels_container_of(const char *from, const char *to)
{
    size_t digits = 0;
    for (; from < to; from++) {
        digits = isxdigit((unsigned char)*from) ? digits + 1 : 0;
        if (digits == CONTAINER_DIGITS)
            return from + 1 - CONTAINER_DIGITS;
    }
    return NULL;
}

static int labels_add_unit(gp_labels_t *labels, const char *path, const char *end)
{
    static const char *const endings[] = {".service", ".scope"};
    for (const char *part = path, *next; part < end; part = next + 1) {
        next = memchr(part, '/', (size_t)(end - part));
        next = next != NULL ? next : end;
        for (size_t i = 0; i < sizeof(endings) / sizeof(endings[0]); i++) {
            size_t len = strlen(endings[i]);
            if ((size_t)(next - part) > len && memcmp(next - len, endings[i], len) == 0 &&
                labels_set_text(labels, "systemd.unit", part, (size_t)(next - part)) < 0)
                return -ENOMEM;
        }
    }
    return 0;
}

// "0::/kubepods.slice/kubepods-pod1234_5678.slice/cri-containerd-9abc.scope"
int gp_labels_add_cgroup(gp_labels_t *labels, const char *text)
{
    const char *unified = strncmp(text, "0::", 3) == 0 ? text : strstr(text, "\n0::");
    const char *path = unified != NULL ? strchr(unified, '/') : strchr(text, '/');
    if (path == NULL)
        return 0;
    const char *end = path + strcspn(path, "\n"), *container = labels_container_of(path, end),
               *pod = strstr(path, "-pod");
    int result = end - path > 1 ? labels_set_text(labels, "cgroup", path, (size_t)(end - path)) : 0;
    if (result == 0 && container != NULL)
        result = labels_set_text(labels, "container.id", container, CONTAINER_DIGITS);
    if (result == 0 && pod != NULL && pod < end)
        result = labels_set_text(labels, "k8s.pod.uid", pod + 4, strspn(pod + 4, "0123456789abcdef_-"));
    return result == 0 ? labels_add_unit(labels, path, end) : result;
}

static ssize_t labels_read_text(const char *path, char text[FILE_MAX])
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t len = fd >= 0 ? read(fd, text, FILE_MAX - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[len > 0 ? len : 0] = '\0';
    return len;
}

static int labels_add_podinfo(gp_labels_t *labels)
{
    static const char *const files[][2] = {{"name", "k8s.pod.name"},
                                           {"namespace", "k8s.namespace.name"},
                                           {"uid", "k8s.pod.uid"},
                                           {"node", "k8s.node.name"}};
    const char *folder = getenv("GREENPROF_PODINFO");
    char path[4096], text[FILE_MAX];
    int result = 0;
    folder = folder != NULL ? folder : "/etc/podinfo";
    snprintf(path, sizeof(path), "%s/labels", folder);
    if (labels_read_text(path, text) > 0)
        result = gp_labels_add_list(labels, text);
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]) && result == 0; i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, files[i][0]);
        if (labels_read_text(path, text) > 0)
            result = labels_set_text(labels, files[i][1], text, strcspn(text, "\n"));
    }
    return result;
}

int gp_labels_add_own(gp_labels_t *labels)
{
    static const char *const variables[][2] = {{"POD_NAME", "k8s.pod.name"},
                                               {"POD_NAMESPACE", "k8s.namespace.name"},
                                               {"POD_UID", "k8s.pod.uid"},
                                               {"NODE_NAME", "k8s.node.name"}};
    int result = labels_add_podinfo(labels);
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]) && result == 0; i++) {
        const char *value = getenv(variables[i][0]);
        if (value != NULL)
            result = labels_set_text(labels, variables[i][1], value, strlen(value));
    }
    const char *attributes = getenv("OTEL_RESOURCE_ATTRIBUTES"), *service = getenv("OTEL_SERVICE_NAME");
    const char *own = getenv("GREENPROF_LABELS");
    if (result == 0 && attributes != NULL)
        result = gp_labels_add_list(labels, attributes);
    if (result == 0 && service != NULL)
        result = labels_set_text(labels, "service.name", service, strlen(service));
    if (result == 0 && own != NULL)
        result = gp_labels_add_list(labels, own);
    return result;
}

const char *gp_labels_get(const gp_labels_t *labels, const char *key)
{
    for (size_t i = 0; i < labels->count; i++)
        if (strcmp(labels->items[i].key, key) == 0)
            return labels->items[i].value;
    return NULL;
}

int gp_labels_copy(gp_labels_t *to, const gp_labels_t *from)
{
    int result = 0;
    for (size_t i = 0; i < from->count && result == 0; i++)
        result = labels_set_text(to, from->items[i].key, from->items[i].value, strlen(from->items[i].value));
    return result;
}

void gp_labels_free(gp_labels_t *labels)
{
    free(labels->items);
    gp_arena_free(&labels->arena);
    *labels = (gp_labels_t){0};
}
