// SPDX-License-Identifier: MIT
#include "interpreter/awaits.h"

#include <stdatomic.h>
#include <string.h>

#include "interpreter/frame_walk.h"

enum {
    STEPS_MAX = 4096,    // of a chain, frames or not
    SLOTS_MAX = 1 << 20, // of a frame
    WRAPPED = 16,        // async_gen_asend.ags_gen, async_gen_athrow.agt_gen, PyCoroWrapper.cw_coroutine
    FRAME_BYTES_MAX = 128,
    AWAITING = 2, // of RESUME's argument: behind an await (3) or a yield from (2), not a plain yield
};

_Atomic size_t gp_cpython_frame_object_at, gp_cpython_stack_at;

typedef struct suspended { // a generator's frame, read
    unsigned char bytes[FRAME_BYTES_MAX];
    uintptr_t address;
    signed char state;
} suspended_t;

bool gp_cpython_read_own(uintptr_t from, void *to, size_t bytes)
{
    memcpy(to, (const void *)from, bytes); // NOLINT(performance-no-int-to-ptr)
    return true;
}

static uintptr_t awaits_field(const suspended_t *frame, unsigned offset)
{
    uintptr_t value;
    memcpy(&value, frame->bytes + offset, sizeof(value));
    return value;
}

static bool awaits_read_word(gp_cpython_read_t *read, uintptr_t from, uintptr_t *word)
{
    return from % 8 == 0 && from >= 4096 && read(from, word, sizeof(*word));
}

// The generator that an object is, or stands for; 0 = none.
static uintptr_t awaits_generator_of(gp_cpython_read_t *read, uintptr_t object)
{
    const uintptr_t *types = gp_cpython_runtime.generator_types;
    uintptr_t type;
    for (int i = 0; i < 2; i++) {
        if (object == 0 || !awaits_read_word(read, object + GP_CPYTHON_OBJECT_TYPE, &type) || type == 0)
            return 0;
        if (type == types[GP_CPYTHON_COROUTINE] || type == types[GP_CPYTHON_GENERATOR] ||
            type == types[GP_CPYTHON_ASYNC_GENERATOR])
            return object;
        if (type != types[GP_CPYTHON_ASEND] && type != types[GP_CPYTHON_ATHROW] && type != types[GP_CPYTHON_WRAPPER])
            return 0;
        if (!awaits_read_word(read, object + WRAPPED, &object))
            return 0;
    }
    return 0;
}

static bool awaits_read_frame(gp_cpython_read_t *read, uintptr_t generator, suspended_t *frame)
{
    enum { BEFORE = 8 }; // bytes of the generator's head that are read with it
    unsigned char bytes[BEFORE + FRAME_BYTES_MAX];
    size_t size = gp_cpython_runtime.layout->frame_bytes;
    frame->address = generator + gp_cpython_runtime.generator_frame;
    if (!read(frame->address - BEFORE, bytes, BEFORE + size))
        return false;
    frame->state = (signed char)bytes[BEFORE + GP_CPYTHON_GENERATOR_STATE];
    memcpy(frame->bytes, bytes + BEFORE, size);
    return true;
}

// Is it suspended by an await, or a yield from, not by a plain yield?
static bool awaits_is_awaiting(gp_cpython_read_t *read, const suspended_t *frame)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    unsigned char resume[2]; // the next instruction, and its argument
    if (layout->generator_awaiting != layout->generator_running)
        return frame->state == layout->generator_awaiting;
    return frame->state < layout->generator_running &&
           read(awaits_field(frame, layout->frame_instruction) + 2, resume, sizeof(resume)) && resume[1] >= AWAITING;
}

// How many of the slots behind the frame are in use.
static uintptr_t awaits_slots_of(const suspended_t *frame)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    uintptr_t top = awaits_field(frame, layout->frame_stack_top);
    if (layout->version < GP_CPYTHON_POINTS_TO_TOP)
        return (uint32_t)top;
    return (top - frame->address - layout->frame_bytes) / 8;
}

// A slot that holds a number, or nothing: they are told by tags of references from 3.14 on.
static bool awaits_is_no_object(uintptr_t slot)
{
    enum { NUMBER = 3, NOTHING = 2 };
    return (slot & NUMBER) == NUMBER || (slot & ~(uintptr_t)GP_CPYTHON_REFERENCE_TAGS) == 0 || slot == NOTHING;
}

// The object that a frame awaits, 0 = none: on top of its stack, from 3.15 on below a number or nothing.
static uintptr_t awaits_awaited(gp_cpython_read_t *read, const suspended_t *frame)
{
    uintptr_t object = 0, slots = awaits_slots_of(frame), at = frame->address + gp_cpython_runtime.layout->frame_bytes;
    if (slots == 0 || slots > SLOTS_MAX || !awaits_is_awaiting(read, frame))
        return 0;
    awaits_read_word(read, at + 8 * (slots - 1), &object);
    if (awaits_is_no_object(object) && slots > 1)
        awaits_read_word(read, at + 8 * (slots - 2), &object);
    return object & ~(uintptr_t)GP_CPYTHON_REFERENCE_TAGS;
}

static void awaits_reverse(uintptr_t *frames, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        uintptr_t word = frames[i];
        frames[i] = frames[count - 1 - i];
        frames[count - 1 - i] = word;
    }
}

size_t gp_cpython_walk_awaits(gp_cpython_read_t *read, uintptr_t object, uintptr_t *frames, size_t max)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    size_t count = 0;
    suspended_t frame;
    while (count < max && (object = awaits_generator_of(read, object)) != 0 &&
           awaits_read_frame(read, object, &frame)) {
        if (frame.state > layout->generator_running) // ended: its frame is no more
            break;
        frames[count++] = gp_cpython_word(layout, awaits_field(&frame, layout->frame_code),
                                          awaits_field(&frame, layout->frame_instruction));
        object = awaits_awaited(read, &frame);
    }
    awaits_reverse(frames, count);
    return count;
}

uintptr_t gp_cpython_leaf_of(gp_cpython_read_t *read, uintptr_t state)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    uintptr_t at = state + layout->state_frame, leaf = 0;
    if (layout->state_cframe != GP_CPYTHON_NONE && awaits_read_word(read, state + layout->state_cframe, &at))
        at += layout->cframe_frame;
    return awaits_read_word(read, at, &leaf) ? leaf : 0;
}

size_t gp_cpython_walk_frames(gp_cpython_read_t *read, uintptr_t frame, uintptr_t base, uintptr_t *frames, size_t max)
{
    const gp_cpython_layout_t *layout = gp_cpython_runtime.layout;
    unsigned char bytes[FRAME_BYTES_MAX];
    size_t count = 0;
    for (int i = 0; i < STEPS_MAX && frame != 0 && (frame != base || count == 0) && count < max; i++) {
        uintptr_t code, instruction;
        if (frame % 8 != 0 || frame < 4096 || !read(frame, bytes, layout->frame_bytes))
            break;
        memcpy(&code, bytes + layout->frame_code, sizeof(code));
        memcpy(&instruction, bytes + layout->frame_instruction, sizeof(instruction));
        memcpy(&frame, bytes + layout->frame_previous, sizeof(frame));
        if (bytes[layout->frame_owner] < GP_CPYTHON_OWNER_SHIM)
            frames[count++] = gp_cpython_word(layout, code, instruction);
    }
    return count;
}

uintptr_t gp_cpython_of_greenlet(uintptr_t greenlet, uintptr_t address)
{
    uintptr_t native = 0, stack[GP_CPYTHON_STACK_WORDS];
    size_t at = atomic_load_explicit(&gp_cpython_stack_at, memory_order_relaxed);
    if (at == 0 || !awaits_read_word(gp_cpython_read_own, greenlet + GP_CPYTHON_GREENLET_NATIVE, &native) ||
        native == 0)
        return address;
    gp_cpython_read_own(native + at, stack, sizeof(stack));
    uintptr_t into = address - stack[GP_CPYTHON_STACK_START];
    return into < stack[GP_CPYTHON_STACK_SAVED] ? stack[GP_CPYTHON_STACK_COPY] + into : address;
}

uintptr_t gp_cpython_frame_object(gp_cpython_read_t *read, uintptr_t greenlet)
{
    size_t at = atomic_load_explicit(&gp_cpython_frame_object_at, memory_order_relaxed);
    uintptr_t implementation = 0, frame = 0;
    if (at != 0 && awaits_read_word(read, greenlet + GP_CPYTHON_GREENLET_NATIVE, &implementation) &&
        implementation != 0)
        awaits_read_word(read, implementation + at, &frame);
    return frame;
}

size_t gp_cpython_walk_greenlet(gp_cpython_read_t *read, uintptr_t greenlet, uintptr_t base, uintptr_t *frames,
                                size_t max)
{
    enum { FRAME = 24 }; // PyFrameObject.f_frame
    uintptr_t object = gp_cpython_frame_object(read, greenlet), frame = 0;
    if (object == 0 || !awaits_read_word(read, object + FRAME, &frame))
        return 0;
    return gp_cpython_walk_frames(read, frame, base, frames, max);
}
