// SPDX-License-Identifier: MIT
// In the handler. The innermost frame may be torn, as its code may just be freed: addresses in it are checked before
// they are followed. Frames further out are whole, as each outlives the one it calls; but for the caller of a
// generator that is just being resumed.
#include "php_frames.h"

#include "signal/region.h"
#include "signal/thread.h"
#include "unwind/unwind.h"

enum {
    LISTED_MAX = 8192, // frames, each a look at other memory
    NEAR = 4096,       // on the same machine stack, between two places in the switch of Fibers
    DELEGATES_MAX = 16,
    SPILLED_WORDS = 48, // where a register may be kept meanwhile

    FRAME_PLACE = 0, // of its instruction
    FRAME_FUNCTION = 24,
    FRAME_THIS = 32,
    FRAME_INFO = 40,
    FRAME_BEFORE = 48,
    FRAME_BYTES = 80,
    IS_CODE = 1 << 16, // bits of FRAME_INFO
    IS_TOP = 1 << 17,

    TYPE_IN_C = 1, // a function's first byte
    TYPE_USER = 2,
    TYPE_TEXT = 4, // evaluated
    FLAGS = 4,
    IS_GENERATOR = 1 << 24,
    NAME = 8,
    CLASS = 16,
    IN_C_BYTES = 24,
    INSTRUCTIONS_COUNT = 80,
    INSTRUCTIONS = 88,
    FILE_NAME = 152,
    FIRST_LINE = 160,
    LAST_LINE = 164,
    USER_BYTES = 168,
    CLASS_NAME = 8,

    INSTRUCTION_BYTES = 32,
    INSTRUCTION_LINE = 24,

    GENERATOR_FRAME = 56,
    GENERATOR_PARENT = 152,
    GENERATOR_STAND_IN = 184, // a frame without a function, in place of those that delegate to the running one

    REGISTER_FRAME = 14, // of execute_ex(): r14, r15
    REGISTER_PLACE = 15,
    REGISTERS = 16,
};

gp_php_runtime_t gp_php_runtime;

typedef struct walk {
    const gp_language_place_t *place;
    uintptr_t *frames;
    size_t max, depth;
    gp_peeks_t look;
} walk_t;

// Is it the frame below a Fiber's function? Other functions without a name have an object.
static bool php_walk_is_bottom(walk_t *walk, uintptr_t frame)
{
    uintptr_t function = gp_look_word(frame + FRAME_FUNCTION);
    return gp_look_word(frame + FRAME_PLACE) == 0 && gp_look_half(frame + FRAME_INFO) == 0 && function != 0 &&
           gp_look_may_read(&walk->look, function, IN_C_BYTES) && gp_look_byte(function) == TYPE_IN_C &&
           gp_look_word(function + NAME) == 0;
}

// The line at a frame's instruction, which execute_ex() has in a register; 0 = not known.
static uint32_t php_walk_line(walk_t *walk, uintptr_t frame, uintptr_t function)
{
    uintptr_t code = gp_look_word(function + INSTRUCTIONS), at = gp_look_word(frame + FRAME_PLACE);
    uintptr_t bytes = (uintptr_t)gp_look_half(function + INSTRUCTIONS_COUNT) * INSTRUCTION_BYTES;
    const uintptr_t *registers = walk->depth == 0 ? walk->place->gp : NULL;
    if (registers != NULL && registers[REGISTER_FRAME] == frame && registers[REGISTER_PLACE] - code < bytes)
        at = registers[REGISTER_PLACE];
    if (at - code >= bytes || (at - code) % INSTRUCTION_BYTES != 0 ||
        !gp_look_may_read(&walk->look, at, INSTRUCTION_BYTES))
        return 0;
    uint32_t line = gp_look_half(at + INSTRUCTION_LINE);
    bool is_inside = gp_look_word(function + NAME) == 0 ||
                     (line >= gp_look_half(function + FIRST_LINE) && line <= gp_look_half(function + LAST_LINE));
    return is_inside && line < 1u << GP_PHP_LINE_BITS ? line : 0;
}

static bool php_walk_read(walk_t *walk, uintptr_t function, bool is_root, gp_php_place_t *place)
{
    uint8_t type = gp_look_byte(function);
    uintptr_t class = gp_look_word(function + CLASS), name = gp_look_word(function + NAME);
    if ((type != TYPE_USER && type != TYPE_IN_C && type != TYPE_TEXT) ||
        !gp_php_read_text(&walk->look, name, &place->name) ||
        (class != 0 && (!gp_look_may_read(&walk->look, class, CLASS_NAME + GP_LOOK_WORD) ||
                        !gp_php_read_text(&walk->look, gp_look_word(class + CLASS_NAME), &place->class))))
        return false;
    place->kind = type == TYPE_IN_C ? GP_PHP_C : name != 0 ? GP_PHP_FUNCTION : is_root ? GP_PHP_MAIN : GP_PHP_INCLUDE;
    if (type == TYPE_IN_C)
        return true;
    uintptr_t file = gp_look_may_read(&walk->look, function, USER_BYTES) ? gp_look_word(function + FILE_NAME) : 0;
    place->first_line = file != 0 && name != 0 ? gp_look_half(function + FIRST_LINE) : 0;
    place->last_line = file != 0 && name != 0 ? gp_look_half(function + LAST_LINE) : 0;
    return file != 0 && gp_php_read_text(&walk->look, file, &place->file);
}

static void php_walk_put(walk_t *walk, uintptr_t frame)
{
    gp_php_place_t place = {0};
    uintptr_t function = gp_look_word(frame + FRAME_FUNCTION), word = 0;
    unsigned info = gp_look_half(frame + FRAME_INFO);
    // C code, and extensions that replace execute_ex(), begin a loop for what is included, too.
    bool is_root = (info & IS_TOP) != 0 && gp_look_word(frame + FRAME_BEFORE) == 0;
    bool is_readable =
        gp_look_may_read(&walk->look, function, IN_C_BYTES) && php_walk_read(walk, function, is_root, &place);
    if (is_readable && place.kind == GP_PHP_C && place.name.len == 0)
        return; // a constructor that there is not
    if (is_readable)
        word = gp_php_number(&place);
    if (word == 0 && gp_thread_self != NULL)
        gp_thread_count(gp_thread_self, GP_COUNTER_UNNAMED_FRAMES);
    if (word != 0 && place.kind != GP_PHP_C) {
        word |= (uintptr_t)php_walk_line(walk, frame, function) << GP_MET_NUMBER_BITS;
        word |= info & IS_TOP ? GP_LANGUAGE_ENTRY : 0;
    }
    walk->frames[walk->depth++] = GP_LANGUAGE_WORD_OF(GP_LANGUAGE_PHP) | word;
}

// The generators that delegate to the running one, innermost first: the stand-in is in the outermost, and their tree
// leads to the running one.
static void php_walk_put_delegates(walk_t *walk, uintptr_t stand_in)
{
    uintptr_t all[DELEGATES_MAX], generator = gp_look_word(stand_in + FRAME_THIS);
    size_t count = 0;
    bool was_sure = walk->look.is_sure;
    if (generator + GENERATOR_STAND_IN != stand_in)
        return;
    walk->look.is_sure = false;
    while (count < DELEGATES_MAX && gp_look_may_read(&walk->look, generator, GENERATOR_STAND_IN)) {
        uintptr_t parent = gp_look_word(generator + GENERATOR_PARENT),
                  frame = gp_look_word(generator + GENERATOR_FRAME);
        if (parent == 0) // it is the running one
            break;
        if (gp_look_may_read(&walk->look, frame, FRAME_BYTES))
            all[count++] = frame;
        generator = parent;
    }
    while (count > 0 && walk->depth < walk->max) {
        php_walk_put(walk, all[--count]);
        walk->frames[walk->depth - 1] &= ~(uintptr_t)GP_LANGUAGE_ENTRY; // it runs in no loop now
    }
    walk->look.is_sure = was_sure;
}

// How many frames there are, LISTED_MAX at most.
//   tail: the frame, and then the first of those at the root's end that there is room for beside the leaf
static size_t php_walk_count(walk_t *walk, uintptr_t *tail)
{
    uintptr_t frame = *tail;
    size_t count = 0;
    while (frame != 0 && count < LISTED_MAX && gp_look_may_read(&walk->look, frame, FRAME_BYTES) &&
           !php_walk_is_bottom(walk, frame)) {
        frame = gp_look_word(frame + FRAME_BEFORE);
        if (++count >= walk->max)
            *tail = gp_look_word(*tail + FRAME_BEFORE);
    }
    return count;
}

// A generator that is resumed gets its caller's frame, which is at hand, only when it is the innermost one already.
static bool php_walk_has_caller(walk_t *walk, uintptr_t frame)
{
    const gp_language_place_t *place = walk->place;
    uintptr_t caller = gp_look_word(frame + FRAME_BEFORE);
    if (gp_look_may_read(&walk->look, caller, FRAME_BYTES) && gp_look_word(caller + FRAME_FUNCTION) == 0)
        caller = gp_look_word(caller + FRAME_BEFORE); // of a stand-in
    if (caller == 0)
        return false;
    for (int i = 0; i < REGISTERS && place->gp != NULL; i++)
        if (place->gp[i] == caller)
            return true;
    for (uintptr_t at = place->sp; at < place->sp + SPILLED_WORDS * GP_LOOK_WORD && at < place->stack_hi;
         at += GP_LOOK_WORD)
        if (gp_look_word(at) == caller)
            return true;
    return false;
}

// The innermost frame on this stack, 0 = there is none. Right behind a switch there
// still is that of the Fiber left.
static uintptr_t php_walk_begin(walk_t *walk)
{
    const gp_php_runtime_t *php = &gp_php_runtime;
    const gp_language_place_t *place = walk->place;
    if (php->thread != (uintptr_t)__builtin_thread_pointer())
        return 0;
    uintptr_t frame = place->pc == 0 ? php->next_frame : gp_look_word(php->current); // 0: of a wait that is over
    bool is_left = place->pc != 0 && frame == php->left_frame && php->left_sp - place->sp + NEAR >= (uintptr_t)2 * NEAR;
    return is_left || !gp_look_may_read(&walk->look, frame, FRAME_BYTES) ? 0 : frame;
}

// May all frames behind the innermost one be read as they are?
static bool php_walk_is_sure(walk_t *walk, uintptr_t frame, bool *has_caller)
{
    uintptr_t function = gp_look_word(frame + FRAME_FUNCTION), pc = walk->place->pc;
    bool is_generator =
        gp_look_may_read(&walk->look, function, IN_C_BYTES) && gp_look_half(function + FLAGS) & IS_GENERATOR;
    bool is_resumed = is_generator && gp_php_is_in(&gp_php_runtime.resume, pc);
    *has_caller = !is_resumed || php_walk_has_caller(walk, frame);
    return !is_generator || gp_php_is_in(&gp_php_runtime.loop, pc);
}

size_t gp_php_walk(const gp_language_place_t *place, uintptr_t *frames, size_t max, unsigned *flags)
{
    walk_t walk = {.place = place, .frames = frames, .max = max};
    uintptr_t frame = gp_php_runtime.thread != 0 ? php_walk_begin(&walk) : 0, tail = frame;
    bool has_caller;
    if (frame == 0)
        return 0;
    bool is_sure = php_walk_is_sure(&walk, frame, &has_caller);
    walk.look.is_sure = is_sure && has_caller;
    size_t count = has_caller ? php_walk_count(&walk, &tail) : 1;
    *flags |= has_caller ? 0 : GP_UNWIND_INCOMPLETE;
    walk.look.is_sure = false;
    for (size_t left = count; left > 0 && walk.depth < max; left--) {
        if (gp_look_word(frame + FRAME_FUNCTION) != 0)
            php_walk_put(&walk, frame);
        else
            php_walk_put_delegates(&walk, frame);
        walk.look.is_sure = is_sure;
        frame = gp_look_word(frame + FRAME_BEFORE);
        if (left == count && count > max && count < LISTED_MAX) { // the leaf and the root end
            frame = tail;
            left = max;
        }
    }
    *flags |= count > max ? GP_UNWIND_TRUNCATED : 0;
    return walk.depth;
}

void gp_php_note_switch(uintptr_t sp, uintptr_t to_sp)
{
    gp_php_runtime_t *php = &gp_php_runtime;
    gp_thread_t *thread = gp_thread_self;
    uint64_t id;
    bool outside;
    if (php->thread != (uintptr_t)__builtin_thread_pointer() || thread == NULL)
        return;
    php->left_frame = gp_look_word(php->current);
    php->left_sp = sp;
    gp_coro_rare(gp_thread_coro_at(thread, sp, &id, &outside))->subject = php->left_frame;
    php->next_frame = gp_coro_rare(gp_thread_coro_at(thread, to_sp, &id, &outside))->subject;
}

bool gp_php_is_loop(uintptr_t pc)
{
    return gp_php_is_in(&gp_php_runtime.loop, pc);
}

bool gp_php_is_own(uintptr_t pc)
{
    return gp_php_is_in(&gp_php_runtime.code, pc);
}
