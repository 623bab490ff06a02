// SPDX-License-Identifier: MIT
#include "report/lock_waits.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "report/explain_parts.h"

enum {
    ADJOIN_NS = 1000000,    // between two samples of one wait
    CHARGES_MOST = 20000000 // of samples to what they held, of one kind of waits; others are left out
};

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
} one_code_t;

typedef struct one_function { // that held a lock
    uint64_t hash;            // of its name and file
    uint64_t ns, most_ns;
    uint32_t sum, most; // most: number of the code of most_ns, the longest piece
} one_function_t;

typedef struct one_held { // waits for one lock of one holder, whose work meanwhile is asked for
    uint32_t holder, sum;
    gp_loc_t by;
    size_t first, count; // of `begins` and `ends`
} one_held_t;

typedef struct moment {
    uint64_t at_ns, before_ns; // before_ns: all before it, added up
} moment_t;

typedef struct gathering {
    gp_explaining_t asked;
    enum gp_sample_kind kind;
    GP_TABLE(one_wait_t) waits;
    GP_TABLE(one_code_t) codes;
    gp_index_t code_index;
    GP_TABLE(one_function_t) functions;
    gp_index_t function_index;
    GP_TABLE(one_held_t) held; // by holder
    moment_t *begins, *ends;   // moment_t[waits + 1], in order within each of `held`
    size_t charges;
    gp_lock_holders_t holders;
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

// --- the waits

static uint32_t lock_waits_thread_of(const gathering_t *gathering, gp_loc_t holder, uint64_t at_ns)
{
    const gp_dataset_t *dataset = gathering->asked.dataset;
    uint32_t coro =
        holder != 0 ? gp_lock_holder(&gathering->holders, lock_waits_name(gathering, holder), at_ns) : GP_INDEX_NONE;
    return coro != GP_INDEX_NONE ? dataset->facts.coros.items[coro].record.thread : 0;
}

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
static void lock_waits_sum(const gathering_t *gathering, const one_wait_t *waits, size_t count, uint64_t *lengths,
                           gp_lock_sum_t *sum)
{
    lock_waits_name_sum(gathering, &waits[0], sum);
    sum->lock = waits[0].names.lock;
    sum->waits = count;
    for (size_t i = 0; i < count; i++) {
        lengths[i] = waits[i].to_ns - waits[i].from_ns;
        sum->total_ns += lengths[i];
        sum->victims += i == 0 || waits[i].coro != waits[i - 1].coro;
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

static bool lock_waits_is_code(const void *owner, uint32_t number, const void *key)
{
    const gathering_t *gathering = owner;
    const one_code_t *code = &gathering->codes.items[number], *other = key;
    return code->sum == other->sum && code->stack == other->stack && code->code == other->code &&
           code->holder == other->holder;
}

static int lock_waits_charge(gathering_t *gathering, const one_code_t *piece)
{
    uint64_t hash =
        gp_hash_more(gp_hash_more(gp_hash_more(gp_hash_u64(piece->sum), piece->stack), piece->code), piece->holder);
    uint32_t number = gp_index_find(&gathering->code_index, hash, lock_waits_is_code, gathering, piece);
    if (number != GP_INDEX_NONE) {
        gathering->codes.items[number].ns += piece->ns;
        return 0;
    }
    number = gp_table_append(&gathering->codes.table);
    if (number == GP_INDEX_NONE)
        return -ENOMEM;
    gathering->codes.items[number] = *piece;
    return gp_index_add(&gathering->code_index, hash, number);
}

static bool lock_waits_is_of(const one_wait_t *wait, const one_held_t *held)
{
    return wait->holder == held->holder && wait->sum == held->sum && wait->names.holder == held->by;
}

static int lock_waits_by_holder(const void *left, const void *right)
{
    const one_wait_t *a = left, *b = right;
    if (a->holder != b->holder)
        return a->holder < b->holder ? -1 : 1;
    if (a->sum != b->sum)
        return a->sum < b->sum ? -1 : 1;
    if (a->names.holder != b->names.holder)
        return a->names.holder < b->names.holder ? -1 : 1;
    return a->from_ns < b->from_ns ? -1 : a->from_ns > b->from_ns;
}

static int lock_waits_by_moment(const void *left, const void *right)
{
    const moment_t *a = left, *b = right;
    return a->at_ns < b->at_ns ? -1 : a->at_ns > b->at_ns;
}

// Any number of threads wait at once for what one has: the sums before each moment tell how long they did in a time.
static int lock_waits_find_held(gathering_t *gathering)
{
    one_wait_t *waits = gathering->waits.items;
    size_t count = gathering->waits.count;
    gathering->begins = calloc(count + 1, sizeof(*gathering->begins));
    gathering->ends = calloc(count + 1, sizeof(*gathering->ends));
    if (gathering->begins == NULL || gathering->ends == NULL)
        return -ENOMEM;
    qsort(waits, count, sizeof(*waits), lock_waits_by_holder);
    for (size_t i = 0; i < count; i++) {
        one_held_t *last = gathering->held.count > 0 ? &gathering->held.items[gathering->held.count - 1] : NULL;
        if (waits[i].holder != 0 && (last == NULL || !lock_waits_is_of(&waits[i], last))) {
            uint32_t number = gp_table_append(&gathering->held.table);
            if (number == GP_INDEX_NONE)
                return -ENOMEM;
            last = &gathering->held.items[number];
            *last = (one_held_t){waits[i].holder, waits[i].sum, waits[i].names.holder, i, 0};
        }
        if (waits[i].holder != 0)
            last->count++;
        gathering->begins[i].at_ns = waits[i].from_ns;
        gathering->ends[i].at_ns = waits[i].to_ns;
    }
    for (size_t i = 0; i < gathering->held.count; i++)
        qsort(&gathering->ends[gathering->held.items[i].first], gathering->held.items[i].count, sizeof(moment_t),
              lock_waits_by_moment);
    for (size_t i = 0; i < count; i++) {
        gathering->begins[i + 1].before_ns = gathering->begins[i].before_ns + gathering->begins[i].at_ns;
        gathering->ends[i + 1].before_ns = gathering->ends[i].before_ns + gathering->ends[i].at_ns;
    }
    return 0;
}

// The time since those of moment_t[count] before `at_ns`, of all of them.
static uint64_t lock_waits_since(const moment_t *moments, size_t count, uint64_t at_ns)
{
    size_t lo = 0, hi = count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (moments[middle].at_ns < at_ns)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo * at_ns - (moments[lo].before_ns - moments[0].before_ns);
}

static uint64_t lock_waits_within(const gathering_t *gathering, const one_held_t *held, uint64_t from_ns,
                                  uint64_t to_ns)
{
    const moment_t *begins = &gathering->begins[held->first], *ends = &gathering->ends[held->first];
    return lock_waits_since(begins, held->count, to_ns) - lock_waits_since(ends, held->count, to_ns) -
           (lock_waits_since(begins, held->count, from_ns) - lock_waits_since(ends, held->count, from_ns));
}

// The first that a thread holds.
static size_t lock_waits_first(const gathering_t *gathering, uint32_t holder)
{
    size_t lo = 0, hi = gathering->held.count;
    while (lo < hi) {
        size_t middle = lo + (hi - lo) / 2;
        if (gathering->held.items[middle].holder < holder)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo;
}

// A thread that sleeps, or waits itself, has given the interpreter's lock back.
static bool lock_waits_tells(const gathering_t *gathering, const gp_sample_record_t *sample)
{
    bool is_lock = gathering->kind == GP_KIND_LOCK;
    return sample->thread != 0 && (sample->kind == GP_KIND_CPU || sample->kind == GP_KIND_PREEMPTED ||
                                   (is_lock && (sample->kind == GP_KIND_BLOCKED || sample->kind == GP_KIND_LOCK)));
}

// The work of a holder meanwhile, where the waits do not say.
static int lock_waits_take_held(void *context, const gp_sample_record_t *samples, size_t count)
{
    gathering_t *gathering = context;
    int result = 0;
    for (size_t i = 0; i < count && result == 0; i++) {
        const gp_sample_record_t *sample = &samples[i];
        uint32_t stack = gp_dataset_stack_find(gathering->asked.dataset, sample->stack_id);
        if (stack == GP_INDEX_NONE || !lock_waits_tells(gathering, sample))
            continue;
        uint64_t from_ns = sample->time_ns > sample->weight_ns ? sample->time_ns - sample->weight_ns : 0;
        for (size_t j = lock_waits_first(gathering, sample->thread);
             j < gathering->held.count && gathering->held.items[j].holder == sample->thread && result == 0 &&
             gathering->charges < CHARGES_MOST;
             j++, gathering->charges++) {
            const one_held_t *held = &gathering->held.items[j];
            uint64_t ns = lock_waits_within(gathering, held, from_ns, sample->time_ns);
            if (ns > 0)
                result = lock_waits_charge(
                    gathering, &(one_code_t){.sum = held->sum, .stack = stack, .holder = held->by, .ns = ns});
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

static void lock_waits_place(const gathering_t *gathering, const one_code_t *code, gp_finding_t *place)
{
    const gp_dataset_t *dataset = gathering->asked.dataset;
    place->function[0] = place->file[0] = '\0';
    place->line = 0;
    if (code->code != 0) {
        lock_waits_read_code(gathering, code->code, place);
    } else if (code->stack != 0) {
        gp_lock_names_t names = gp_lock_names_of(dataset, gathering->asked.symbolizer, code->stack);
        gp_explain_place_of(&gathering->asked, &dataset->facts.stacks.items[code->stack], names.count, place);
    }
}

static bool lock_waits_is_function(const void *owner, uint32_t number, const void *key)
{
    const gathering_t *gathering = owner;
    const one_function_t *function = &gathering->functions.items[number], *other = key;
    return function->sum == other->sum && function->hash == other->hash;
}

// Add a code to its function.
static int lock_waits_add_code(gathering_t *gathering, uint32_t number, const gp_finding_t *place)
{
    const one_code_t *code = &gathering->codes.items[number];
    one_function_t key = {.hash = gp_hash_more(gp_hash_bytes(place->function, strlen(place->function)),
                                               gp_hash_bytes(place->file, strlen(place->file))),
                          .sum = code->sum};
    uint64_t hash = gp_hash_more(key.hash, key.sum);
    uint32_t found = gp_index_find(&gathering->function_index, hash, lock_waits_is_function, gathering, &key);
    if (found == GP_INDEX_NONE) {
        found = gp_table_append(&gathering->functions.table);
        if (found == GP_INDEX_NONE || gp_index_add(&gathering->function_index, hash, found) < 0)
            return -ENOMEM;
        gathering->functions.items[found] = key;
    }
    one_function_t *function = &gathering->functions.items[found];
    function->ns += code->ns;
    if (code->ns > function->most_ns) {
        function->most_ns = code->ns;
        function->most = number;
    }
    return 0;
}

// The function with most time, of each lock; its line is that of the longest piece.
static int lock_waits_choose(gathering_t *gathering, gp_lock_waits_t *sums)
{
    gp_finding_t place = {.line = 0};
    int result = 0;
    for (uint32_t i = 0; i < gathering->codes.count && result == 0; i++) {
        lock_waits_place(gathering, &gathering->codes.items[i], &place);
        if (place.function[0] != '\0' && gathering->codes.items[i].ns > 0)
            result = lock_waits_add_code(gathering, i, &place);
    }
    for (size_t i = 0; i < gathering->functions.count && result == 0; i++) {
        const one_function_t *function = &gathering->functions.items[i];
        gp_lock_sum_t *sum = &sums->items[function->sum];
        if (function->ns > sum->held_ns) {
            sum->held_ns = function->ns;
            sum->most = function->most;
        }
    }
    for (size_t i = 0; i < sums->count && result == 0; i++) {
        gp_lock_sum_t *sum = &sums->items[i];
        if (sum->held_ns == 0)
            continue;
        const one_code_t *most = &gathering->codes.items[sum->most];
        lock_waits_place(gathering, most, &place);
        sum->held_ns = sum->held_ns < sum->total_ns ? sum->held_ns : sum->total_ns; // samples of one moment overlap
        sum->line = place.line;
        snprintf(sum->function, sizeof(sum->function), "%s", place.function);
        snprintf(sum->file, sizeof(sum->file), "%s", place.file);
        gp_explain_code(&place, sum->code, sizeof(sum->code));
        const char *holder = most->holder != 0 ? lock_waits_name(gathering, most->holder) : "";
        lock_waits_inner(holder, "[held by ", sum->holder, sizeof(sum->holder));
    }
    return result;
}

static int lock_waits_find_code(gathering_t *gathering, gp_lock_waits_t *sums)
{
    static const gp_reader_handlers_t handlers = {.samples = lock_waits_take_held};
    bool is_any_unknown = false;
    int result = gp_lock_holders_make(&gathering->holders, gathering->asked.dataset);
    for (size_t i = 0; i < gathering->waits.count && result == 0; i++) {
        one_wait_t *wait = &gathering->waits.items[i];
        wait->holder = wait->names.code == 0 ? lock_waits_thread_of(gathering, wait->names.holder, wait->from_ns) : 0;
        is_any_unknown |= wait->holder != 0;
        if (wait->names.code != 0)
            result = lock_waits_charge(gathering, &(one_code_t){.sum = wait->sum,
                                                                .code = wait->names.code,
                                                                .holder = wait->names.holder,
                                                                .ns = wait->to_ns - wait->from_ns});
    }
    if (result == 0 && is_any_unknown) {
        result = lock_waits_find_held(gathering);
        if (result == 0)
            result = gp_dataset_read_for(gathering->asked.dataset, &handlers, gathering);
    }
    return result == 0 ? lock_waits_choose(gathering, sums) : result;
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
        .functions = GP_TABLE_PLAIN(one_function_t),
        .held = GP_TABLE_PLAIN(one_held_t),
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
    gp_table_free(&gathering.functions.table);
    gp_table_free(&gathering.held.table);
    gp_index_free(&gathering.code_index);
    gp_index_free(&gathering.function_index);
    gp_lock_holders_free(&gathering.holders);
    free(gathering.begins);
    free(gathering.ends);
    return result;
}

void gp_lock_waits_free(gp_lock_waits_t *waits)
{
    free(waits->items);
}
