// SPDX-License-Identifier: MIT
// In the handler. The innermost frame may be torn, as it may just be pushed: its addresses are checked before they are
// followed, and so are the addresses from which a new function is read.
#include "ruby_look.h"

#include "signal/thread.h"
#include "unwind/unwind.h"

enum {
    FRAMES_MAX = 1 << 15, // control frames of one context
    STACK_WORDS_MAX = 1 << 27,
    SCOPES_MAX = 32, // blocks within blocks
    NEAR = 1 << 16,  // between a fiber's machine stack and its frames, beside them

    FRAME_PC = 0,
    FRAME_ISEQ = 16,
    FRAME_EP = 32,
    BODY_CODE = 8,
    CODE_WORDS_SHIFT = 32, // of the body's first word

    TYPE_OF_FRAME = 0x7fff0001,
    TYPE_C = 0x55550001,
    TYPE_BLOCK_IN_C = 0x66660001,
    IS_BLOCK_METHOD = 0x40,
    IS_LOCAL = 0x02,
    IS_FINISH = 0x20,

    IMEMO_SVAR = 2,
    OBJECT_BYTES = GP_RUBY_OBJECT_WORDS * GP_LOOK_WORD,
};

gp_ruby_runtime_t gp_ruby_runtime;

// The context of the fiber that the calling thread is about to go on with, 0 = not known.
static __thread uintptr_t ruby_walk_next __attribute__((tls_model("initial-exec")));

typedef struct walk {
    const gp_ruby_layout_t *layout;
    uintptr_t stack, end; // the context's frames, and what they work on
    gp_peeks_t look;
} walk_t;

static inline bool ruby_walk_is_imemo(uintptr_t flags, unsigned type)
{
    return (flags & GP_RUBY_TYPE_MASK) == GP_RUBY_IMEMO && (flags >> GP_RUBY_IMEMO_SHIFT & GP_RUBY_IMEMO_MASK) == type;
}

// The method that a scope's word is of, or none.
static bool ruby_walk_read_method(walk_t *walk, uintptr_t word, bool may_be_variables, gp_ruby_method_t *method)
{
    if (!gp_look_may_read(&walk->look, word, OBJECT_BYTES))
        return false;
    uintptr_t flags = gp_look_word(word);
    if (may_be_variables && ruby_walk_is_imemo(flags, IMEMO_SVAR))
        return ruby_walk_read_method(walk, gp_look_word(word + GP_LOOK_WORD), false, method);
    if (!ruby_walk_is_imemo(flags, GP_RUBY_IMEMO_METHOD))
        return false;
    uintptr_t definition = gp_look_word(word + GP_RUBY_METHOD_DEFINITION);
    if (!gp_look_may_read(&walk->look, definition, GP_RUBY_DEFINITION_SERIAL + GP_LOOK_WORD))
        return false;
    *method = (gp_ruby_method_t){word, definition};
    return true;
}

// Scopes lie on the context's stack; those that a closure keeps, elsewhere.
static bool ruby_walk_is_scope(walk_t *walk, uintptr_t ep)
{
    bool is_here = ep >= walk->stack + 2 * GP_LOOK_WORD && ep < walk->end && ep % GP_LOOK_WORD == 0;
    return is_here || (gp_look_is_address(ep) && ep % GP_LOOK_WORD == 0 &&
                       gp_is_mapped(&walk->look.mapped, ep - 2 * GP_LOOK_WORD, 3 * GP_LOOK_WORD));
}

// The method that a frame's scope belongs to.
static bool ruby_walk_find_method(walk_t *walk, uintptr_t ep, gp_ruby_method_t *method)
{
    for (int i = 0; i < SCOPES_MAX; i++) {
        bool is_local = gp_look_word(ep) & IS_LOCAL;
        if (ruby_walk_read_method(walk, gp_look_word(ep - 2 * GP_LOOK_WORD), is_local, method))
            return true;
        ep = gp_look_word(ep - GP_LOOK_WORD) & ~(uintptr_t)3;
        if (is_local || !ruby_walk_is_scope(walk, ep))
            return false;
    }
    return false;
}

// Read an instruction sequence. Another thread's compaction may move it meanwhile, if this one runs without the lock:
// its words are believed if its type is still the same afterwards.
static bool ruby_walk_read_iseq(walk_t *walk, uintptr_t iseq, gp_ruby_key_t *key)
{
    const gp_ruby_layout_t *layout = walk->layout;
    if (!gp_look_may_read(&walk->look, iseq, OBJECT_BYTES) ||
        !ruby_walk_is_imemo(gp_look_word(iseq), GP_RUBY_IMEMO_ISEQ))
        return false;
    uintptr_t body = gp_look_word(iseq + layout->iseq_body);
    if (!ruby_walk_is_imemo(gp_look_word(iseq), GP_RUBY_IMEMO_ISEQ) ||
        !gp_look_may_read(&walk->look, body, layout->body_bytes))
        return false;
    key->object = iseq;
    key->body = body;
    key->code = gp_look_word(body + BODY_CODE);
    key->label = gp_look_word(body + layout->body_label);
    key->path = gp_look_word(body + layout->body_path);
    key->first_line = gp_look_word(body + layout->body_first_line);
    return true;
}

static uintptr_t ruby_walk_code_frame(walk_t *walk, uintptr_t frame, uintptr_t ep)
{
    gp_ruby_key_t key = {0};
    gp_ruby_method_t method = {0};
    if (!ruby_walk_read_iseq(walk, gp_look_word(frame + FRAME_ISEQ), &key))
        return 0;
    if (ruby_walk_find_method(walk, ep, &method))
        key.serial = gp_look_word(method.definition + GP_RUBY_DEFINITION_SERIAL);
    bool is_block_method = method.entry != 0 && gp_look_word(ep) & IS_BLOCK_METHOD;
    uintptr_t place = (gp_look_word(frame + FRAME_PC) - key.code) / GP_LOOK_WORD; // just-in-time code leaves it behind
    if (place > gp_look_word(key.body) >> CODE_WORDS_SHIFT)
        place = GP_RUBY_PLACE_UNKNOWN;
    return gp_ruby_function_number(&walk->look, &key, is_block_method ? GP_RUBY_BLOCK_METHOD : GP_RUBY_CODE, &method) |
           place << GP_MET_NUMBER_BITS;
}

static uintptr_t ruby_walk_c_frame(walk_t *walk, uintptr_t ep)
{
    gp_ruby_method_t method;
    if (!ruby_walk_find_method(walk, ep, &method))
        return 0;
    const gp_ruby_key_t key = {.object = method.definition,
                               .serial = gp_look_word(method.definition + GP_RUBY_DEFINITION_SERIAL)};
    return gp_ruby_function_number(&walk->look, &key, GP_RUBY_C, &method);
}

// The word of a frame; 0 = it is none that is shown: of a block written in C, or at the bottom.
//   flags: of the frame, 0 = not known
static uintptr_t ruby_walk_frame(walk_t *walk, uintptr_t frame, uintptr_t *flags)
{
    *flags = 0;
    uintptr_t ep = gp_look_word(frame + FRAME_EP), word;
    if (!ruby_walk_is_scope(walk, ep))
        return 0;
    *flags = gp_look_word(ep);
    if ((*flags & TYPE_OF_FRAME) == TYPE_C)
        word = ruby_walk_c_frame(walk, ep);
    else if (gp_look_word(frame + FRAME_ISEQ) != 0 && (*flags & TYPE_OF_FRAME) != TYPE_BLOCK_IN_C)
        word = ruby_walk_code_frame(walk, frame, ep);
    else
        return 0;
    if (gp_met_word_number(word) == 0 && gp_thread_self != NULL)
        gp_thread_count(gp_thread_self, GP_COUNTER_UNNAMED_FRAMES);
    return GP_LANGUAGE_WORD_OF(GP_LANGUAGE_RUBY) | word;
}

// Do these frames go with the stack that the signal came in on? Frames of fibers, and of
// threads but the main one, lie on or right beside their machine stack. While a fiber is being switched to, they may
// not.
static bool ruby_walk_is_here(const walk_t *walk, const gp_language_place_t *place)
{
    const gp_ruby_runtime_t *ruby = &gp_ruby_runtime;
    if (walk->stack == ruby->main_stack)
        return ruby->main_sp >= place->sp && ruby->main_sp < place->stack_hi;
    return walk->stack >= place->sp - NEAR && walk->end <= place->stack_hi + NEAR + (walk->end - walk->stack);
}

static uintptr_t ruby_walk_context(void)
{
    return gp_look_word((uintptr_t)__builtin_thread_pointer() + (uintptr_t)gp_ruby_runtime.context);
}

void gp_ruby_note_switch(uintptr_t from, uintptr_t to)
{
    enum { FIBER_BYTES = 4096 };
    if (gp_ruby_runtime.table == NULL)
        return;
    uintptr_t before = from - ruby_walk_context(); // in each fiber, the context lies as far before its registers
    ruby_walk_next = before < FIBER_BYTES ? to - before : 0;
}

// The innermost frame of the calling thread's context; 0 = there is none.
static uintptr_t ruby_walk_begin(walk_t *walk, const gp_language_place_t *place)
{
    uintptr_t context = place->pc == 0 ? ruby_walk_next : ruby_walk_context(); // 0: of a wait that is over
    if (!gp_look_may_read(&walk->look, context, 3 * GP_LOOK_WORD)) // a thread that is over leaves behind where it was
        return 0;
    walk->stack = gp_look_word(context);
    uintptr_t words = gp_look_word(context + GP_LOOK_WORD), frame = gp_look_word(context + 2 * GP_LOOK_WORD);
    walk->end = walk->stack + words * GP_LOOK_WORD;
    if (!gp_look_is_address(walk->stack) || walk->stack % GP_LOOK_WORD != 0 || words > STACK_WORDS_MAX ||
        frame < walk->stack || frame >= walk->end || (walk->end - frame) % walk->layout->frame_bytes != 0 ||
        !ruby_walk_is_here(walk, place))
        return 0;
    bool is_there = gp_is_mapped(&walk->look.mapped, frame, walk->layout->frame_bytes) &&
                    gp_page_is_mapped(&walk->look.mapped, walk->end - 1);
    return is_there ? frame : 0;
}

size_t gp_ruby_walk(const gp_language_place_t *place, uintptr_t *frames, size_t max, unsigned *flags)
{
    walk_t walk = {.layout = gp_ruby_runtime.layout};
    uintptr_t frame = ruby_walk_begin(&walk, place), bytes = walk.layout->frame_bytes;
    size_t depth = 0, left = frame != 0 ? (walk.end - frame) / bytes - 1 : 0; // the last one was made to begin with
    if (left > FRAMES_MAX)
        return 0;
    for (; left > 0 && depth < max; frame += bytes, left--) {
        uintptr_t of_frame, word = ruby_walk_frame(&walk, frame, &of_frame);
        if (word != 0)
            frames[depth++] = word;
        if (depth > 0 && of_frame & IS_FINISH)
            frames[depth - 1] |= GP_LANGUAGE_ENTRY;
        if (depth == 1 && !walk.look.is_sure && left > max) { // the leaf and the root end
            frame += (left - max) * bytes;
            left = max;
            *flags |= GP_UNWIND_TRUNCATED;
        }
        walk.look.is_sure = true;
    }
    return depth;
}

bool gp_ruby_is_loop(uintptr_t pc)
{
    return pc - gp_ruby_runtime.loop < gp_ruby_runtime.loop_end - gp_ruby_runtime.loop;
}

bool gp_ruby_is_own(uintptr_t pc)
{
    return pc - gp_ruby_runtime.code < gp_ruby_runtime.code_end - gp_ruby_runtime.code;
}
