// SPDX-License-Identifier: MIT
// Words in front of the frames of a wait for a lock: its owner, and the lock itself.
//
// Model: a word has the form of a frame of a language of its own, which no stack has. Threads make words while they
// wait; the collector turns each into the location of a function with a name in brackets. Signals: safe, where nothing
// else is said.
#pragma once

#include <stddef.h>

#include "signal/language.h"

enum {
    GP_LOCK_WORD_KIND = 56,
    GP_LOCK_IS_THREAD = 0,
    GP_LOCK_IS_ADDRESS = 1,
    GP_LOCK_IS_TIMED = 2,
    GP_LOCK_IS_CORO = 3,
    GP_LOCK_IS_CORO_ID = 4
};

// "[held by NAME]".
//   index: of the thread that has the lock, which cannot end meanwhile.
static inline uintptr_t gp_lock_word_thread(uint32_t index)
{
    return GP_LANGUAGE_WORD_OF(GP_LANGUAGE_LOCKS) | (uintptr_t)GP_LOCK_IS_THREAD << GP_LOCK_WORD_KIND | index;
}

// "[held by coroutine NAME]".
//   number: of the record of the coroutine that has the lock (gp_coro_numbered()).
static inline uintptr_t gp_lock_word_coro(uint32_t number)
{
    return GP_LANGUAGE_WORD_OF(GP_LANGUAGE_LOCKS) | (uintptr_t)GP_LOCK_IS_CORO << GP_LOCK_WORD_KIND | number;
}

// "[held by coroutine NAME (ID)]" for such a word; others as they are.
static inline uintptr_t gp_lock_word_with_id(uintptr_t word)
{
    uintptr_t plain = gp_lock_word_coro(0), named = (uintptr_t)GP_LOCK_IS_CORO_ID << GP_LOCK_WORD_KIND;
    return word >> 32 == plain >> 32 ? GP_LANGUAGE_WORD_OF(GP_LANGUAGE_LOCKS) | named | (uint32_t)word : word;
}

// "[lock 0x...]": no more is known.
static inline uintptr_t gp_lock_word_address(uintptr_t address)
{
    return GP_LANGUAGE_WORD_OF(GP_LANGUAGE_LOCKS) | (uintptr_t)GP_LOCK_IS_ADDRESS << GP_LOCK_WORD_KIND | address;
}

// "[timed]": the wait ends by itself.
static inline uintptr_t gp_lock_word_timed(void)
{
    return GP_LANGUAGE_WORD_OF(GP_LANGUAGE_LOCKS) | (uintptr_t)GP_LOCK_IS_TIMED << GP_LOCK_WORD_KIND;
}

// The location of such a word. Collector only, drain lock held.
gp_loc_t gp_lock_word_locate(uintptr_t word);

// That of a name in brackets. The same.
gp_loc_t gp_lock_word_name(const char *text, size_t length);
