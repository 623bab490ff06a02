// SPDX-License-Identifier: MIT
#include "interpreter/layout_trial.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "interpreter/api.h"
#include "interpreter/awaits.h"
#include "interpreter/frame_walk.h"
#include "interpreter/lines.h"
#include "interpreter/peek_text.h"
#include "unwind/fde_index.h"
#include "unwind/unwind.h"

// `look` is called from each kind of frame, and with generators in each state.
static const char source[] = "def inner(look):\n"
                             "    look(None)\n" // INNER_LINE
                             "    yield 1\n"
                             "def outer(look, generator):\n"
                             "    yield from generator\n"
                             "def trial(look):\n"
                             "    look(None)\n" // TRIAL_LINE
                             "    first = inner(look)\n"
                             "    look(first)\n"
                             "    for _ in first: break\n"
                             "    look(first)\n"
                             "    second = inner(look)\n"
                             "    third = outer(look, second)\n"
                             "    for _ in third: break\n"
                             "    look(third)\n"
                             "    look(second)\n"
                             "    first.close()\n"
                             "    look(first)\n"
                             "    third.close()\n"
                             "trial(look)\n";

enum { FILE_INPUT = 257, INNER_LINE = 2, TRIAL_LINE = 7, FRAMES_MAX = 8, LINES_MAX = 1024, TEXT_MAX = 64 };
enum { FIRST_TRIED = 0x030d }; // all of those before is written down
enum { CALLS = 8, NOT_BEGUN = 1, RUNNING, PLAIN, RUNNING_AGAIN, AWAITING, AWAITED, ENDED };

static struct {
    int step;
    bool is_wrong;
    int8_t states[CALLS];
    uintptr_t awaiting;
} seen;

static uint64_t layout_trial_word_at(uintptr_t address)
{
    uint64_t word = 0;
    return gp_peek(address, &word, sizeof(word)) ? word : 0;
}

static bool layout_trial_is_text(uintptr_t object, const char *expected)
{
    char text[TEXT_MAX];
    return gp_cpython_peek_text(gp_cpython_runtime.layout, object, text, sizeof(text)) >= 0 &&
           strcmp(text, expected) == 0;
}

static uint32_t layout_trial_line_of(uintptr_t code, int index)
{
    uint8_t lines[LINES_MAX];
    uintptr_t bytes = layout_trial_word_at(code + gp_cpython_runtime.layout->code_lines);
    size_t length = layout_trial_word_at(bytes + GP_CPYTHON_OBJECT_SIZE);
    uint32_t first = (uint32_t)layout_trial_word_at(code + gp_cpython_runtime.layout->code_first_line);
    if (length > sizeof(lines) || !gp_peek(bytes + GP_CPYTHON_BYTES_DATA, lines, length))
        return 0;
    return gp_cpython_line(lines, length, first, index);
}

// Is it the code of a function of the trial, at that line? co_framesize, in words, comes behind co_nlocalsplus.
static bool layout_trial_is_code(uintptr_t word, const char *name, uint32_t line)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    uintptr_t code = gp_cpython_word_code(word);
    int stack = (int)layout_trial_word_at(code + layout->code_stack),
        locals = (int)layout_trial_word_at(code + layout->code_locals);
    int slots = (int)layout_trial_word_at(code + layout->code_locals + sizeof(int));
    return layout_trial_word_at(code + GP_CPYTHON_OBJECT_TYPE) == gp_cpython_runtime.code_type &&
           layout_trial_is_text(layout_trial_word_at(code + layout->code_name), name) &&
           layout_trial_is_text(layout_trial_word_at(code + layout->code_file), "<greenprof>") &&
           slots == stack + locals + layout->frame_bytes / (int)sizeof(void *) &&
           layout_trial_line_of(code, gp_cpython_word_index(word)) == line;
}

// The calling thread's frames: the one of `name`, and what is known of it and of the thread.
static bool layout_trial_is_leaf(const char *name, uint32_t line, int owner)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    uintptr_t frames[FRAMES_MAX], state = (uintptr_t)gp_cpython_runtime.thread_state(),
                                  leaf = gp_cpython_leaf_of(gp_peek, state);
    uintptr_t chunk = layout_trial_word_at(state + layout->state_chunk),
              top = layout_trial_word_at(state + layout->state_top);
    if (gp_cpython_walk_frames(gp_peek, leaf, 0, frames, FRAMES_MAX) == 0 ||
        !layout_trial_is_code(frames[0], name, line))
        return false;
    bool in_chunk = leaf > chunk && leaf < top && top <= chunk + layout_trial_word_at(chunk + GP_CPYTHON_CHUNK_SIZE);
    return (layout_trial_word_at(leaf + layout->frame_owner) & UINT8_MAX) == (unsigned)owner &&
           in_chunk == (owner == GP_CPYTHON_OWNER_THREAD) &&
           (pid_t)layout_trial_word_at(state + layout->state_native_id) == (pid_t)syscall(SYS_gettid);
}

static int8_t layout_trial_state_at(uintptr_t frame)
{
    int8_t state = 0;
    gp_peek(frame + (uintptr_t)(intptr_t)GP_CPYTHON_GENERATOR_STATE, &state, sizeof(state));
    return state;
}

static void layout_trial_learn_states(void)
{
    gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    bool is_told_apart = seen.states[AWAITING] != seen.states[PLAIN];
    layout->generator_created = seen.states[NOT_BEGUN];
    layout->generator_running = seen.states[RUNNING];
    layout->generator_awaiting = seen.states[is_told_apart ? AWAITING : RUNNING];
}

// The function at a program counter, or that part of it.
static bool layout_trial_find_part(uintptr_t pc, gp_fde_t *part)
{
    gp_unwind_module_t module;
    gp_cfi_section_t section;
    return gp_module_find(pc, &module) != GP_MODULE_NONE && gp_fde_find(&module.eh, pc, &section, part);
}

// Below the innermost shim, which lies in the loop's own native frame, a walk can go as far as that frame.
// Returns the program counter there; 0 = not known.
static uintptr_t layout_trial_pc_of_loop(const gp_unwind_regs_t *regs)
{
    enum { STACK_BYTES = 65536, NATIVE_MAX = 64, CALLERS = 2 }; // of the loop, up to PyEval_EvalCode(): one, or two
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    uintptr_t frames[NATIVE_MAX], code = (uintptr_t)dlsym(RTLD_DEFAULT, "PyEval_EvalCode");
    uintptr_t shim = gp_cpython_leaf_of(gp_peek, (uintptr_t)gp_cpython_runtime.thread_state());
    unsigned flags = 0;
    gp_fde_t caller;
    while (shim != 0 && (layout_trial_word_at(shim + layout->frame_owner) & UINT8_MAX) < GP_CPYTHON_OWNER_SHIM)
        shim = layout_trial_word_at(shim + layout->frame_previous);
    if (shim <= regs->sp || shim - regs->sp > STACK_BYTES)
        return 0;
    size_t depth = gp_unwind_walk_parked(regs, regs->sp, shim, frames, NATIVE_MAX, &flags);
    size_t all = gp_unwind_walk_parked(regs, regs->sp, regs->sp + STACK_BYTES, frames, NATIVE_MAX, &flags);
    for (size_t i = depth; depth > 0 && i < all && i < depth + CALLERS; i++)
        if (layout_trial_find_part(frames[i], &caller) && caller.start == code)
            return frames[depth - 1];
    return 0;
}

// Compilers put what is seldom run of a function elsewhere; profiles made of other programs make it nearly all of the
// loop.
static void layout_trial_learn_loop(const gp_unwind_regs_t *regs)
{
    gp_cpython_runtime_t *runtime = &gp_cpython_runtime;
    uintptr_t pc = layout_trial_pc_of_loop(regs);
    gp_fde_t part;
    if (pc == 0 || (pc >= runtime->loop && pc < runtime->loop_end) || !layout_trial_find_part(pc, &part))
        return;
    runtime->cold_end = part.end;
    runtime->cold = part.start;
}

// METH_O: with a generator, or None where its caller's frame is to be looked at.
static gp_py_t *layout_trial_look(gp_py_t *self, gp_py_t *object)
{
    (void)self;
    int step = seen.step++;
    const uintptr_t *frame = __builtin_frame_address(0); // the caller's frame pointer, where this returns to
    const gp_unwind_regs_t regs = {
        .pc = frame[1], .sp = (uintptr_t)(frame + 2), .fp = frame[0], .doubt = GP_UNWIND_DOUBTS_ALL};
    bool is_running = step == RUNNING || step == RUNNING_AGAIN;
    if (step == 0)
        seen.is_wrong |= !layout_trial_is_leaf("trial", TRIAL_LINE, GP_CPYTHON_OWNER_THREAD);
    if (step == 0 && !seen.is_wrong)
        layout_trial_learn_loop(&regs);
    else if (is_running)
        seen.is_wrong |= !layout_trial_is_leaf("inner", INNER_LINE, GP_CPYTHON_OWNER_GENERATOR);
    if (step > 0 && step < CALLS)
        seen.states[step] =
            layout_trial_state_at(is_running ? gp_cpython_leaf_of(gp_peek, (uintptr_t)gp_cpython_runtime.thread_state())
                                             : (uintptr_t)object + gp_cpython_runtime.generator_frame);
    if (step == AWAITING)
        seen.awaiting = (uintptr_t)object;
    uintptr_t frames[FRAMES_MAX];
    if (step == AWAITED && !seen.is_wrong) { // the walker finds what the other awaits
        layout_trial_learn_states();
        seen.is_wrong |= gp_cpython_walk_awaits(gp_peek, seen.awaiting, frames, FRAMES_MAX) != 2 ||
                         !layout_trial_is_code(frames[0], "inner", INNER_LINE + 1);
    }
    gp_py.incref(gp_py.none);
    return gp_py.none;
}

// In order: not begun, suspended, running, ended.
static bool layout_trial_states_make_sense(const int8_t *states)
{
    return states[NOT_BEGUN] < states[PLAIN] && states[NOT_BEGUN] < states[AWAITING] &&
           states[PLAIN] == states[AWAITED] && states[PLAIN] < states[RUNNING] && states[AWAITING] < states[RUNNING] &&
           states[RUNNING] < states[ENDED] && states[RUNNING] == states[RUNNING_AGAIN];
}

static void layout_trial_run(gp_py_t *builtins)
{
    static gp_py_method_t definition = {"greenprof", NULL, GP_PY_O, NULL};
    definition.function = (void *)(uintptr_t)layout_trial_look;
    gp_py_t *scope = gp_py.dict_new(), *mine = gp_py.function_new(&definition, NULL, NULL), *result = NULL;
    gp_py_t *code = gp_py.compile(source, "<greenprof>", FILE_INPUT);
    if (scope != NULL && mine != NULL && code != NULL && gp_py.dict_set(scope, "look", mine) == 0 &&
        gp_py.dict_set(scope, "__builtins__", builtins) == 0)
        result = gp_py.eval_code(code, scope, scope);
    gp_py.drop(result);
    gp_py.drop(code);
    gp_py.drop(mine);
    gp_py.drop(scope);
}

bool gp_cpython_layout_holds(void)
{
    static bool is_done;
    gp_py_t *error[3], *builtins = gp_py.dict_get(gp_py.module_dict(), "builtins");
    if (is_done || builtins == NULL || gp_cpython_runtime.layout->version < FIRST_TRIED)
        return !seen.is_wrong;
    if (gp_py.dict_get(gp_py.module_dict(), "encodings") == NULL) // Python is just being made
        return true;
    is_done = true;
    gp_py.error_fetch(&error[0], &error[1], &error[2]);
    layout_trial_run(builtins);
    gp_py.error_restore(error[0], error[1], error[2]);
    if (seen.step == CALLS) // else it was interrupted, and nothing is known
        seen.is_wrong |= !layout_trial_states_make_sense(seen.states);
    gp_cpython_runtime.is_trusted |= seen.step == CALLS && !seen.is_wrong;
    return !seen.is_wrong;
}
