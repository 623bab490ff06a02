// SPDX-License-Identifier: MIT
// Memory of a live coroutine, and the rest of one that is over.
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/mman.h>
#include <unistd.h>

#include "cmocka_all.h"
#include "coro/registry.h"
#include "signal/ledger_edges.h"

enum { MANY = 4 * GP_CORO_PIECE, STACK = 65536, BYTES_MAX = 200 };

static const uintptr_t stacks = 0x10000000000;

// Resident bytes of the mapping that holds an address.
static size_t resident_at(const void *address)
{
    char line[512];
    uintptr_t lo, hi, at = (uintptr_t)address;
    size_t kib = 0;
    bool inside = false, known = false;
    FILE *file = fopen("/proc/self/smaps", "re");
    assert_non_null(file);
    while (!known && fgets(line, sizeof(line), file) != NULL) {
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &lo, &hi) == 2)
            inside = at >= lo && at < hi;
        known = inside && sscanf(line, "Rss: %zu kB", &kib) == 1;
    }
    fclose(file);
    assert_true(known);
    return kib * 1024;
}

// A kernel without a page of zeros gives a page to what is only read: some virtual machines' do.
static bool reads_take_memory(void)
{
    enum { PAGE = 4096 };
    char *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(page != MAP_FAILED && *(volatile char *)page == 0);
    bool is_own = false;
    uint64_t entry = 0; // bit 56: mapped here alone, as the page of zeros is not
    int fd = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && pread(fd, &entry, sizeof(entry), (off_t)((uintptr_t)page / PAGE * sizeof(entry))) == sizeof(entry))
        is_own = entry >> 56 & 1;
    close(fd);
    munmap(page, PAGE);
    return is_own;
}

static prof_coro_t *make(size_t number)
{
    return prof_coro_create((const void *)(stacks + number * STACK), STACK, NULL);
}

static void a_chunk_of_live_ones_is_small(void **state)
{
    (void)state;
    size_t full = 0, all = 0;
    for (size_t i = 0; i < MANY; i++)
        assert_non_null(make(i));
    for (uint32_t i = 1; i <= MANY / GP_CORO_PIECE; i++) {
        const gp_coro_chunk_t *chunk = gp_coro_chunks[i];
        assert_non_null(chunk);
        bool is_full = chunk->records[0].id != 0 && chunk->records[GP_CORO_PIECE - 1].id != 0;
        bool has_thread = false; // its rare part says which
        for (size_t at = 0; at < GP_CORO_PIECE; at++)
            has_thread |= chunk->records[at].kind == GP_CORO_THREAD;
        full += is_full && !has_thread;
        all += is_full && !has_thread ? resident_at(chunk) : 0;
    }
    assert_in_range(full, 2, MANY / GP_CORO_PIECE);
    size_t most = reads_take_memory() ? sizeof(gp_coro_chunk_t) / GP_CORO_PIECE + 8 : BYTES_MAX;
    assert_in_range(all / (full * GP_CORO_PIECE), sizeof(prof_coro_t), most);
}

static void records_have_numbers_and_parts_of_their_own(void **state)
{
    (void)state;
    prof_coro_t *coro = make(MANY), *next = make(MANY + 1);
    assert_ptr_equal(gp_coro_numbered(coro->number), coro);
    assert_ptr_equal(gp_coro_numbered(next->number), next);
    gp_coro_add(gp_coro_blocked_ns(coro), 5);
    assert_int_equal(gp_ledger_edge_load(gp_coro_blocked_ns(next)), 0);
    prof_coro_destroy(coro);
    prof_coro_t *again = make(MANY);
    assert_ptr_equal(again, coro);
    assert_int_equal(gp_ledger_edge_load(gp_coro_blocked_ns(again)), 0);
}

static int is_sampling(void)
{
    return 1;
}

static void a_retired_one_says_which_it_was_and_when(void **state)
{
    (void)state;
    gp_coro_set_draining(is_sampling);
    prof_coro_t *first = make(MANY + 2), *second = make(MANY + 3);
    uint64_t first_id = first->id, second_id = second->id, before = gp_ticks();
    first->park_sp = first->park_fp = stacks;
    prof_coro_destroy(first);
    prof_coro_destroy(second);
    prof_coro_t *list = gp_coro_take_retired();
    assert_ptr_equal(list, second);
    assert_ptr_equal(gp_coro_next_retired(list), first);
    assert_null(gp_coro_next_retired(first));
    assert_int_equal(first->id, 0);
    assert_int_equal(gp_ledger_edge_load(&first->final_id), first_id);
    assert_int_equal(gp_ledger_edge_load(&second->final_id), second_id);
    assert_in_range(gp_ledger_edge_load(&first->final_ticks), before, gp_ledger_edge_load(&second->final_ticks));
    assert_true(gp_ledger_edge_load(&second->final_ticks) <= gp_ticks());
    gp_coro_recycle(list);
    assert_ptr_equal(make(MANY + 4), second);
    assert_ptr_equal(make(MANY + 5), first);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_chunk_of_live_ones_is_small),
        cmocka_unit_test(records_have_numbers_and_parts_of_their_own),
        cmocka_unit_test(a_retired_one_says_which_it_was_and_when),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
