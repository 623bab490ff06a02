// SPDX-License-Identifier: MIT
// Words in front of the frames of a wait for a lock: its owner, and the lock itself.
//
// Model: a word has the form of a frame of a language of its own, which no stack has. Threads make words while they
// wait; the collector turns each into the location of a function with a name in brackets. Signals: safe, where nothing
// else is said.
#pragma once

#include <stddef.h>

#include "signal/language.h"

enum { GP_LOCK_WORD_KIND = 56, GP_LOCK_IS_THREAD = 0, GP_LOCK_IS_ADDRESS = 1, GP_LOCK_IS_TIMED = 2 };

// "[held by NAME]".
//   index: of the thread that has the lock, which cannot end meanwhile.
static inline uintptr_t gp_lock_word_thread(uint32_t index)
{
    return GP_LANGUAGE_WORD_OF(GP_LANGUAGE_LOCKS) | (uintptr_t)GP_LOCK_IS_THREAD << GP_LOCK_WORD_KIND | index;
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
