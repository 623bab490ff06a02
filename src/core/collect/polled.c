// SPDX-License-Identifier: MIT
#include "collect/polled.h"

#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "coro/coro_name.h"
#include "coro/own_memory.h"
#include "coro/registry.h"
#include "model/kinds.h"
#include "signal/edge.h"
#include "signal/poll.h"

enum {
    SLOTS_MIN = 1 << 10,
    SLOTS_MAX = 1 << 17, // half of them in use: coroutines that are known at a time
    NAME_EVERY_NS = 100000000,
    LOOKED_AT_BYTES = 1024, // of an object, for where its name is
    HEAD_BYTES = 256,       // of an object, in which all words of layouts are
    OVER_MAX = 1 << 10,
};

typedef struct polled {
    uintptr_t object; // 0 = a free slot
    uint64_t identity;
    uintptr_t lo, hi;
    prof_coro_t *coro;
    uint64_t id;
    uint64_t named; // ticks at which its name was last read
    bool recent;    // sampled since the table was last found to be full
} polled_t;

static polled_t *slots; // open addressing, at most half full
static size_t slot_count, used;
static prof_coro_t
    *over[OVER_MAX]; // not retired before the round in which their last samples were drained has reported them
static size_t over_count;

// Of what is not there any more, as much as is there.
static size_t peek(uintptr_t from, void *to, size_t bytes)
{
    struct iovec local = {to, bytes}, remote = {(void *)from, bytes};
    ssize_t got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    if (got == (ssize_t)bytes || from >> 12 == (from + bytes - 1) >> 12)
        return got > 0 ? (size_t)got : 0;
    local.iov_len = remote.iov_len = 4096 - (from & 4095); // the kernel may copy nothing where it cannot copy all
    got = process_vm_readv(getpid(), &local, 1, &remote, 1, 0);
    return got > 0 ? (size_t)got : 0;
}

static void end(prof_coro_t *coro)
{
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

static polled_t *slot_of(uintptr_t object)
{
    size_t at = (size_t)((object * 0x9e3779b97f4a7c15ull) >> 32) & (slot_count - 1);
    while (slots[at].object != 0 && slots[at].object != object)
        at = (at + 1) & (slot_count - 1);
    return &slots[at];
}

// Put those that are kept into a table of `count` slots. Returns false where memory is short.
static bool rebuild(size_t count, bool only_recent)
{
    polled_t *old = slots, *made = gp_own_map(count * sizeof(*made));
    size_t old_count = slot_count;
    if (made == NULL)
        return false;
    slots = made;
    slot_count = count;
    used = 0;
    for (size_t i = 0; i < old_count; i++) {
        if (old[i].object == 0)
            continue;
        if (only_recent && !old[i].recent) {
            end(old[i].coro);
            continue;
        }
        polled_t *slot = slot_of(old[i].object);
        *slot = old[i];
        slot->recent = !only_recent;
        used++;
    }
    if (old != NULL)
        munmap(old, old_count * sizeof(*old));
    return true;
}

static bool make_room(void)
{
    if (slots == NULL)
        return rebuild(SLOTS_MIN, false);
    if (used * 2 < slot_count)
        return true;
    if (slot_count < SLOTS_MAX)
        return rebuild(slot_count * 2, false);
    if (!rebuild(SLOTS_MAX, true))
        return false;
    // Where they are all in use, all of them go: each is another coroutine from then on.
    return used * 8 < SLOTS_MAX * 3u || rebuild(SLOTS_MAX, true);
}

static bool is_text(const char *text, size_t size)
{
    size_t len = strnlen(text, size);
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < ' ' || text[i] == 127)
            return false;
    return len > 0 && len < size;
}

// Where in objects the pointer to a name is: in one with a short name, it points right behind itself.
static size_t find_name(uintptr_t object)
{
    uintptr_t words[LOOKED_AT_BYTES / sizeof(uintptr_t)];
    size_t count = peek(object, words, sizeof(words)) / sizeof(uintptr_t);
    for (size_t i = 1; i + 1 < count; i++)
        if (words[i] == object + (i + 1) * sizeof(uintptr_t) &&
            is_text((const char *)&words[i + 1], (count - i - 1) * sizeof(uintptr_t)))
            return i * sizeof(uintptr_t);
    return 0;
}

static bool is_same(const gp_poll_layout_t *layout, const polled_t *polled)
{
    char head[HEAD_BYTES] __attribute__((aligned(8))) = {0};
    return layout->id[0].bytes == 0 || (peek(polled->object, head, sizeof(head)) > 0 &&
                                        gp_poll_identity(layout, (uintptr_t)head) == polled->identity);
}

static void read_name(gp_poll_t *poll, polled_t *polled)
{
    char text[GP_CORO_NAME_SIZE] = "", before[GP_CORO_NAME_SIZE];
    uintptr_t at = 0;
    polled->named = gp_ticks();
    if (poll->layout->name == GP_POLL_NAME_NONE || !is_same(poll->layout, polled))
        return;
    if (poll->name_at == 0)
        poll->name_at = find_name(polled->object);
    if (poll->name_at == 0 || peek(polled->object + poll->name_at, &at, sizeof(at)) != sizeof(at))
        return;
    size_t got = peek(at, text, sizeof(text));
    if (got == sizeof(text)) // a long one is cut
        text[--got] = '\0';
    if (!is_text(text, got + 1) || !is_same(poll->layout, polled))
        return;
    gp_coro_name_get(polled->coro, before);
    if (strcmp(before, text) != 0)
        prof_coro_name(polled->coro, text);
}

static bool make(const gp_poll_answer_t *answer, polled_t *slot)
{
    gp_coro_birth_t birth = {.lo = answer->lo, .hi = answer->hi, .kind = GP_CORO_POLLED};
    if (slot->object != 0) // it was used for another one
        end(slot->coro);
    else
        used++;
    *slot = (polled_t){.object = answer->object, .identity = answer->identity, .lo = answer->lo, .hi = answer->hi};
    slot->coro = gp_coro_new(&birth);
    slot->id = slot->coro != NULL ? atomic_load_explicit(&slot->coro->id, memory_order_relaxed) : 0;
    return slot->coro != NULL;
}

static polled_t *find_answer(const gp_poll_answer_t *answer)
{
    if (!make_room())
        return NULL;
    polled_t *slot = slot_of(answer->object);
    bool is_known = slot->object != 0 && slot->coro != NULL && slot->identity == answer->identity &&
                    slot->lo == answer->lo && slot->hi == answer->hi;
    if (!is_known && !make(answer, slot))
        return NULL;
    slot->recent = true;
    if (slot->named == 0 || gp_ticks_to_ns(gp_ticks() - slot->named) > NAME_EVERY_NS)
        read_name(answer->poll, slot);
    return slot;
}

// A switch in progress is rare, and mostly one of few coroutines.
static polled_t *find_stack(uintptr_t sp)
{
    static size_t last;
    for (size_t i = 0; i < slot_count; i++) {
        polled_t *slot = &slots[(last + i) & (slot_count - 1)];
        if (slot->object != 0 && slot->coro != NULL && sp >= slot->lo && sp < slot->hi) {
            last = (size_t)(slot - slots);
            return slot;
        }
    }
    return NULL;
}

static void move_time(prof_coro_t *from, prof_coro_t *to, const gp_sample_t *sample)
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
    polled_t *found =
        sample->flags & GP_SAMPLE_POLLED ? find_answer(&answer) : find_stack(sample->frames[sample->depth]);
    if (found == NULL)
        return NULL;
    move_time(thread->root, found->coro, sample);
    *id = found->id;
    return found->coro;
}
