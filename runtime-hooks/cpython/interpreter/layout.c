// SPDX-License-Identifier: MIT
#include "interpreter/layout.h"

#include <string.h>

enum { FIRST = 0x030b, FIRST_PUBLISHED = 0x030c, FIRST_OF_SIZES = 0x030d, FRAME_BYTES_MAX = 128, OFFSET_MAX = 8192 };

// clang-format off
static const gp_cpython_layout_t rows[] = { // of what is not published: of the first two, all
    {
        .version = FIRST,
        .state_cframe = 56, .state_root_cframe = 336, .state_frame = GP_CPYTHON_NONE, .state_base = GP_CPYTHON_NONE,
        .state_chunk = 296, .state_top = 304, .state_native_id = 160,
        .cframe_frame = 8,
        .frame_code = 32, .frame_previous = 48, .frame_instruction = 56, .frame_owner = 69, .frame_bytes = 72,
        .frame_is_entry = 68, .frame_stack_top = 64,
        .code_locals = 76, .code_stack = 68, .code_first_line = 72, .code_file = 112, .code_name = 128, .code_lines = 136,
        .code_instructions = 184,
        .text_ascii = 48, .text_compact = 72, .tuple_items = 24,
        .entry_window = 192,
        .generator_created = -2,
    }, {
        .version = 0x030c,
        .state_cframe = 56, .state_root_cframe = 272, .state_frame = GP_CPYTHON_NONE, .state_base = GP_CPYTHON_NONE,
        .state_chunk = 232, .state_top = 240, .state_native_id = 144,
        .cframe_frame = 0,
        .frame_code = 0, .frame_previous = 8, .frame_instruction = 56, .frame_owner = 70, .frame_bytes = 72,
        .frame_is_entry = GP_CPYTHON_NONE, .frame_stack_top = 64,
        .code_locals = 72, .code_stack = 64, .code_first_line = 68, .code_file = 112, .code_name = 128, .code_lines = 136,
        .code_instructions = 192,
        .text_ascii = 40, .text_compact = 56, .tuple_items = 24,
        .entry_window = 256,
        .generator_created = -2,
    }, {
        .version = 0x030d,
        .state_cframe = GP_CPYTHON_NONE, .state_root_cframe = GP_CPYTHON_NONE, .state_base = GP_CPYTHON_NONE,
        .frame_is_entry = GP_CPYTHON_NONE, .frame_stack_top = 64,
        .generator_created = -3, .generator_awaiting = -1,
    }, { // the newest: later ones are taken to be like it
        .version = 0x030f,
        .state_cframe = GP_CPYTHON_NONE, .state_root_cframe = GP_CPYTHON_NONE, .state_base = GP_CPYTHON_NONE,
        .frame_is_entry = GP_CPYTHON_NONE,
        .generator_created = 0, .generator_running = 4, .generator_awaiting = 2,
    },
};
// clang-format on

enum { VERSION_WORD = 1 }; // behind the cookie

typedef struct form { // of _Py_DebugOffsets: at which word what is published; 0 = it is not
    uint16_t version; // the first
    uint8_t free_threaded, previous_state, next_state, state_frame, state_base, state_native_id, state_chunk;
    uint8_t cframe_frame, frame_code, frame_previous, frame_instruction, frame_bytes, frame_owner, frame_top;
    uint8_t code_file, code_name, code_lines, code_first_line, code_instructions, object_type, tuple_items;
    uint8_t text_state, text_length, text_ascii, text_compact, bytes_data, generator_frame, generator_state;
} form_t;

// clang-format off
static const form_t forms[] = { // newest first
    {
        .version = 0x030f, .free_threaded = 2, .previous_state = 23, .next_state = 24, .state_frame = 26, .state_base = 27,
        .state_native_id = 31, .state_chunk = 32, .frame_previous = 40, .frame_code = 41, .frame_instruction = 42,
        .frame_bytes = 43, .frame_owner = 44, .frame_top = 45, .code_file = 48, .code_name = 50, .code_lines = 51,
        .code_first_line = 52, .code_instructions = 56, .object_type = 59, .tuple_items = 69, .bytes_data = 88,
        .text_state = 90, .text_length = 91, .text_ascii = 92, .text_compact = 93, .generator_frame = 101,
        .generator_state = 102,
    }, {
        .version = 0x030e, .free_threaded = 2, .previous_state = 23, .next_state = 24, .state_frame = 26,
        .state_native_id = 28, .state_chunk = 29, .frame_previous = 32, .frame_code = 33, .frame_instruction = 34,
        .frame_bytes = 35, .frame_owner = 36, .frame_top = 37, .code_file = 40, .code_name = 42, .code_lines = 43,
        .code_first_line = 44, .code_instructions = 48, .object_type = 51, .tuple_items = 57, .bytes_data = 76,
        .text_state = 78, .text_length = 79, .text_ascii = 80, .generator_frame = 85, .generator_state = 86,
    }, {
        .version = 0x030d, .free_threaded = 2, .previous_state = 20, .next_state = 21, .state_frame = 23,
        .state_native_id = 25, .state_chunk = 26, .frame_previous = 29, .frame_code = 30, .frame_instruction = 31,
        .frame_bytes = 32, .frame_owner = 33, .code_file = 35, .code_name = 37, .code_lines = 38, .code_first_line = 39,
        .code_instructions = 43, .object_type = 45, .tuple_items = 51, .text_state = 68, .text_length = 69,
        .text_ascii = 70,
    }, {
        .version = FIRST_PUBLISHED, .previous_state = 13, .next_state = 14, .state_native_id = 18, .frame_previous = 19,
        .frame_code = 20, .frame_instruction = 21, .frame_bytes = 22, .frame_owner = 23, .cframe_frame = 24,
        .code_file = 26, .code_lines = 28, .code_first_line = 29, .code_instructions = 33, .object_type = 34,
        .tuple_items = 36,
    },
};
// clang-format on

static const gp_cpython_layout_t *layout_row_of(unsigned version)
{
    const gp_cpython_layout_t *row = &rows[0];
    for (size_t i = 1; i < sizeof(rows) / sizeof(rows[0]) && rows[i].version <= version; i++)
        row = &rows[i];
    return row;
}

static void layout_take(uint16_t *field, const uint64_t *runtime, unsigned word)
{
    if (word != 0)
        *field = (uint16_t)(runtime[word] < OFFSET_MAX ? runtime[word] : GP_CPYTHON_NONE);
}

static void layout_read_form(gp_cpython_layout_t *layout, const form_t *form, const uint64_t *runtime)
{
    const struct {
        uint16_t *field;
        unsigned word;
    } all[] = {
        {&layout->state_frame, form->state_frame},
        {&layout->state_base, form->state_base},
        {&layout->state_native_id, form->state_native_id},
        {&layout->state_chunk, form->state_chunk},
        {&layout->cframe_frame, form->cframe_frame},
        {&layout->frame_code, form->frame_code},
        {&layout->frame_previous, form->frame_previous},
        {&layout->frame_instruction, form->frame_instruction},
        {&layout->frame_bytes, form->frame_bytes},
        {&layout->frame_owner, form->frame_owner},
        {&layout->frame_stack_top, form->frame_top},
        {&layout->code_file, form->code_file},
        {&layout->code_name, form->code_name},
        {&layout->code_lines, form->code_lines},
        {&layout->code_first_line, form->code_first_line},
        {&layout->code_instructions, form->code_instructions},
        {&layout->tuple_items, form->tuple_items},
        {&layout->text_ascii, form->text_ascii},
        {&layout->text_compact, form->text_compact},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        layout_take(all[i].field, runtime, all[i].word);
    // Neighbours of what is published, in all versions.
    layout->state_top = (uint16_t)(layout->state_chunk + sizeof(void *));
    layout->code_stack = (uint16_t)(layout->code_first_line - sizeof(int));
    layout->code_locals = (uint16_t)(layout->code_first_line + sizeof(int));
    if (form->text_compact == 0 && form->text_ascii != 0)
        layout->text_compact = (uint16_t)(layout->text_ascii + 2 * sizeof(void *));
}

static bool layout_is_word(unsigned offset, unsigned end)
{
    return offset % sizeof(void *) == 0 && offset + sizeof(void *) <= end;
}

// Do the offsets lie in what they are of, and lead to the sizes that the types in memory have?
static bool layout_makes_sense(const gp_cpython_layout_t *layout, const gp_cpython_seen_t *seen)
{
    unsigned frame_end = layout->frame_bytes, code_end = layout->code_instructions;
    bool frame = frame_end % sizeof(void *) == 0 && frame_end <= FRAME_BYTES_MAX && layout->frame_owner < frame_end &&
                 layout_is_word(layout->frame_code, frame_end) && layout_is_word(layout->frame_previous, frame_end) &&
                 layout_is_word(layout->frame_instruction, frame_end) &&
                 layout_is_word(layout->frame_stack_top, frame_end);
    bool code = code_end == seen->code_size && layout_is_word(layout->code_file, code_end) &&
                layout_is_word(layout->code_name, code_end) && layout_is_word(layout->code_lines, code_end) &&
                layout->code_first_line >= GP_CPYTHON_OBJECT_SIZE && layout->code_locals + sizeof(int) <= code_end;
    bool state = (layout->state_frame == GP_CPYTHON_NONE || layout_is_word(layout->state_frame, OFFSET_MAX)) &&
                 layout_is_word(layout->state_chunk, OFFSET_MAX) && layout_is_word(layout->state_native_id, OFFSET_MAX);
    return frame && code && state && layout->tuple_items == seen->tuple_size &&
           layout->text_compact + sizeof(void *) == seen->text_size && layout->text_ascii > GP_CPYTHON_TEXT_STATE;
}

// Do published offsets agree with the readers' own, taken to be the same in all versions?
static bool layout_holds_constants(const form_t *form, const gp_cpython_layout_t *layout, const gp_cpython_seen_t *seen)
{
    const uint64_t *runtime = seen->runtime;
    const struct {
        unsigned word;
        uint64_t expected;
    } all[] = {
        {form->object_type, GP_CPYTHON_OBJECT_TYPE},
        {form->text_length, GP_CPYTHON_OBJECT_SIZE},
        {form->text_state, GP_CPYTHON_TEXT_STATE},
        {form->bytes_data, GP_CPYTHON_BYTES_DATA},
        {form->previous_state, 0},
        {form->next_state, GP_CPYTHON_STATE_NEXT},
        {form->generator_frame, seen->generator_size - layout->frame_bytes},
        {form->generator_state,
         seen->generator_size - layout->frame_bytes + (size_t)(ptrdiff_t)GP_CPYTHON_GENERATOR_STATE},
    };
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        if (all[i].word != 0 && runtime[all[i].word] != all[i].expected)
            return false;
    return true;
}

static bool layout_is_published(const gp_cpython_seen_t *seen)
{
    return seen->runtime != NULL && memcmp(seen->runtime, "xdebugpy", sizeof(uint64_t)) == 0 &&
           seen->runtime[VERSION_WORD] == seen->version;
}

static bool layout_by_form(gp_cpython_layout_t *layout, const form_t *form, const gp_cpython_seen_t *seen)
{
    *layout = *layout_row_of((unsigned)(seen->version >> 16));
    layout->version = (uint16_t)(seen->version >> 16);
    layout_read_form(layout, form, seen->runtime);
    return layout_makes_sense(layout, seen) && layout_holds_constants(form, layout, seen);
}

gp_cpython_layout_t *gp_cpython_layout_find(const gp_cpython_seen_t *seen, const char **why)
{
    static gp_cpython_layout_t layout;
    unsigned version = (unsigned)(seen->version >> 16);
    *why = "is older than 3.11";
    if (version < FIRST)
        return NULL;
    *why = "is built without the global interpreter lock";
    if (seen->is_free_threaded)
        return NULL;
    *why = "does not say where its frames are";
    if (version >= FIRST_OF_SIZES && !layout_is_published(seen))
        return NULL;
    *why = "is built without the global interpreter lock";
    if (version >= FIRST_OF_SIZES && seen->runtime[forms[0].free_threaded] != 0)
        return NULL;
    *why = "keeps its frames in a way that is not known";
    for (size_t i = 0; layout_is_published(seen) && i < sizeof(forms) / sizeof(forms[0]); i++)
        if (forms[i].version <= version && layout_by_form(&layout, &forms[i], seen))
            return &layout;
    layout = *layout_row_of(version);
    bool is_whole = version < FIRST_OF_SIZES && (seen->code_size == 0 || layout_makes_sense(&layout, seen));
    return is_whole ? &layout : NULL;
}
