// SPDX-License-Identifier: MIT
#include "collect/lock_words.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "collect/functions.h"
#include "coro/coro_name.h"
#include "coro/task.h"
#include "coro/threads.h"

static const gp_thread_t *lock_words_thread(uint32_t index)
{
    const gp_thread_t *thread = atomic_load_explicit(&gp_thread_list, memory_order_acquire);
    while (thread != NULL && thread->index != index)
        thread = thread->next;
    return thread;
}

gp_loc_t gp_lock_word_name(const char *text, size_t length)
{
    uint32_t function = gp_functions_number(text, length, "", 0, 0);
    return GP_LOC(GP_MODULE_LANGUAGE, GP_LANGUAGE_OFFSET(function, 0));
}

// Threads of C without a name have the program's, which tells none from another.
static void lock_words_thread_name(const gp_thread_t *thread, char name[GP_CORO_NAME_SIZE])
{
    char own[64] = "", program[64] = "";
    pid_t tid = atomic_load_explicit(&thread->tid, memory_order_relaxed);
    bool is_main = tid == getpid(), has_language = atomic_load_explicit(&gp_language, memory_order_acquire) != NULL;
    gp_coro_name_get(thread->root, name);
    if (name[0] != '\0')
        return;
    if (!is_main && gp_task_read(tid, "comm", own, sizeof(own)) &&
        gp_task_read(getpid(), "comm", program, sizeof(program)) && strcmp(own, program) != 0) {
        snprintf(name, GP_CORO_NAME_SIZE, "%.*s", (int)strcspn(own, "\n"), own);
        return;
    }
    if (is_main && has_language)
        snprintf(name, GP_CORO_NAME_SIZE, "MainThread");
    else
        snprintf(name, GP_CORO_NAME_SIZE, "thread %d", tid);
}

static gp_loc_t lock_words_holder(uint32_t index)
{
    char name[GP_CORO_NAME_SIZE] = "", text[GP_CORO_NAME_SIZE + sizeof("[held by ]")];
    const gp_thread_t *thread = lock_words_thread(index);
    if (thread == NULL)
        return GP_LOC_OWN;
    lock_words_thread_name(thread, name);
    return gp_lock_word_name(text, (size_t)snprintf(text, sizeof(text), "[held by %s]", name));
}

gp_loc_t gp_lock_word_locate(uintptr_t word)
{
    char text[64];
    uintptr_t rest = word & (((uintptr_t)1 << GP_LOCK_WORD_KIND) - 1);
    switch (word >> GP_LOCK_WORD_KIND & 7) {
    case GP_LOCK_IS_THREAD:
        return lock_words_holder((uint32_t)rest);
    case GP_LOCK_IS_ADDRESS:
        return gp_lock_word_name(text, (size_t)snprintf(text, sizeof(text), "[lock 0x%" PRIxPTR "]", rest));
    default:
        return gp_lock_word_name("[timed]", sizeof("[timed]") - 1);
    }
}
