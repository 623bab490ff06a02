// SPDX-License-Identifier: MIT
#include "report/lock_waits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/explain_parts.h"

enum { ADJOIN_NS = 1000000 }; // between two samples of one wait

typedef struct one_wait {
    gp_lock_names_t names;
    uint32_t coro, stack, sum;
    uint32_t holder; // index of the thread; 0 = not known
    uint64_t from_ns, to_ns;
} one_wait_t;

typedef struct one_code { // what held a lock: by its name, or by a stack of the holder's
    uint32_t sum, stack;
    gp_loc_t code, holder;
    uint64_t ns;
    gp_finding_t place;
} one_code_t;

typedef struct gathering {
    gp_explaining_t asked;
    enum gp_sample_kind kind;
    GP_TABLE(one_wait_t) waits;
    GP_TABLE(one_code_t) codes;
    uint64_t longest_ns; // of the waits
    int result;
} gathering_t;

static const char *lock_waits_name(const gathering_t *gathering, gp_loc_t loc)
{
    return gp_report_loc_name(gathering->asked.dataset, gathering->asked.symbolizer, loc);
}

// The text in the brackets, behind that beginning.
static void lock_waits_inner(const char *name, const char *beginning, char *text, size_t size)
{
    size_t front = strlen(beginning), length = strlen(name);
    text[0] = '\0';
    if (length > front + 1 && strncmp(name, beginning, front) == 0)
        snprintf(text, size, "%.*s", (int)(length - front - 1), name + front);
}

gp_lock_names_t gp_lock_names_of(const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer, uint32_t stack)
{
    gp_lock_names_t names = {.count = 0};
    const gp_facts_stack_t *at = &dataset->facts.stacks.items[stack];
    for (; names.count < at->depth; names.count++) {
        gp_loc_t loc = at->frames[names.count];
        const char *name = GP_LOC_MODULE(loc) == GP_MODULE_LANGUAGE ? gp_report_loc_name(dataset, symbolizer, loc) : "";
        if (strncmp(name, "[in ", 4) == 0)
            names.code = loc;
        else if (strncmp(name, "[held by ", 9) == 0)
            names.holder = loc;
        else if (strncmp(name, "[lock ", 6) == 0)
            names.lock = loc;
        else if (strcmp(name, "[timed]") == 0)
            names.is_timed = true;
        else
            break;
    }
    return names;
}

// --- who is meant

static bool lock_waits_is_thread(const gp_dataset_t *dataset, const gp_thread_record_t *thread, const char *name,
                                 size_t length)
{
    char number[32];
    uint32_t coro = gp_dataset_coro_find(dataset, thread->coro_id);
    const char *own = coro != GP_INDEX_NONE ? dataset->facts.coros.items[coro].record.name : "";
    if (strlen(own) == length && strncmp(own, name, length) == 0)
        return true;
    snprintf(number, sizeof(number), "thread %u", thread->tid);
    if (strlen(number) == length && strncmp(number, name, length) == 0)
        return true;
    if (own[0] != '\0')
        return false;
    if (strlen(thread->name) == length && strncmp(thread->name, name, length) == 0)
        return true;
    return thread->tid == dataset->facts.header.pid && strncmp(name, "MainThread", length) == 0;
}

uint32_t gp_lock_holder(const gp_dataset_t *dataset, const char *name, uint64_t at_ns)
{
    uint32_t found = GP_INDEX_NONE;
    const char *from = name + strlen("[held by ");
    size_t length = strlen(name) > strlen("[held by ]") ? strlen(from) - 1 : 0;
    for (size_t i = 0; i < dataset->facts.threads.count && length > 0; i++) {
        const gp_thread_record_t *thread = &dataset->facts.threads.items[i];
        if (thread->start_ns > at_ns || (thread->end_ns != 0 && thread->end_ns < at_ns) ||
            !lock_waits_is_thread(dataset, thread, from, length))
            continue;
        if (found != GP_INDEX_NONE)
            return GP_INDEX_NONE;
        found = gp_dataset_coro_find(dataset, thread->coro_id);
    }
    return found;
}

static uint32_t lock_waits_thread_of(const gathering_t *gathering, gp_loc_t holder, uint64_t at_ns)
{
    const gp_dataset_t *dataset = gathering->asked.dataset;
    uint32_t coro = holder != 0 ? gp_lock_holder(dataset, lock_waits_name(gathering, holder), at_ns) : GP_INDEX_NONE;
    return coro != GP_INDEX_NONE ? dataset->facts.coros.items[coro].record.thread : 0;
}

// --- the waits

static int lock_waits_take(void *context, const gp_sample_record_t *samples, size_t count)
{
    gathering_t *gathering = context;
    const gp_dataset_t *dataset = gathering->asked.dataset;
    for (size_t i = 0; i < count; i++) {
        const gp_sample_record_t *sample = &samples[i];
        uint32_t stack = gp_dataset_stack_find(dataset, sample->stack_id);
        if (sample->kind != (uint32_t)gathering->kind || stack == GP_INDEX_NONE ||
            !gp_dataset_has_sample(dataset, sample) ||
            (gathering->asked.trace != 0 &&
             gp_dataset_trace_index_find(dataset, sample->trace) != gathering->asked.trace))
            continue;
        uint32_t number = gp_table_append(&gathering->waits.table);
        if (number == GP_INDEX_NONE)
            return -ENOMEM;
        one_wait_t *wait = &gathering->waits.items[number];
        wait->names = gp_lock_names_of(dataset, gathering->asked.symbolizer, stack);
        wait->coro = gp_dataset_coro_find(dataset, sample->coro_id);
        wait->stack = stack;
        wait->to_ns = sample->time_ns;
        wait->from_ns = sample->time_ns > sample->weight_ns ? sample->time_ns - sample->weight_ns : 0;
    }
    return 0;
}

static int lock_waits_by_victim(const void *left, const void *right)
{
    const one_wait_t *a = left, *b = right;
    if (a->names.lock != b->names.lock)
        return a->names.lock < b->names.lock ? -1 : 1;
    if (a->coro != b->coro)
        return a->coro < b->coro ? -1 : 1;
    return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

// A wait that goes on for long is told in pieces: these become one.
static void lock_waits_join(gathering_t *gathering)
{
    one_wait_t *waits = gathering->waits.items;
    size_t kept = 0;
    for (size_t i = 0; i < gathering->waits.count; i++) {
        one_wait_t *before = kept > 0 ? &waits[kept - 1] : NULL;
        if (before != NULL && gathering->kind == GP_KIND_LOCK && before->names.lock == waits[i].names.lock &&
            before->coro == waits[i].coro && before->names.holder == waits[i].names.holder &&
            waits[i].from_ns <= before->to_ns + ADJOIN_NS)
            before->to_ns = waits[i].to_ns > before->to_ns ? waits[i].to_ns : before->to_ns;
        else
            waits[kept++] = waits[i];
    }
    gathering->waits.count = kept;
}

static void lock_waits_name_sum(const gathering_t *gathering, const one_wait_t *wait, gp_lock_sum_t *sum)
{
    const char *name = wait->names.lock != 0 ? lock_waits_name(gathering, wait->names.lock) : "";
    const gp_facts_stack_t *stack = &gathering->asked.dataset->facts.stacks.items[wait->stack];
    gp_finding_t place = {.line = 0};
    if (gathering->kind == GP_KIND_GIL) {
        snprintf(sum->name, sizeof(sum->name), "the interpreter's lock");
        return;
    }
    lock_waits_inner(name, "[lock ", sum->name, sizeof(sum->name));
    if (strncmp(sum->name, "0x", 2) != 0 && sum->name[0] != '?' && sum->name[0] != '\0')
        return;
    gp_explain_place_of(&gathering->asked, stack, wait->names.count, &place);
    const char *slash = strrchr(place.file, '/');
    if (place.line != 0)
        snprintf(sum->name, sizeof(sum->name), "%.100s:%u", slash != NULL ? slash + 1 : place.file, place.line);
    else if (place.function[0] != '\0')
        snprintf(sum->name, sizeof(sum->name), "%.150s", place.function);
}

static int lock_waits_by_length(const void *left, const void *right)
{
    uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;
    return a < b ? -1 : a > b;
}

// The sum of a lock: waits[count]. `lengths` has room for them.
static void lock_waits_sum(gathering_t *gathering, one_wait_t *waits, size_t count, uint64_t *lengths,
                           gp_lock_sum_t *sum)
{
    lock_waits_name_sum(gathering, &waits[0], sum);
    sum->lock = waits[0].names.lock;
    sum->waits = count;
    for (size_t i = 0; i < count; i++) {
        lengths[i] = waits[i].to_ns - waits[i].from_ns;
        sum->total_ns += lengths[i];
        sum->victims += i == 0 || waits[i].coro != waits[i - 1].coro;
        gathering->longest_ns = lengths[i] > gathering->longest_ns ? lengths[i] : gathering->longest_ns;
    }
    qsort(lengths, count, sizeof(*lengths), lock_waits_by_length);
    sum->median_ns = lengths[(count * 50 + 99) / 100 - 1];
    sum->p99_ns = lengths[(count * 99 + 99) / 100 - 1];
    sum->longest_ns = lengths[count - 1];
}

static int lock_waits_sum_up(gathering_t *gathering, gp_lock_waits_t *sums)
{
    one_wait_t *waits = gathering->waits.items;
    size_t all = gathering->waits.count;
    uint64_t *lengths = calloc(all + 1, sizeof(*lengths));
    sums->items = calloc(all + 1, sizeof(*sums->items));
    if (lengths == NULL || sums->items == NULL) {
        free(lengths);
        return -ENOMEM;
    }
    for (size_t i = 0, next; i < all; i = next) {
        for (next = i; next < all && (gathering->kind == GP_KIND_GIL || waits[next].names.lock == waits[i].names.lock);
             next++)
            waits[next].sum = (uint32_t)sums->count;
        lock_waits_sum(gathering, &waits[i], next - i, lengths, &sums->items[sums->count++]);
    }
    free(lengths);
    return 0;
}

// --- what held them

static int lock_waits_charge(gathering_t *gathering, const one_wait_t *wait, uint32_t stack, uint64_t ns)
{
    for (size_t i = 0; i < gathering->codes.count; i++) {
        one_code_t *code = &gathering->codes.items[i];
        if (code->sum == wait->sum && code->code == wait->names.code && code->stack == stack &&
            code->holder == wait->names.holder) {
            code->ns += ns;
            return 0;
        }
    }
    uint32_t number = gp_table_append(&gathering->codes.table);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gathering->codes.items[number] = (one_code_t){
        .sum = wait->sum, .stack = stack, .code = wait->names.code, .holder = wait->names.holder, .ns = ns};
    return 0;
}

static int lock_waits_by_holder(const void *left, const void *right)
{
    const one_wait_t *a = left, *b = right;
    if (a->holder != b->holder)
        return a->holder < b->holder ? -1 : 1;
    return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

// The first wait for a holder from that moment on.
static size_t lock_waits_first(const gathering_t *gathering, uint32_t holder, uint64_t from_ns)
{
    size_t lo = 0, hi = gathering->waits.count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        const one_wait_t *wait = &gathering->waits.items[middle];
        if (wait->holder < holder || (wait->holder == holder && wait->from_ns < from_ns))
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

// The work of a holder meanwhile, where the waits do not say.
static int lock_waits_take_held(void *context, const gp_sample_record_t *samples, size_t count)
{
    gathering_t *gathering = context;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const gp_sample_record_t *sample = &samples[i];
        uint32_t stack = gp_dataset_stack_find(gathering->asked.dataset, sample->stack_id);
        bool tells = sample->kind == GP_KIND_CPU || sample->kind == GP_KIND_PREEMPTED ||
                     sample->kind == GP_KIND_BLOCKED || sample->kind == GP_KIND_LOCK;
        if (!tells || sample->thread == 0 || stack == GP_INDEX_NONE)
            continue;
        uint64_t from_ns = sample->time_ns > sample->weight_ns ? sample->time_ns - sample->weight_ns : 0;
        uint64_t least_ns = from_ns > gathering->longest_ns ? from_ns - gathering->longest_ns : 0;
        for (size_t j = lock_waits_first(gathering, sample->thread, least_ns);
             j < gathering->waits.count && result == 0; j++) {
            const one_wait_t *wait = &gathering->waits.items[j];
            if (wait->holder != sample->thread || wait->from_ns >= sample->time_ns)
                break;
            uint64_t lo = wait->from_ns > from_ns ? wait->from_ns : from_ns,
                     hi = wait->to_ns < sample->time_ns ? wait->to_ns : sample->time_ns;
            if (hi > lo && wait->names.code == 0)
                result = lock_waits_charge(gathering, wait, stack, hi - lo);
        }
    }
    return result;
}

// "[in FUNCTION (FILE:LINE)]"; the file's whole name is among the functions.
static void lock_waits_read_code(const gathering_t *gathering, gp_loc_t loc, gp_finding_t *place)
{
    const char *text = lock_waits_name(gathering, loc) + strlen("[in "), *open = strrchr(text, '(');
    const char *colon = strrchr(text, ':');
    if (open == NULL || colon == NULL || colon < open || open == text)
        return;
    snprintf(place->function, sizeof(place->function), "%.*s", (int)(open - text - 1), text);
    snprintf(place->file, sizeof(place->file), "%.*s", (int)(colon - open - 1), open + 1);
    place->line = (uint32_t)strtoul(colon + 1, NULL, 10);
    gp_facts_complete_file(&gathering->asked.dataset->facts, place->function, place->file, sizeof(place->file));
}

static void lock_waits_place(const gathering_t *gathering, one_code_t *code)
{
    const gp_dataset_t *dataset = gathering->asked.dataset;
    if (code->code != 0) {
        lock_waits_read_code(gathering, code->code, &code->place);
    } else if (code->stack != 0) {
        gp_lock_names_t names = gp_lock_names_of(dataset, gathering->asked.symbolizer, code->stack);
        gp_explain_place_of(&gathering->asked, &dataset->facts.stacks.items[code->stack], names.count, &code->place);
    }
}

static bool lock_waits_is_same(const one_code_t *code, const one_code_t *other)
{
    return code->sum == other->sum && strcmp(code->place.function, other->place.function) == 0 &&
           strcmp(code->place.file, other->place.file) == 0;
}

// The function with most time, of each lock; its line is that of the longest piece.
static void lock_waits_choose(gathering_t *gathering, gp_lock_waits_t *sums)
{
    one_code_t *codes = gathering->codes.items;
    size_t count = gathering->codes.count;
    for (size_t i = 0; i < count; i++)
        lock_waits_place(gathering, &codes[i]);
    for (size_t i = 0; i < count; i++) {
        uint64_t ns = 0;
        const one_code_t *most = &codes[i];
        for (size_t j = 0; j < count; j++) {
            if (!lock_waits_is_same(&codes[i], &codes[j]))
                continue;
            ns += codes[j].ns;
            most = codes[j].ns > most->ns ? &codes[j] : most;
        }
        gp_lock_sum_t *sum = &sums->items[codes[i].sum];
        if (ns <= sum->held_ns || codes[i].place.function[0] == '\0')
            continue;
        sum->held_ns = ns;
        sum->line = most->place.line;
        snprintf(sum->function, sizeof(sum->function), "%s", most->place.function);
        snprintf(sum->file, sizeof(sum->file), "%s", most->place.file);
        gp_explain_code(&most->place, sum->code, sizeof(sum->code));
        const char *holder = most->holder != 0 ? lock_waits_name(gathering, most->holder) : "";
        lock_waits_inner(holder, "[held by ", sum->holder, sizeof(sum->holder));
    }
}

static int lock_waits_find_code(gathering_t *gathering, gp_lock_waits_t *sums)
{
    static const gp_reader_handlers_t handlers = {.samples = lock_waits_take_held};
    bool is_any_unknown = false;
    int result = 0;
    for (size_t i = 0; i < gathering->waits.count && result == 0; i++) {
        one_wait_t *wait = &gathering->waits.items[i];
        wait->holder = wait->names.code == 0 ? lock_waits_thread_of(gathering, wait->names.holder, wait->from_ns) : 0;
        is_any_unknown |= wait->holder != 0;
        if (wait->names.code != 0)
            result = lock_waits_charge(gathering, wait, 0, wait->to_ns - wait->from_ns);
    }
    if (result == 0 && is_any_unknown) {
        qsort(gathering->waits.items, gathering->waits.count, sizeof(*gathering->waits.items), lock_waits_by_holder);
        result = gp_dataset_read_for(gathering->asked.dataset, &handlers, gathering);
    }
    if (result == 0)
        lock_waits_choose(gathering, sums);
    return result;
}

static int lock_waits_by_total(const void *left, const void *right)
{
    const gp_lock_sum_t *a = left, *b = right;
    if (a->total_ns != b->total_ns)
        return a->total_ns > b->total_ns ? -1 : 1;
    return strcmp(a->name, b->name);
}

int gp_lock_waits_make(gp_lock_waits_t *waits, const gp_dataset_t *dataset, gp_symbolizer_t *symbolizer,
                       enum gp_sample_kind kind, uint32_t trace)
{
    static const gp_reader_handlers_t handlers = {.samples = lock_waits_take};
    gathering_t gathering = {
        .asked = {.dataset = dataset, .symbolizer = symbolizer, .trace = trace},
        .kind = kind,
        .waits = GP_TABLE_PLAIN(one_wait_t),
        .codes = GP_TABLE_PLAIN(one_code_t),
    };
    *waits = (gp_lock_waits_t){NULL, 0};
    int result = gp_dataset_read_for(dataset, &handlers, &gathering);
    if (result == 0 && gathering.waits.count > 0) {
        qsort(gathering.waits.items, gathering.waits.count, sizeof(*gathering.waits.items), lock_waits_by_victim);
        lock_waits_join(&gathering);
        result = lock_waits_sum_up(&gathering, waits);
        if (result == 0)
            result = lock_waits_find_code(&gathering, waits);
        if (result == 0)
            qsort(waits->items, waits->count, sizeof(*waits->items), lock_waits_by_total);
    }
    gp_table_free(&gathering.waits.table);
    gp_table_free(&gathering.codes.table);
    return result;
}

void gp_lock_waits_free(gp_lock_waits_t *waits)
{
    free(waits->items);
}
