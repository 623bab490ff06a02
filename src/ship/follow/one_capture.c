// SPDX-License-Identifier: MIT
#include "ship/follow/one_capture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "model/span_kind.h"

static int one_capture_take_header(void *context, const gp_file_header_t *header)
{
    *(gp_file_header_t *)context = *header;
    return 0;
}

// Equal in every copy of the file; different in every other one: session, process and times are in it.
static uint64_t one_capture_id_of(const gp_file_header_t *header)
{
    uint64_t id = gp_hash_bytes(header, offsetof(gp_file_header_t, reserved));
    return id != 0 ? id : 1;
}

int gp_one_capture_open(gp_one_capture_t *followed, char error[GP_READER_ERROR_SIZE])
{
    static const gp_reader_handlers_t handlers = {.header = one_capture_take_header};
    gp_file_header_t header;
    gp_reader_summary_t summary;
    gp_reader_part_t part = {.max = 1};
    struct stat status;
    int fd = open(followed->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    int result = fd < 0 || fstat(fd, &status) < 0 ? -errno : 0;
    if (result < 0)
        snprintf(error, GP_READER_ERROR_SIZE, "%s", strerror(-result));
    else if (!S_ISREG(status.st_mode))
        result = (snprintf(error, GP_READER_ERROR_SIZE, "is no file"), -EINVAL);
    else if ((size_t)status.st_size < sizeof(header))
        result = (snprintf(error, GP_READER_ERROR_SIZE, "is empty so far"), -EAGAIN);
    if (result == 0)
        result = gp_reader_read_part(fd, &part, &handlers, &header, &summary, error);
    if (result < 0) {
        if (fd >= 0)
            close(fd);
        return result;
    }
    followed->fd = fd;
    followed->device = status.st_dev;
    followed->inode = status.st_ino;
    followed->id = one_capture_id_of(&header);
    followed->start_ns = header.start_realtime_ns;
    return 0;
}

// A text of the capture; NULL.
static const char *one_capture_text(const gp_facts_t *facts, const char *key)
{
    const gp_facts_meta_t *meta = gp_facts_meta(facts, key);
    return meta != NULL ? meta->value : NULL;
}

static int one_capture_add_label(gp_labels_t *labels, const char *key, const char *value)
{
    return value == NULL || value[0] == '\0' ? 0 : gp_labels_set(labels, key, strlen(key), value, strlen(value));
}

static const char *one_capture_base_of(const char *path)
{
    const char *slash = path != NULL ? strrchr(path, '/') : NULL;
    return slash != NULL ? slash + 1 : path != NULL ? path : "";
}

// The build-id of the program itself: its modules come with paths, its own first.
static int one_capture_add_build_id(gp_one_capture_t *followed, const char *exe)
{
    char text[2 * 20 + 1];
    for (size_t i = 0; exe != NULL && i < followed->known.facts.modules.count; i++) {
        const gp_module_info_t *module = &followed->known.facts.modules.items[i];
        if (strcmp(module->path, exe) != 0)
            continue;
        for (size_t j = 0; j < module->build_id_len; j++)
            snprintf(text + 2 * j, 3, "%02x", module->build_id[j]);
        return module->build_id_len > 0 ? one_capture_add_label(&followed->labels, "build.id", text) : 0;
    }
    return 0;
}

static int one_capture_make_labels(gp_one_capture_t *followed, const gp_labels_t *own)
{
    gp_labels_t *labels = &followed->labels;
    const gp_facts_t *facts = &followed->known.facts;
    const char *cgroup = one_capture_text(facts, "cgroup"), *service = one_capture_text(facts, "service");
    const char *attributes = one_capture_text(facts, "OTEL_RESOURCE_ATTRIBUTES");
    const char *given = one_capture_text(facts, "GREENPROF_LABELS");
    gp_labels_free(labels);
    int result = gp_labels_copy(labels, own);
    if (result == 0)
        result = one_capture_add_build_id(followed, one_capture_text(facts, "exe"));
    if (result == 0 && cgroup != NULL)
        result = gp_labels_add_cgroup(labels, cgroup);
    if (result == 0 && attributes != NULL)
        result = gp_labels_add_list(labels, attributes);
    if (result == 0)
        result = one_capture_add_label(labels, "service.name", one_capture_text(facts, "OTEL_SERVICE_NAME"));
    if (result == 0)
        result = one_capture_add_label(labels, "service.name", service);
    return result == 0 && given != NULL ? gp_labels_add_list(labels, given) : result;
}

// The first of these labels with a value.
static const char *one_capture_label(const gp_labels_t *labels, const char *first, const char *second,
                                     const char *third)
{
    const char *const keys[] = {first, second, third};
    for (size_t i = 0; i < 3; i++) {
        const char *value = keys[i] != NULL ? gp_labels_get(labels, keys[i]) : NULL;
        if (value != NULL)
            return value;
    }
    return "";
}

static uint64_t one_capture_process_id(const gp_facts_t *facts, const char *host)
{
    const gp_file_header_t *header = &facts->header;
    uint64_t hash = gp_hash_bytes(host, strlen(host));
    hash = gp_hash_more(gp_hash_more(hash, gp_hash_bytes(header->session, sizeof(header->session))), header->pid);
    hash = gp_hash_more(hash, header->start_realtime_ns);
    return hash != 0 ? hash : 1;
}

// The arguments, with spaces between.
static const char *one_capture_command_of(gp_one_capture_t *followed, const char *exe, bool with_info)
{
    const gp_facts_meta_t *arguments = gp_facts_meta(&followed->known.facts, "cmdline");
    if (!with_info || arguments == NULL)
        return exe != NULL ? exe : "";
    char *text = gp_arena_text(&followed->labels.arena, arguments->value, arguments->value_len);
    for (size_t i = 0; text != NULL && i < arguments->value_len; i++)
        text[i] = text[i] == '\0' ? ' ' : text[i];
    return text;
}

int gp_one_capture_process(gp_one_capture_t *followed, const gp_labels_t *own, const char *tenant, bool with_info)
{
    const gp_facts_t *facts = &followed->known.facts;
    const char *host = one_capture_text(facts, "hostname"), *exe = one_capture_text(facts, "exe");
    gp_row_process_t *process = &followed->process;
    size_t made_of = facts->metas.count + facts->modules.count;
    if (followed->metas_used != made_of || process->id == 0) {
        int result = one_capture_make_labels(followed, own);
        const gp_labels_t *labels = &followed->labels;
        if (result < 0)
            return result;
        const char *service = one_capture_label(labels, "service", "service.name", NULL);
        *process = (gp_row_process_t){
            .tenant = tenant != NULL ? tenant : one_capture_label(labels, "tenant", NULL, NULL),
            .service = service[0] != '\0' ? service : one_capture_base_of(exe),
            .version = one_capture_label(labels, "version", "service.version", "git.revision"),
            .host = host != NULL ? host : "",
            .command = one_capture_command_of(followed, exe, with_info),
            .pid = facts->header.pid,
            .start_ns = facts->header.start_realtime_ns,
            .labels = labels->items,
            .label_count = labels->count,
        };
        if (process->command == NULL)
            return -ENOMEM;
        process->id = one_capture_process_id(facts, process->host);
        followed->metas_used = made_of;
    }
    process->counters = facts->counters;
    process->counter_count = GP_COUNTER_COUNT;
    process->cpu_ns = facts->totals.process_cpu_ns;
    return 0;
}

static int one_capture_see_end(void *context, const gp_end_record_t *end)
{
    (void)end;
    ((gp_capture_names_t *)context)->facts.ended = true;
    return 0;
}

static int one_capture_see_span(void *context, const gp_span_record_t *span, const char *name, const char *fields)
{
    (void)name, (void)fields;
    ((gp_capture_names_t *)context)->has_requests |= span->parent_id == 0 || span->flags & GP_SPAN_REMOTE_PARENT;
    return 0;
}

static int one_capture_see_hog(void *context, const gp_hog_record_t *hog, const gp_hog_stack_t *stacks)
{
    (void)hog, (void)stacks;
    ((gp_capture_names_t *)context)->has_hogs = true;
    return 0;
}

void gp_one_capture_look(gp_one_capture_t *followed)
{
    static const gp_reader_handlers_t handlers = {
        .end = one_capture_see_end, .span = one_capture_see_span, .hog = one_capture_see_hog};
    char error[GP_READER_ERROR_SIZE];
    gp_reader_summary_t summary;
    gp_reader_part_t part = {.from = 0};
    if (!followed->is_looked_at)
        gp_reader_read_part(followed->fd, &part, &handlers, &followed->known, &summary, error);
    if (part.to > followed->size) // the file has grown up to that end
        followed->size = part.to;
    followed->is_looked_at = true;
}

bool gp_one_capture_has_paths(const gp_one_capture_t *followed)
{
    return followed->fd >= 0 && followed->known.facts.ended &&
           (followed->known.has_requests || followed->known.has_hogs) && followed->at == followed->size &&
           followed->size <= GP_FOLLOWED_PATHS_MAX;
}

void gp_one_capture_close(gp_one_capture_t *followed)
{
    if (followed->fd >= 0)
        close(followed->fd);
    followed->fd = -1;
    gp_capture_names_free(&followed->known);
    gp_labels_free(&followed->labels);
    followed->process = (gp_row_process_t){0};
    followed->is_looked_at = false;
    followed->metas_used = 0;
}

void gp_one_capture_free(gp_one_capture_t *followed)
{
    gp_one_capture_close(followed);
    gp_arena_free(&followed->names);
}
