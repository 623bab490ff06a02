// SPDX-License-Identifier: MIT
// The layouts of the shapes' runtimes, from their own headers.
#ifndef SHAPE_RUNTIME_H
#define SHAPE_RUNTIME_H

#include <stddef.h>

// brpc, src/bthread/context.h
long bthread_jump_fcontext(void **from, void *to, long value, _Bool preserve_fpu);
void *bthread_make_fcontext(void *top, size_t size, void (*run)(long));

// libaco 1.2, aco.h
typedef struct aco {
    void *reg[9];
} aco_t;
typedef struct aco_share_stack {
    void *ptr;
    size_t sz;
} aco_share_stack_t;
void acosw(aco_t *from, aco_t *to);
aco_t *aco_create(aco_t *main_co, aco_share_stack_t *stack, size_t save_size, void (*run)(void), void *argument);

// Tencent's libco, coctx.h: C++, but for the switch
typedef struct coctx {
    void *regs[14];
    size_t ss_size;
    char *ss_sp;
} coctx_t;
void coctx_swap(coctx_t *from, coctx_t *to);
int coctx_make(coctx_t *context, void *(*run)(void *, void *), const void *first,
               const void *second) __asm__("_Z10coctx_makeP7coctx_tPFPvS1_S1_EPKvS5_");

// higan's libco, libco.h
void co_switch(void *to);
void *co_create(unsigned bytes, void (*run)(void));
void *co_derive(void *memory, unsigned bytes, void (*run)(void));
void *co_active(void);

// minicoro 0.2, minicoro.h
typedef struct mco_coro {
    void *context;
    int state;
    void (*func)(struct mco_coro *co);
    struct mco_coro *prev_co;
    void *user_data;
    size_t coro_size;
    void *allocator_data;
    void (*dealloc_cb)(void *, size_t, void *);
    void *stack_base;
    size_t stack_size;
} mco_coro;
typedef struct mco_desc {
    void (*func)(mco_coro *co);
    size_t stack_size;
} mco_desc;
int mco_create(mco_coro **out, mco_desc *description);
int mco_resume(mco_coro *co);
int mco_yield(mco_coro *co);

// libdill 2.14, libdill.h
int dill_prologue(void **context, void **top, size_t bytes, int bundle, const char *file, int line);

// PhotonLibOS 0.6 to 0.9, thread/thread.cpp
typedef struct photon_thread {
    unsigned long links_and_state[8];
    void *argument;
    void *(*start)(void *);
    char *buf, *stackful_alloc_top;
    unsigned long stack_size;
} photon_thread;
photon_thread *photon_thread_create(void *(*start)(void *), void *argument, unsigned long stack_size,
                                    unsigned short reserved) __asm__("_ZN6photon13thread_createEPFPvS0_ES0_mt");
photon_thread *photon_thread_create_flags(void *(*start)(void *), void *argument, unsigned long stack_size,
                                          unsigned reserved, // later: uint32_t reserved, uint64_t flags
                                          unsigned long flags) __asm__("_ZN6photon13thread_createEPFPvS0_ES0_mjm");
void **photon_stack_pointer(photon_thread *thread);

// libtask, taskimpl.h, amd64-ucontext.h
typedef struct libtask_ucontext {
    unsigned long mask[16], registers_before[23], rsp, more[76];
    void *link;
    struct {
        void *ss_sp;
        int ss_flags;
        size_t ss_size;
    } uc_stack;
} libtask_ucontext;
int libtask_swapcontext(libtask_ucontext *from, const libtask_ucontext *to) __asm__("swapcontext");
void libtask_makecontext(libtask_ucontext *context, void (*run)(void), int count, ...) __asm__("makecontext");
int taskcreate(void (*run)(void *), void *argument, unsigned stack_size);
libtask_ucontext *task_context(int id);

#endif
