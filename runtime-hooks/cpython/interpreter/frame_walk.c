// SPDX-License-Identifier: MIT
#include "interpreter/frame_walk.h"

#include <sys/syscall.h>
#include <unistd.h>

#include "interpreter/awaits.h"
#include "interpreter/task_step.h"
#include "signal/mapped.h"
#include "signal/thread.h"
#include "unwind/arch.h"
#include "unwind/unwind.h"

enum {
    FRAMES_MAX = 16384, // walked at most: ~100 us
    CHUNKS_MAX = 4096,
    SCAN_CHUNKS_MAX = 64, // of a forward scan
    PAGE = 4096,
    ADDRESS_BITS = 47, // of user space
    RED_ZONE = 128,
    CFRAME_BYTES = 24,
};

gp_cpython_runtime_t gp_cpython_runtime;

// The newest chunk of the calling thread's last walk.
static __thread uintptr_t known_chunk __attribute__((tls_model("initial-exec")));

typedef struct walk {
    const gp_cpython_layout_t *layout;
    const gp_language_place_t *place;
    uintptr_t state;                // PyThreadState
    uintptr_t base;                 // of a task's step: the walk ends before this frame; 0 = at the outermost one
    uintptr_t chunks_lo, chunks_hi; // all chunks lie within
    uintptr_t chunk, data, top;     // the chunk that the walk has reached: used part [data, top)
    gp_mapped_t mapped;             // found so in this walk
    uintptr_t *frames;
    size_t max, count; // count may pass max: see frame_walk_keep()
} walk_t;

GP_UNSANITIZED static inline uintptr_t frame_walk_word_at(uintptr_t address)
{
    return *(const volatile uintptr_t *)address; // NOLINT(performance-no-int-to-ptr)
}

GP_UNSANITIZED static inline unsigned char frame_walk_byte_at(uintptr_t address)
{
    return *(const volatile unsigned char *)address; // NOLINT(performance-no-int-to-ptr)
}

GP_UNSANITIZED static inline int frame_walk_int_at(uintptr_t address)
{
    return *(const volatile int *)address; // NOLINT(performance-no-int-to-ptr)
}

static bool frame_walk_is_address(uintptr_t word)
{
    return word >= PAGE && word % 8 == 0 && word < (uintptr_t)1 << ADDRESS_BITS;
}

static bool frame_walk_is_mapped(walk_t *walk, uintptr_t address, size_t bytes)
{
    return gp_is_mapped(&walk->mapped, address, bytes);
}

// Is all of it on the stack that the signal came in on, and there?
static bool frame_walk_is_on_stack(walk_t *walk, uintptr_t address, size_t bytes)
{
    return address >= walk->place->sp - RED_ZONE && address + bytes <= walk->place->stack_hi &&
           (!walk->place->in_doubt || frame_walk_is_mapped(walk, address, bytes));
}

// Go to a chunk: 0 = none is left. An impossible address ends the list as well: the memory was freed.
static void frame_walk_enter_chunk(walk_t *walk, uintptr_t chunk)
{
    walk->chunk = frame_walk_is_address(chunk) ? chunk : 0;
    if (walk->chunk == 0)
        return;
    uintptr_t end = chunk + frame_walk_word_at(chunk + GP_CPYTHON_CHUNK_SIZE);
    walk->data = chunk + GP_CPYTHON_CHUNK_DATA;
    walk->top = walk->data + 8 * frame_walk_word_at(chunk + GP_CPYTHON_CHUNK_TOP);
    if (chunk == frame_walk_word_at(walk->state + walk->layout->state_chunk)) // the newest: its top is the thread's
        walk->top = frame_walk_word_at(walk->state + walk->layout->state_top);
    if (walk->top < walk->data || walk->top > end) // just being put there: empty
        walk->top = walk->data;
}

// The thread's own list of chunks is changed by the thread alone, in an order that keeps it sound. False: one is not
// there, the list is what was left in freed memory. Where the newest is the one of the last walk, the others are known.
static bool frame_walk_survey_chunks(walk_t *walk)
{
    uintptr_t newest = frame_walk_word_at(walk->state + walk->layout->state_chunk), chunk = newest;
    bool is_known = newest == known_chunk;
    walk->chunks_lo = UINTPTR_MAX;
    walk->chunks_hi = 0;
    for (int i = 0; i < CHUNKS_MAX && frame_walk_is_address(chunk); i++) {
        if (!is_known && !frame_walk_is_mapped(walk, chunk, GP_CPYTHON_CHUNK_DATA))
            return false;
        uintptr_t size = frame_walk_word_at(chunk + GP_CPYTHON_CHUNK_SIZE), end = chunk + size;
        if (!is_known &&
            (size < GP_CPYTHON_CHUNK_DATA || size >> ADDRESS_BITS != 0 || !frame_walk_is_mapped(walk, end - 1, 1)))
            return false;
        walk->chunks_lo = chunk < walk->chunks_lo ? chunk : walk->chunks_lo;
        walk->chunks_hi = end > walk->chunks_hi ? end : walk->chunks_hi;
        chunk = frame_walk_word_at(chunk + GP_CPYTHON_CHUNK_PREVIOUS);
    }
    known_chunk = newest;
    frame_walk_enter_chunk(walk, newest);
    return true;
}

// Does a frame lie in the used part of the chunk that the walk has reached, or of an older one? Frames further out lie
// further down: what the walk has passed is not looked at again.
static bool frame_walk_in_data_stack(walk_t *walk, uintptr_t frame)
{
    if (frame < walk->chunks_lo || frame >= walk->chunks_hi)
        return false;
    uintptr_t chunk = walk->chunk, data = walk->data, top = walk->top;
    for (int i = 0; i < CHUNKS_MAX && walk->chunk != 0; i++) {
        if (frame >= walk->data && frame + walk->layout->frame_bytes <= walk->top) {
            walk->top = frame; // the next one lies below
            return true;
        }
        frame_walk_enter_chunk(walk, frame_walk_word_at(walk->chunk + GP_CPYTHON_CHUNK_PREVIOUS));
    }
    walk->chunk = chunk; // a generator's between chunks, or nothing
    walk->data = data;
    walk->top = top;
    return false;
}

// May a frame be read, and does it look like a frame in execution?
static bool frame_walk_is_sound(walk_t *walk, uintptr_t frame, bool leaf)
{
    const gp_cpython_layout_t *layout = walk->layout;
    if (!frame_walk_is_address(frame))
        return false;
    if (frame_walk_in_data_stack(walk, frame))
        return frame_walk_byte_at(frame + layout->frame_owner) == GP_CPYTHON_OWNER_THREAD;
    if (frame_walk_is_on_stack(walk, frame, layout->frame_bytes))
        return frame_walk_byte_at(frame + layout->frame_owner) >= GP_CPYTHON_OWNER_SHIM;
    if (layout->state_base != GP_CPYTHON_NONE && frame == frame_walk_word_at(walk->state + layout->state_base))
        return frame_walk_is_mapped(walk, frame, layout->frame_bytes);
    if (!frame_walk_is_mapped(walk, frame - 8, layout->frame_bytes + 8u) ||
        frame_walk_byte_at(frame + layout->frame_owner) != GP_CPYTHON_OWNER_GENERATOR)
        return false;
    // Executing; the leaf may just be on its way in or out.
    signed char state = (signed char)frame_walk_byte_at(frame + (uintptr_t)(intptr_t)GP_CPYTHON_GENERATOR_STATE);
    return state == layout->generator_running ||
           (leaf && state < layout->generator_running && state >= layout->generator_created);
}

// Keep the leaf and the last max - 1 frames: from the max-th on, the oldest of those is overwritten.
static void frame_walk_keep(walk_t *walk, uintptr_t word)
{
    size_t at = walk->count++;
    if (at >= walk->max)
        at = 1 + (at - 1) % (walk->max - 1);
    walk->frames[at] = word;
}

// Where frame_walk_keep() has put the last one.
static size_t frame_walk_last_at(const walk_t *walk)
{
    return walk->count <= walk->max ? walk->count - 1 : 1 + (walk->count - 2) % (walk->max - 1);
}

static void frame_walk_reverse(uintptr_t *frames, size_t count)
{
    for (size_t i = 0; i < count / 2; i++) {
        uintptr_t word = frames[i];
        frames[i] = frames[count - 1 - i];
        frames[count - 1 - i] = word;
    }
}

// Put what frame_walk_keep() has wrapped around into order.
static size_t frame_walk_finish(walk_t *walk, unsigned *flags)
{
    if (walk->count <= walk->max)
        return walk->count;
    size_t ring = walk->max - 1, first = (walk->count - 1) % ring;
    frame_walk_reverse(walk->frames + 1, first);
    frame_walk_reverse(walk->frames + 1 + first, ring - first);
    frame_walk_reverse(walk->frames + 1, ring);
    *flags |= GP_UNWIND_TRUNCATED;
    return walk->max;
}

// The code object of a frame that may be read; 0 = it has none.
static uintptr_t frame_walk_code_of(walk_t *walk, uintptr_t frame)
{
    const gp_cpython_layout_t *layout = walk->layout;
    uintptr_t code = frame_walk_word_at(frame + layout->frame_code) & ~(uintptr_t)GP_CPYTHON_REFERENCE_TAGS;
    bool is_one = frame_walk_is_mapped(walk, code, layout->code_instructions) &&
                  frame_walk_word_at(code + GP_CPYTHON_OBJECT_TYPE) == gp_cpython_runtime.code_type;
    return is_one ? code : 0;
}

// Scan the used part of one chunk from its bottom; false where something is not a frame.
static bool frame_walk_scan_chunk(walk_t *walk, uintptr_t chunk)
{
    const gp_cpython_layout_t *layout = walk->layout;
    frame_walk_enter_chunk(walk, chunk);
    uintptr_t frame = walk->data;
    if (frame_walk_word_at(chunk + GP_CPYTHON_CHUNK_PREVIOUS) == 0)
        frame += 8; // the first word of the oldest chunk is left out, so that the chunk is never given back
    while (frame + layout->frame_bytes <= walk->top) {
        if (frame == walk->base)
            walk->count = 0; // further frames are the task's
        uintptr_t code = frame_walk_code_of(walk, frame);
        if (code == 0)
            return false;
        frame_walk_keep(walk,
                        gp_cpython_word(walk->layout, code, frame_walk_word_at(frame + layout->frame_instruction)));
        int slots = frame_walk_int_at(code + layout->code_locals) + frame_walk_int_at(code + layout->code_stack);
        if (slots < 0)
            return false;
        frame += layout->frame_bytes + 8 * (uintptr_t)slots;
    }
    return true;
}

// The frames of plain calls, without the list. Marked incomplete: generators are missing.
static size_t frame_walk_scan(walk_t *walk, unsigned *flags)
{
    uintptr_t chunks[SCAN_CHUNKS_MAX], chunk = frame_walk_word_at(walk->state + walk->layout->state_chunk);
    size_t count = 0;
    for (; frame_walk_is_address(chunk) && count < SCAN_CHUNKS_MAX; count++) {
        chunks[count] = chunk;
        chunk = frame_walk_word_at(chunk + GP_CPYTHON_CHUNK_PREVIOUS);
    }
    walk->count = 0;
    *flags |= GP_UNWIND_INCOMPLETE;
    if (chunk != 0)
        return 0;
    while (count > 0 && walk->count < walk->max && frame_walk_scan_chunk(walk, chunks[count - 1]))
        count--;
    if (walk->count >= walk->max) // outermost first: what would be missing is the leaf
        return 0;
    frame_walk_reverse(walk->frames, walk->count);
    return walk->count;
}

static bool frame_walk_is_cframe(walk_t *walk, uintptr_t cframe)
{
    if (cframe == walk->state + walk->layout->state_root_cframe)
        return true;
    return frame_walk_is_address(cframe) && frame_walk_is_on_stack(walk, cframe, CFRAME_BYTES);
}

// The leaf, 0 = there is none. False: it cannot be known.
static bool frame_walk_find_leaf(walk_t *walk, uintptr_t *leaf)
{
    const gp_cpython_layout_t *layout = walk->layout;
    if (layout->state_cframe == GP_CPYTHON_NONE) {
        *leaf = frame_walk_word_at(walk->state + layout->state_frame);
        return true;
    }
    uintptr_t cframe = frame_walk_word_at(walk->state + layout->state_cframe);
    if (!frame_walk_is_cframe(walk, cframe))
        return false; // a greenlet switch is under way
    *leaf = frame_walk_word_at(cframe + layout->cframe_frame);
    return true;
}

static bool frame_walk_in_loop(uintptr_t pc)
{
    const gp_cpython_runtime_t *runtime = &gp_cpython_runtime;
    return (pc >= runtime->loop && pc < runtime->loop_end) || (pc >= runtime->cold && pc < runtime->cold_end);
}

// A called frame becomes current a few instructions before its caller is written into it. Until the frame has run, its
// caller must be the frame just below it, or a generator's.
static bool frame_walk_caller_is_written(walk_t *walk, uintptr_t leaf)
{
    const gp_cpython_layout_t *layout = walk->layout;
    uintptr_t pc = walk->place->pc;
    if (!frame_walk_in_loop(pc) || frame_walk_byte_at(leaf + layout->frame_owner) != GP_CPYTHON_OWNER_THREAD)
        return true;
    uintptr_t code = frame_walk_word_at(leaf + layout->frame_code) & ~(uintptr_t)GP_CPYTHON_REFERENCE_TAGS;
    uintptr_t caller = frame_walk_word_at(leaf + layout->frame_previous);
    uintptr_t instruction = frame_walk_word_at(leaf + layout->frame_instruction);
    if (instruction >= code + layout->code_instructions || caller == 0)
        return true; // has run
    if (caller < walk->chunks_lo || caller >= walk->chunks_hi)
        return true; // frame_walk_is_sound() will see
    if (caller >= leaf || caller < walk->data)
        return leaf - walk->data <= 8; // the first of its chunk
    uintptr_t caller_code = frame_walk_code_of(walk, caller);
    if (caller_code == 0)
        return false;
    int slots =
        frame_walk_int_at(caller_code + layout->code_locals) + frame_walk_int_at(caller_code + layout->code_stack);
    return caller + layout->frame_bytes + 8 * (uintptr_t)(unsigned)slots == leaf;
}

// The evaluation loop is being entered: the current cframe may be the new one, not written yet. The cframe is written
// if the frame at which this entry began was called by the current frame of the cframe before.
static bool frame_walk_may_be_unwritten(const walk_t *walk)
{
    return walk->place->pc - gp_cpython_runtime.loop < walk->layout->entry_window;
}

static bool frame_walk_is_entry(const walk_t *walk, uintptr_t frame)
{
    if (walk->layout->frame_is_entry == GP_CPYTHON_NONE)
        return frame_walk_byte_at(frame + walk->layout->frame_owner) >= GP_CPYTHON_OWNER_SHIM;
    return frame_walk_byte_at(frame + walk->layout->frame_is_entry) != 0;
}

static bool frame_walk_entry_fits(walk_t *walk, uintptr_t entry)
{
    const gp_cpython_layout_t *layout = walk->layout;
    uintptr_t cframe = frame_walk_word_at(walk->state + layout->state_cframe);
    uintptr_t before = frame_walk_word_at(cframe + layout->cframe_frame + 8);
    return frame_walk_is_cframe(walk, before) && before != cframe &&
           frame_walk_word_at(before + layout->cframe_frame) == frame_walk_word_at(entry + layout->frame_previous);
}

// Keep a frame that may be read, but for a shim. Returns whether it is none.
static bool frame_walk_keep_frame(walk_t *walk, uintptr_t frame)
{
    const gp_cpython_layout_t *layout = walk->layout;
    bool is_shim = frame_walk_byte_at(frame + layout->frame_owner) >= GP_CPYTHON_OWNER_SHIM;
    if (!is_shim)
        frame_walk_keep(walk, gp_cpython_word(layout, frame_walk_word_at(frame + layout->frame_code),
                                              frame_walk_word_at(frame + layout->frame_instruction)));
    if (frame_walk_is_entry(walk, frame) && walk->count > 0)
        walk->frames[frame_walk_last_at(walk)] |= GP_LANGUAGE_ENTRY;
    return !is_shim;
}

static bool frame_walk_follow(walk_t *walk)
{
    const gp_cpython_layout_t *layout = walk->layout;
    uintptr_t frame = 0;
    if (!frame_walk_find_leaf(walk, &frame))
        return false;
    bool leaf = true, doubtful = frame_walk_may_be_unwritten(walk);
    for (int i = 0; i < FRAMES_MAX && frame != 0; i++) {
        bool is_base = frame == walk->base;
        if (is_base && walk->count > 0)
            return true;
        if (!frame_walk_is_sound(walk, frame, leaf))
            return false;
        if (leaf && !frame_walk_caller_is_written(walk, frame))
            return false;
        if (doubtful && frame_walk_is_entry(walk, frame)) {
            if (!frame_walk_entry_fits(walk, frame))
                return false;
            doubtful = false;
        }
        leaf = !frame_walk_keep_frame(walk, frame) && leaf;
        if (is_base) // the step is about to begin, or is being ended: what it does there is the task's as well
            return true;
        frame = frame_walk_word_at(frame + layout->frame_previous);
    }
    return frame == 0;
}

bool gp_cpython_is_loop(uintptr_t pc)
{
    return gp_cpython_runtime.is_trusted && frame_walk_in_loop(pc);
}

// An interpreter that ends frees the states of all threads but its own, the main one as a rule, while they still run
// code without the interpreter.
static bool frame_walk_state_may_be_freed(const gp_cpython_runtime_t *runtime)
{
    return runtime->is_finalizing != NULL && runtime->is_finalizing() && syscall(SYS_gettid) != getpid();
}

static uintptr_t frame_walk_leaf_of(uintptr_t state)
{
    return state != 0 && !frame_walk_state_may_be_freed(&gp_cpython_runtime)
               ? gp_cpython_leaf_of(gp_cpython_read_own, state)
               : 0;
}

uintptr_t gp_cpython_leaf(void)
{
    return frame_walk_leaf_of((uintptr_t)gp_cpython_runtime.thread_state());
}

// For a census, which looks at this thread from outside.
static void frame_walk_show_state(uintptr_t state)
{
    if (gp_thread_self != NULL)
        atomic_store_explicit(&gp_thread_self->language.state, state, memory_order_relaxed);
    atomic_store_explicit(&gp_cpython_runtime.any_state, state, memory_order_relaxed);
}

// Where the frames of the current coroutine end, if it is a task; 0 = it is not.
static uintptr_t frame_walk_base_of_current(void)
{
    const gp_task_step_t *step = &gp_step_here;
    const gp_thread_t *thread = gp_thread_self;
    if (step->coro_id == 0 || thread == NULL ||
        atomic_load_explicit(&thread->current_id, memory_order_relaxed) != step->coro_id)
        return 0;
    return step->base;
}

// From 3.12 on some frames lie on the greenlet's native stack, of which greenlet alone knows.
static bool frame_walk_read_next(uintptr_t from, void *to, size_t bytes)
{
    uintptr_t greenlet = gp_step_here.waiting & ~(uintptr_t)GP_STEP_IS_GREENLET;
    bool is_sure = gp_cpython_runtime.layout->frame_is_entry != GP_CPYTHON_NONE;
    uintptr_t there = is_sure ? from : gp_cpython_of_greenlet(greenlet, from);
    walk_t walk = {.count = 0};
    return (is_sure || frame_walk_is_mapped(&walk, there, bytes)) && gp_cpython_read_own(there, to, bytes);
}

// Frames of a greenlet that is about to go on.
static size_t frame_walk_next(uintptr_t greenlet, uintptr_t *frames, size_t max)
{
    const gp_task_step_t *step = &gp_step_here;
    uintptr_t base = step->task != NULL && (uintptr_t)step->greenlet == greenlet ? step->base : 0;
    return gp_cpython_walk_greenlet(frame_walk_read_next, greenlet, base, frames, max);
}

size_t gp_cpython_walk(const gp_language_place_t *place, uintptr_t *frames, size_t max, unsigned *flags)
{
    const gp_cpython_runtime_t *runtime = &gp_cpython_runtime;
    if (!runtime->is_trusted || frame_walk_state_may_be_freed(runtime))
        return 0;
    uintptr_t waiting =
        place->pc == 0 ? gp_step_here.waiting : 0; // a wait that is over, of what is not on this stack yet
    if (waiting & GP_STEP_IS_GREENLET)
        return frame_walk_next(waiting & ~(uintptr_t)GP_STEP_IS_GREENLET, frames, max);
    if (waiting != 0)
        return gp_cpython_walk_awaits(gp_cpython_read_own, waiting, frames, max);
    walk_t walk = {
        .layout = runtime->layout,
        .place = place,
        .state = (uintptr_t)runtime->thread_state(),
        .base = frame_walk_base_of_current(),
        .frames = frames,
        .max = max,
    };
    if (walk.state == 0 || frame_walk_word_at(walk.state + walk.layout->state_chunk) == 0)
        return 0;
    frame_walk_show_state(walk.state);
    if (!frame_walk_survey_chunks(&walk))
        return 0;
    if (frame_walk_follow(&walk))
        return frame_walk_finish(&walk, flags);
    unsigned scanned = 0;
    size_t depth = frame_walk_scan(&walk, &scanned);
    if (depth > 0)
        *flags |= scanned;
    return depth;
}

size_t gp_cpython_walk_own(uintptr_t *frames, size_t max, unsigned *flags)
{
    walk_t walk = {
        .layout = gp_cpython_runtime.layout,
        .state = (uintptr_t)gp_cpython_runtime.thread_state(),
        .base = frame_walk_base_of_current(),
        .frames = frames,
        .max = max,
    };
    uintptr_t frame = frame_walk_leaf_of(walk.state);
    if (frame == 0)
        return 0;
    frame_walk_show_state(walk.state);
    for (int i = 0; i < FRAMES_MAX && frame != 0; i++) {
        if (frame == walk.base && walk.count > 0)
            break;
        frame_walk_keep_frame(&walk, frame);
        if (frame == walk.base)
            break;
        frame = frame_walk_word_at(frame + walk.layout->frame_previous);
    }
    return frame_walk_finish(&walk, flags);
}
