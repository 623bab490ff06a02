// SPDX-License-Identifier: MIT
#include "collect/polled.h"

#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/index.h"
#include "base/memory.h"
#include "coro/coro_name.h"
#include "coro/registry.h"
#include "model/kinds.h"
#include "signal/ledger_edges.h"
#include "signal/poll.h"

enum {
    KNOWN_MAX = 1 << 16, // coroutines at a time
    NAME_EVERY_NS = 100000000,
    LOOKED_AT_BYTES = 1024, // of an object, for where its name is
    HEAD_BYTES = 256,       // of an object, in which all words of layouts are
    OVER_MAX = 1 << 10,
};

typedef struct polled {
    uintptr_t object;
    uint64_t identity;
    uintptr_t lo, hi;
    prof_coro_t *coro; // NULL where memory was short
    uint64_t id;
    uint64_t named; // ticks at which its name was last read
    bool recent;    // sampled since there were last too many
} polled_t;

static polled_t *known;
static size_t known_count, known_capacity;
static gp_index_t known_index; // by object
static prof_coro_t
    *over[OVER_MAX]; // not retired before the round in which their last samples were drained has reported them
static size_t over_count;

// Copy as much as is still there.
static size_t polled_peek(uintptr_t from, void *to, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
    ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got == (ssize_t)bytes || from >> 12 == (from + bytes - 1) >> 12)
        return got > 0 ? (size_t)got : 0;
    local.iov_len = remote.iov_len = 4096 - (from & 4095); // the kernel may copy nothing where it cannot copy all
    got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

static void polled_end(prof_coro_t *coro)
{
    if (coro == NULL)
        return;
    if (over_count < OVER_MAX)
        over[over_count++] = coro;
    else
        gp_coro_retire(coro);
}

void gp_polled_round(void)
{
    while (over_count > 0)
        gp_coro_retire(over[--over_count]);
}

static bool polled_is(const void *owner, uint32_t number, const void *object)
{
    return ((const polled_t *)owner)[number].object == *(const uintptr_t *)object;
}

// Where there are too many, those go that were not sampled since the last time. Where most were, all go: each is
// another coroutine from then on.
static void polled_make_room(void)
{
    size_t recent = 0, kept = 0;
    if (known_count < KNOWN_MAX)
        return;
    for (size_t i = 0; i < known_count; i++)
        recent += known[i].recent;
    gp_index_clear(&known_index);
    for (size_t i = 0; i < known_count; i++)
        if (recent < KNOWN_MAX / 4 * 3 && known[i].recent &&
            gp_index_add(&known_index, gp_hash_u64(known[i].object), (uint32_t)kept) == 0) {
            known[kept] = known[i];
            known[kept++].recent = false;
        } else
            polled_end(known[i].coro);
    known_count = kept;
}

// The record of this object, made where there is none; NULL where memory is short.
static polled_t *polled_of(uintptr_t object)
{
    polled_make_room();
    uint32_t number = gp_index_find(&known_index, gp_hash_u64(object), polled_is, known, &object);
    if (number != GP_INDEX_NONE)
        return &known[number];
    if (gp_grow(&known, &known_capacity, known_count, sizeof(*known)) < 0 ||
        gp_index_add(&known_index, gp_hash_u64(object), (uint32_t)known_count) < 0)
        return NULL;
    known[known_count] = (polled_t){.object = object};
    return &known[known_count++];
}

static bool polled_is_text(const char *text, size_t size)
{
    size_t len = strnlen(text, size);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            return false;
    return len > 0 && len < size;
}

// Where in objects the pointer to a name is: in one with a short name, it points right behind itself.
static size_t polled_find_name(uintptr_t object)
{
    uintptr_t words[LOOKED_AT_BYTES / sizeof(uintptr_t)];
    size_t count = polled_peek(object, words, sizeof(words)) / sizeof(uintptr_t);
    for (size_t i = 1; i + 1 < count; i++)
        if (words[i] == object + (i + 1) * sizeof(uintptr_t) &&
            polled_is_text((const char *)&words[i + 1], (count - i - 1) * sizeof(uintptr_t)))
            return i * sizeof(uintptr_t);
    return 0;
}

static bool polled_is_same(const gp_poll_layout_t *layout, const polled_t *polled)
{
    char head[HEAD_BYTES] __attribute__((aligned(8))) = {0};
    return layout->id[0].bytes == 0 || (polled_peek(polled->object, head, sizeof(head)) > 0 &&
                                        gp_poll_identity(layout, (uintptr_t)head) == polled->identity);
}

static void polled_read_name(gp_poll_t *poll, polled_t *polled)
{
    char text[GP_CORO_NAME_SIZE] = "", before[GP_CORO_NAME_SIZE];
    uintptr_t at = 0;
    polled->named = gp_ticks();
    if (!polled_is_same(poll->layout, polled))
        return;
    if (poll->name_at == 0)
        poll->name_at = polled_find_name(polled->object);
    if (poll->name_at == 0 || polled_peek(polled->object + poll->name_at, &at, sizeof(at)) != sizeof(at))
        return;
    size_t got = polled_peek(at, text, sizeof(text));
    if (got == sizeof(text)) // a long one is cut
        text[--got] = '\0';
    if (!polled_is_text(text, got + 1) || !polled_is_same(poll->layout, polled))
        return;
    gp_coro_name_get(polled->coro, before);
    if (strcmp(before, text) != 0)
        prof_coro_name(polled->coro, text);
}

static void polled_make(const gp_poll_answer_t *answer, polled_t *polled)
{
    gp_coro_birth_t birth = {.lo = answer->lo, .hi = answer->hi, .kind = GP_CORO_POLLED};
    polled_end(polled->coro); // the object was used for another one
    *polled = (polled_t){.object = answer->object, .identity = answer->identity, .lo = answer->lo, .hi = answer->hi};
    polled->coro = gp_coro_new(&birth);
    polled->id = polled->coro != NULL ? atomic_load_explicit(&polled->coro->id, memory_order_relaxed) : 0;
}

static polled_t *polled_find_answer(const gp_poll_answer_t *answer)
{
    polled_t *polled = polled_of(answer->object);
    if (polled == NULL)
        return NULL;
    if (polled->coro == NULL || polled->identity != answer->identity || polled->lo != answer->lo ||
        polled->hi != answer->hi)
        polled_make(answer, polled);
    if (polled->coro == NULL)
        return NULL;
    polled->recent = true;
    if (polled->named == 0 || gp_ticks_to_ns(gp_ticks() - polled->named) > NAME_EVERY_NS)
        polled_read_name(answer->poll, polled);
    return polled;
}

// A switch in progress is rare, and mostly one of few coroutines.
static polled_t *polled_find_stack(uintptr_t sp)
{
    static size_t last;
    for (size_t i = 0; i < known_count; i++) {
        polled_t *polled = &known[(last + i) % known_count];
        if (polled->coro != NULL && sp >= polled->lo && sp < polled->hi) {
            last = (size_t)(polled - known);
            return polled;
        }
    }
    return NULL;
}

static void polled_move_time(prof_coro_t *from, prof_coro_t *to, const gp_sample_t *sample)
{
    gp_coro_add(&gp_coro_rare(to)->polled_cpu_ns, sample->weight_ns);
    gp_coro_add(&gp_coro_rare(to)->polled_slice_ns, sample->weight_ns + sample->off_ns);
    gp_coro_add(&gp_coro_rare(from)->polled_cpu_ns, (uint64_t)-sample->weight_ns);
    gp_coro_add(&gp_coro_rare(from)->polled_slice_ns, (uint64_t) - (sample->weight_ns + sample->off_ns));
}

prof_coro_t *gp_polled_owner(gp_thread_t *thread, const gp_sample_t *sample, uint64_t *id)
{
    gp_poll_answer_t answer;
    memcpy(&answer, &sample->frames[sample->depth], sample->flags & GP_SAMPLE_POLLED ? sizeof(answer) : 0);
    polled_t *found = sample->flags & GP_SAMPLE_POLLED ? polled_find_answer(&answer)
                                                       : polled_find_stack(sample->frames[sample->depth]);
    if (found == NULL)
        return NULL;
    polled_move_time(thread->root, found->coro, sample);
    *id = found->id;
    return found->coro;
}
