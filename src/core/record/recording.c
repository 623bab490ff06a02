// SPDX-License-Identifier: MIT
#include "record/recording.h"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "base/descriptors.h"
#include "base/main_file.h"
#include "base/number.h"
#include "base/secret.h"
#include "collect/functions.h"
#include "collect/pools.h"
#include "collect/sampler.h"
#include "collect/spawn_locate.h"
#include "collect/thread_timers.h"
#include "coro/coro_name.h"
#include "coro/spawn.h"
#include "model/size_limit.h"
#include "not_known.h"
#include "settings.h"
#include "signal/language.h"
#include "signal/ticks.h"

enum {
    PART_SHIFT = 48,
    START_TRIES = 8,
    START_WITHIN_NS = 2000,
};

enum {
    STANDARD_BYTES = 64 << 20,
    TRACES_PART = 10, // of the memory that the recording may have: traces come but once as a rule
    STACKS_PART = 5,
    WAITING_PARTS = 7, // of 32, in records that wait; as much again is being written, and half of it is scratch
};

static uint32_t recording_slots_within(uint64_t bytes)
{
    uint32_t slots = 1024;
    while (slots < GP_INTERN_SLOTS && 2ull * slots * GP_INTERN_SLOT_BYTES <= bytes)
        slots *= 2;
    return slots;
}

static void recording_set_bounds(gp_recording_t *recording)
{
    uint64_t bytes;
    const char *text = gp_setting(GP_SETTING_MEMORY_LIMIT);
    if (text == NULL || !gp_size_limit_parse(text, &bytes) || bytes < GP_MEMORY_LIMIT_LEAST)
        bytes = STANDARD_BYTES;
    recording->traces.limit = recording_slots_within(bytes / TRACES_PART);
    recording->stacks.limit = recording_slots_within(bytes / STACKS_PART);
    recording->writer.max_waiting = bytes / 32 * WAITING_PARTS;
}

// The present moment on all three clocks: again where the thread was kept from reading them one right after the other.
static void recording_read_start(gp_recording_t *recording)
{
    uint64_t narrowest = UINT64_MAX;
    for (int i = 0; i < START_TRIES && narrowest > gp_ticks_from_ns(START_WITHIN_NS); i++) {
        uint64_t before = gp_ticks();
        uint64_t realtime_ns = gp_clock_ns(CLOCK_REALTIME), monotonic_ns = gp_clock_ns(CLOCK_MONOTONIC);
        uint64_t took = gp_ticks() - before;
        if (took >= narrowest)
            continue;
        narrowest = took;
        recording->start_ticks = before + took / 2;
        recording->header.start_realtime_ns = realtime_ns;
        recording->header.start_monotonic_ns = monotonic_ns;
    }
}

void gp_recording_begin(gp_recording_t *recording, unsigned frequency_hz)
{
    gp_file_header_t *header = &recording->header;
    recording_set_bounds(recording);
    recording_read_start(recording);
    memcpy(header->magic, GP_FILE_MAGIC, sizeof(header->magic));
    header->version = GP_FILE_VERSION;
    header->header_bytes = sizeof(*header);
    header->pid = (uint32_t)getpid();
    header->ppid = (uint32_t)getppid();
    header->frequency_hz = frequency_hz;
    header->clock = gp_setting_is(GP_SETTING_CLOCK, "wall") ? PROF_CLOCK_WALL : PROF_CLOCK_CPU;
    header->engine = (uint32_t)gp_timers_engine();
    header->tick_hz = gp_ticks_hz();
    header->elf_machine = GP_ARCH_ELF_MACHINE;
    const char *session = gp_setting(GP_SETTING_SESSION);
    for (int i = 0; session != NULL && i < 16 && strlen(session) >= 32; i++) {
        unsigned byte;
        char digits[3] = {session[2 * i], session[2 * i + 1], '\0'};
        if (sscanf(digits, "%2x", &byte) == 1)
            header->session[i] = (uint8_t)byte;
    }
}

static void recording_forget_written(gp_recording_t *recording)
{
    gp_intern_reset(&recording->traces);
    gp_intern_reset(&recording->stacks);
    free(recording->site_stacks);
    recording->site_stacks = NULL;
    recording->site_room = 0;
    recording->modules_written = 0;
    recording->functions_written = 0;
    recording->told = NULL;
    recording->ledgers_lost = 0;
}

void gp_recording_abandon(gp_recording_t *recording)
{
    gp_writer_t *writer = &recording->writer;
    gp_writer_abandon(writer);
    atomic_store_explicit(&writer->error, 0, memory_order_relaxed);
    memset(&writer->bytes, 0, sizeof(*writer) - offsetof(gp_writer_t, bytes)); // not where its directory is
    recording_forget_written(recording);
}

void gp_recording_turn(gp_recording_t *recording, unsigned frequency_hz, uint64_t from)
{
    uint32_t clock = recording->header.clock;
    recording_forget_written(recording);
    recording->part += 1ull << PART_SHIFT;
    memset(recording->writer.refused, 0, sizeof(recording->writer.refused));
    gp_recording_begin(recording, frequency_hz);
    recording->header.clock = clock;
    recording->header.part = (uint32_t)(recording->part >> PART_SHIFT);
    uint64_t before_ns = from < recording->start_ticks ? gp_ticks_to_ns(recording->start_ticks - from) : 0;
    recording->start_ticks -= gp_ticks_from_ns(before_ns);
    recording->header.start_realtime_ns -= before_ns;
    recording->header.start_monotonic_ns -= before_ns;
}

uint64_t gp_recording_since(const gp_recording_t *recording, uint64_t ticks)
{
    return ticks > recording->start_ticks ? gp_ticks_to_ns(ticks - recording->start_ticks) : 0;
}

static void recording_write_modules(gp_recording_t *recording)
{
    size_t count;
    const gp_module_t *all = gp_modules_all(&count);
    for (; recording->modules_written < count; recording->modules_written++) {
        const gp_module_t *module = &all[recording->modules_written];
        size_t path_len = strlen(module->path);
        gp_module_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_MODULES, sizeof(*record) + path_len);
        if (record == NULL)
            return;
        record->id = module->id;
        record->build_id_len = (uint16_t)module->build_id_len;
        record->path_len = (uint16_t)path_len;
        record->start = module->start;
        record->end = module->end;
        record->bias = module->bias;
        memcpy(record->build_id, module->build_id, sizeof(record->build_id));
        memcpy(record + 1, module->path, path_len);
    }
}

static void recording_write_functions(gp_recording_t *recording)
{
    for (; recording->functions_written < gp_functions_count(); recording->functions_written++) {
        const gp_function_name_t *function = gp_functions_at(recording->functions_written + 1);
        size_t name_len = strlen(function->name), file_len = strlen(function->file);
        gp_function_record_t *record =
            gp_writer_add(&recording->writer, GP_CHUNK_FUNCTIONS, sizeof(*record) + name_len + file_len);
        if (record == NULL)
            return;
        record->number = recording->functions_written + 1;
        record->first_line = function->first_line;
        record->name_len = (uint32_t)name_len;
        record->file_len = (uint32_t)file_len;
        memcpy(record + 1, function->name, name_len);
        memcpy((char *)(record + 1) + name_len, function->file, file_len);
    }
}

static void recording_write_not_known(gp_recording_t *recording)
{
    gp_not_known_look();
    const gp_not_known_t *latest = gp_not_known_latest();
    for (const gp_not_known_t *fact = latest; fact != NULL && fact != recording->told; fact = fact->next)
        gp_recording_text(recording, GP_NOT_KNOWN_KEY, fact->text, strlen(fact->text));
    recording->told = latest;
}

void gp_recording_definitions(gp_recording_t *recording)
{
    recording_write_not_known(recording);
    recording_write_modules(recording);
    recording_write_functions(recording);
}

static bool recording_make_site_room(gp_recording_t *recording, uint32_t site)
{
    if (site < recording->site_room)
        return true;
    size_t room = 2 * (size_t)site;
    uint32_t *grown = realloc(recording->site_stacks, room * sizeof(*grown));
    if (grown == NULL)
        return false;
    memset(grown + recording->site_room, 0, (room - recording->site_room) * sizeof(*grown));
    recording->site_stacks = grown;
    recording->site_room = room;
    return true;
}

uint32_t gp_recording_site(gp_recording_t *recording, uint32_t number)
{
    if (number == 0 || !recording_make_site_room(recording, number))
        return 0;
    if (recording->site_stacks[number] == 0) {
        gp_spawn_locate();
        const gp_spawn_site_t *site = gp_spawn_site_at(number);
        gp_stack_t stack = {.locs = site->locs, .depth = site->loc_depth, .flags = site->loc_flags};
        recording->site_stacks[number] = gp_recording_stack(recording, &stack);
    }
    return recording->site_stacks[number];
}

static void recording_write_origin(gp_recording_t *recording, const prof_coro_t *coro, uint64_t id)
{
    uint32_t stack = gp_recording_site(recording, coro->spawn_site);
    gp_loc_t pool = gp_pool_locate(gp_coro_rare(coro)->pool);
    if (stack == 0 && coro->region_kind == 0 && pool == 0)
        return;
    gp_origin_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_ORIGINS, sizeof(*record));
    if (record == NULL)
        return;
    record->coro_id = id;
    record->stack_id = stack;
    record->region = coro->region_kind;
    record->pool = pool;
}

static gp_loc_t recording_locate_entry(const prof_coro_t *coro)
{
    if (gp_language_is_frame(coro->entry))
        return gp_language_of(gp_language_number(coro->entry))->locate(coro->entry, coro->birth_ticks);
    return coro->entry != 0 ? gp_modules_locate(coro->entry) : 0;
}

// The index of a thread's own stack, which may be met before its thread: in the next part of a recording.
static uint32_t recording_thread_index_of(prof_coro_t *coro)
{
    const gp_thread_t *thread =
        coro->kind == GP_CORO_THREAD ? atomic_load_explicit(&gp_coro_rare(coro)->thread, memory_order_acquire) : NULL;
    return thread != NULL ? thread->index : 0;
}

void gp_recording_coro(gp_recording_t *recording, prof_coro_t *coro, uint64_t id, uint32_t thread_index)
{
    char name[GP_CORO_NAME_SIZE];
    if (gp_recording_has_coro(recording, coro, id))
        return;
    gp_coro_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_COROS, sizeof(*record));
    if (record == NULL)
        return;
    // Before the name is read. Acquire: partner of the release in prof_coro_name(), which asks for the record anew.
    if (!recording->is_brief)
        atomic_exchange_explicit(&gp_coro_written(coro)->written_id, id | recording->part, memory_order_acq_rel);
    gp_coro_name_get(coro, name);
    record->id = id;
    record->parent_id = coro->parent_id;
    record->entry = recording_locate_entry(coro);
    record->stack_lo = coro->lo;
    record->stack_bytes = coro->hi - coro->lo;
    record->birth_ns = gp_recording_since(recording, coro->birth_ticks);
    record->kind = coro->kind;
    record->thread = thread_index != 0 ? thread_index : recording_thread_index_of(coro);
    memcpy(record->name, name, sizeof(record->name));
    recording_write_origin(recording, coro, id);
}

// Name a thread as a language does. A name that is too long keeps both ends: pools number their threads.
static bool recording_name_by_language(gp_thread_t *thread)
{
    enum { SIZE = sizeof(thread->name), END = 9, GAP = 2, FRONT = SIZE - 1 - END - GAP };
    char given[GP_CORO_NAME_SIZE];
    const gp_language_t *language = atomic_load_explicit(&gp_language, memory_order_acquire);
    gp_coro_name_get(thread->root, given);
    if (given[0] == '\0' && language != NULL)
        language->thread_name((int)thread->tid, given);
    size_t len = strlen(given), front = FRONT, end = len > END ? len - END : 0;
    while (front > 0 && ((unsigned char)given[front] & 0xc0) == 0x80)
        front--;
    while (end < len && ((unsigned char)given[end] & 0xc0) == 0x80)
        end++;
    if (len >= SIZE)
        snprintf(thread->name, SIZE, "%.*s..%s", (int)front, given, given + end);
    else if (len > 0)
        memcpy(thread->name, given, len + 1);
    return len > 0;
}

void gp_recording_name_thread(gp_thread_t *thread)
{
    char path[64], name[sizeof(thread->name)] = "";
    if (recording_name_by_language(thread))
        return;
    snprintf(path, sizeof(path), "/proc/self/task/%d/comm", (int)thread->tid);
    int fd = gp_descriptor_open(AT_FDCWD, path, O_RDONLY, 0);
    if (fd < 0)
        return; // gone: it keeps the name it had
    ssize_t length = read(fd, name, sizeof(name) - 1);
    close(fd);
    if (length <= 0)
        return;
    name[length] = '\0';
    name[strcspn(name, "\n")] = '\0';
    memcpy(thread->name, name, sizeof(name));
}

void gp_recording_thread(gp_recording_t *recording, gp_thread_t *thread, uint64_t cpu_ns)
{
    gp_recording_coro(recording, thread->root, thread->root_id, thread->index);
    gp_thread_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_THREADS, sizeof(*record));
    if (record == NULL)
        return;
    record->index = thread->index;
    record->tid = (uint32_t)thread->tid;
    record->start_ns = gp_recording_since(recording, thread->start_ticks);
    record->end_ns = thread->end_ticks != 0 ? gp_recording_since(recording, thread->end_ticks) : 0;
    uint64_t from = thread->cpu.start_ns;
    if (!recording->is_brief && thread->session.start_cpu_ns > from)
        from = thread->session.start_cpu_ns;
    record->cpu_ns = cpu_ns > from ? cpu_ns - from : 0;
    record->coro_id = thread->root_id;
    memcpy(record->name, thread->name, sizeof(record->name));
}

uint32_t gp_recording_trace(gp_recording_t *recording, const uint64_t id[2])
{
    bool is_new;
    if (id[0] == 0 && id[1] == 0)
        return 0;
    uint32_t index = gp_intern(&recording->traces, id[0], id[1], &is_new);
    if (is_new) {
        gp_trace_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_TRACES, sizeof(*record));
        if (record == NULL) { // the writer is behind: the next sample tries again
            gp_intern_undo(&recording->traces, id[0], id[1]);
            return 0;
        }
        record->index = index;
        memcpy(record->id, id, sizeof(record->id));
    }
    return index;
}

uint32_t gp_recording_stack(gp_recording_t *recording, const gp_stack_t *stack)
{
    bool is_new;
    uint64_t key[2];
    gp_intern_key(stack->locs, stack->depth * sizeof(gp_loc_t), key);
    uint32_t id = gp_intern(&recording->stacks, key[0], key[1], &is_new);
    if (is_new) {
        size_t bytes = stack->depth * sizeof(gp_loc_t);
        gp_stack_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_STACKS, sizeof(*record) + bytes);
        if (record == NULL) {
            gp_intern_undo(&recording->stacks, key[0], key[1]);
            return 0;
        }
        record->id = id;
        record->depth = (uint16_t)stack->depth;
        record->flags = (uint16_t)stack->flags;
        memcpy(record + 1, stack->locs, bytes);
    }
    return id;
}

void gp_recording_text(gp_recording_t *recording, const char *key, const char *value, size_t value_len)
{
    size_t key_len = strlen(key);
    gp_meta_record_t *record = gp_writer_add(&recording->writer, GP_CHUNK_META, sizeof(*record) + key_len + value_len);
    if (record == NULL)
        return;
    record->key_len = (uint16_t)key_len;
    record->value_len = (uint32_t)value_len;
    memcpy(record + 1, key, key_len);
    memcpy((char *)(record + 1) + key_len, value, value_len);
}

// Arguments go with captures to other hosts and into stores.
//   text: [len], NUL behind each argument, and room for one more.
// Returns the length without the last NUL.
static size_t recording_without_secrets(char *text, size_t len)
{
    size_t to = 0;
    text[len] = '\0';
    for (size_t at = 0, size; at < len; at += size) {
        size = strlen(text + at) + 1;
        gp_secret_remove(text + at);
        size_t left = strlen(text + at) + 1;
        memmove(text + to, text + at, left);
        to += left;
    }
    return to > 0 ? to - 1 : 0;
}

void gp_recording_meta(gp_recording_t *recording)
{
    char text[GP_MAIN_FILE_SIZE];
    gp_main_file(text);
    if (text[0] != '\0')
        gp_recording_text(recording, "exe", text, strlen(text));
    FILE *file = gp_descriptor_file("/proc/self/cmdline");
    if (file != NULL) {
        size_t got = fread(text, 1, sizeof(text) - 1, file);
        fclose(file);
        gp_recording_text(recording, "cmdline", text, recording_without_secrets(text, got));
    }
    struct utsname names;
    if (uname(&names) == 0)
        gp_recording_text(recording, "hostname", names.nodename, strlen(names.nodename));
    const char *service = gp_setting(GP_SETTING_SERVICE);
    if (service != NULL)
        gp_recording_text(recording, "service", service, strlen(service));
    if (recording->budget_ppm != 0) {
        char percent[GP_NUMBER_SIZE];
        snprintf(text, sizeof(text), "%s%%", gp_number_write(percent, recording->budget_ppm, 4));
        gp_recording_text(recording, "budget", text, strlen(text));
    }
    snprintf(text, sizeof(text), "%s", prof_version(NULL, NULL, NULL));
    gp_recording_text(recording, "greenprof", text, strlen(text));
}

bool gp_recording_path(const char *pattern, int owner, char *path, size_t size)
{
    if (pattern == NULL)
        return false;
    size_t length = 0;
    bool has_pid = false;
    for (; *pattern != '\0' && length + 24 < size; pattern++) {
        if (pattern[0] == '%' && pattern[1] == 'p') {
            length += (size_t)snprintf(path + length, size - length, "%d", (int)getpid());
            has_pid = true;
            pattern++;
        } else {
            path[length++] = *pattern;
        }
    }
    path[length] = '\0';
    if (!has_pid && owner != 0 && owner != getpid())
        snprintf(path + length, size - length, ".%d", (int)getpid());
    return *pattern == '\0';
}
