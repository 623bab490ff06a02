// SPDX-License-Identifier: MIT
// The layout found by runtime-hooks/cpython against the headers of the installed Python; and its guesses where Python
// publishes none.
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>
#if PY_VERSION_HEX >= 0x030e0000
#include <internal/pycore_debug_offsets.h>
#include <internal/pycore_runtime_structs.h>
#endif

#include <stdio.h>
#include <string.h>

#include "cpython/interpreter/layout.h"

static int failures;

static void expect(const char *what, size_t have, size_t want)
{
    if (have != want) {
        printf("%s: %zu, the headers say %zu\n", what, have, want);
        failures++;
    }
}

#define EXPECT(field, type, member) expect(#field, layout->field, offsetof(type, member))

// Published by Debian's CPython 3.14.10, without unused words.
static uint64_t published[128] = {
    [1] = 0x030e0af0, [24] = 8,  [26] = 72,  [28] = 160, [29] = 232, [32] = 8,  [34] = 56,  [35] = 80,
    [36] = 74,        [37] = 64, [40] = 112, [42] = 128, [43] = 136, [44] = 68, [48] = 208, [51] = 8,
    [57] = 32,        [76] = 32, [78] = 32,  [79] = 16,  [80] = 40,  [85] = 72, [86] = 67,
};

static void expect_refusal(const gp_cpython_seen_t *seen, const char *word)
{
    const char *why = NULL;
    bool refused = gp_cpython_layout_find(seen, &why) == NULL;
    expect(word, refused && strstr(why, word) != NULL, true);
}

static void check_what_is_published(void)
{
    const char *why = NULL;
    const gp_cpython_seen_t is_3_14 = {0x030e0af0, published, false, 208, 32, 152, 64};
    gp_cpython_seen_t seen = is_3_14;
    memcpy(published, "xdebugpy", 8);
    const gp_cpython_layout_t *layout = gp_cpython_layout_find(&seen, &why);
    expect("3.14 is known", layout != NULL && layout->frame_owner == 74 && layout->tuple_items == 32, true);
    expect("3.14's states", layout != NULL && layout->generator_running == 0, true);
    seen.version = published[1] = 0x03140000; // a later one, by the newest form that fits
    layout = gp_cpython_layout_find(&seen, &why);
    expect("3.20 is known", layout != NULL && layout->version > GP_CPYTHON_NEWEST && layout->frame_bytes == 80, true);
    seen.code_size = 216;
    expect_refusal(&seen, "not known");
    seen = is_3_14;
    expect_refusal(&seen, "does not say"); // another version is published
    published[1] = seen.version;
    published[36] = 90; // an owner beyond the frame
    expect_refusal(&seen, "not known");
    published[36] = 74;
    published[2] = 1;
    expect_refusal(&seen, "lock");
    published[2] = 0;
    seen.runtime = NULL;
    expect_refusal(&seen, "does not say");
    expect_refusal(&(gp_cpython_seen_t){.version = 0x030a0000}, "older");
    expect("3.12 is known",
           gp_cpython_layout_find(&(gp_cpython_seen_t){0x030c01f0, NULL, false, 192, 24, 144, 64}, &why) != NULL, true);
}

#if PY_VERSION_HEX >= 0x030e0000
static const _Py_DebugOffsets offsets = _Py_DebugOffsets_INIT(_Py_Debug_Cookie);
#endif

int main(void)
{
    check_what_is_published();
    const gp_cpython_seen_t seen = {
        .version = PY_VERSION_HEX,
#if PY_VERSION_HEX >= 0x030e0000
        .runtime = (const uint64_t *)(const void *)&offsets,
#endif
        .code_size = offsetof(PyCodeObject, co_code_adaptive),
        .tuple_size = offsetof(PyTupleObject, ob_item),
        .generator_size = offsetof(PyGenObject, gi_iframe) + offsetof(_PyInterpreterFrame, localsplus),
        .text_size = sizeof(PyUnicodeObject),
    };
    const char *why = NULL;
    const gp_cpython_layout_t *layout = gp_cpython_layout_find(&seen, &why);
    if (layout == NULL) {
        bool has_none = PY_VERSION_HEX >= 0x030c0000 && PY_VERSION_HEX < 0x030e0000; // in a header
        printf("%s" PY_VERSION " %s\n", has_none ? "SKIP: " : "", why);
        return has_none && failures == 0 ? 77 : 1;
    }
#if PY_VERSION_HEX < 0x030d0000
    EXPECT(state_cframe, PyThreadState, cframe);
    EXPECT(state_root_cframe, PyThreadState, root_cframe);
    EXPECT(cframe_frame, _PyCFrame, current_frame);
    expect("cframe.previous", layout->cframe_frame + 8u, offsetof(_PyCFrame, previous));
    EXPECT(frame_code, _PyInterpreterFrame, f_code);
    EXPECT(frame_instruction, _PyInterpreterFrame, prev_instr);
#else
    EXPECT(state_frame, PyThreadState, current_frame);
    EXPECT(frame_code, _PyInterpreterFrame, f_executable);
    EXPECT(frame_instruction, _PyInterpreterFrame, instr_ptr);
#endif
#if PY_VERSION_HEX < 0x030c0000
    EXPECT(frame_is_entry, _PyInterpreterFrame, is_entry);
#endif
    EXPECT(state_chunk, PyThreadState, datastack_chunk);
    EXPECT(state_top, PyThreadState, datastack_top);
    expect("profile object", 16, offsetof(PyThreadState, c_profileobj) - offsetof(PyThreadState, c_profilefunc));
    EXPECT(state_native_id, PyThreadState, native_thread_id);
    expect("thread state links", 8, offsetof(PyThreadState, next) - offsetof(PyThreadState, prev));
#if PY_VERSION_HEX < 0x030e0000
    EXPECT(frame_stack_top, _PyInterpreterFrame, stacktop);
#else
    EXPECT(frame_stack_top, _PyInterpreterFrame, stackpointer);
#endif
    expect("frame object", 24, offsetof(PyFrameObject, f_frame));
    EXPECT(frame_previous, _PyInterpreterFrame, previous);
    EXPECT(frame_owner, _PyInterpreterFrame, owner);
    EXPECT(frame_bytes, _PyInterpreterFrame, localsplus);
    EXPECT(code_locals, PyCodeObject, co_nlocalsplus);
    EXPECT(code_stack, PyCodeObject, co_stacksize);
    EXPECT(code_first_line, PyCodeObject, co_firstlineno);
    EXPECT(code_file, PyCodeObject, co_filename);
    EXPECT(code_name, PyCodeObject, co_qualname);
    EXPECT(code_lines, PyCodeObject, co_linetable);
    EXPECT(code_instructions, PyCodeObject, co_code_adaptive);
    EXPECT(tuple_items, PyTupleObject, ob_item);
    expect("text_ascii", layout->text_ascii, sizeof(PyASCIIObject));
    expect("text_compact", layout->text_compact, sizeof(PyCompactUnicodeObject));
    expect("object type", GP_CPYTHON_OBJECT_TYPE, offsetof(PyObject, ob_type));
    expect("object size", GP_CPYTHON_OBJECT_SIZE, offsetof(PyVarObject, ob_size));
    expect("text length", GP_CPYTHON_OBJECT_SIZE, offsetof(PyASCIIObject, length));
    expect("text state", GP_CPYTHON_TEXT_STATE, offsetof(PyASCIIObject, state));
    expect("bytes", GP_CPYTHON_BYTES_DATA, offsetof(PyBytesObject, ob_sval));
    expect("chunk data", GP_CPYTHON_CHUNK_DATA, offsetof(_PyStackChunk, data));
    expect("chunk top", GP_CPYTHON_CHUNK_TOP, offsetof(_PyStackChunk, top));
    expect("generator state", (size_t)-GP_CPYTHON_GENERATOR_STATE,
           offsetof(PyGenObject, gi_iframe) - offsetof(PyGenObject, gi_frame_state));
    expect("tp_basicsize", 32, offsetof(PyTypeObject, tp_basicsize));
    expect("tp_dealloc", 48, offsetof(PyTypeObject, tp_dealloc));
    expect("tp_call", 128, offsetof(PyTypeObject, tp_call));
    expect("tp_init", 296, offsetof(PyTypeObject, tp_init));
    expect("d_method", 40, offsetof(PyMethodDescrObject, d_method));
    expect("d_wrapped", 48, offsetof(PyWrapperDescrObject, d_wrapped));
    expect("m_self", 24, offsetof(PyCFunctionObject, m_self));
    printf("Python %s: %d differ\n", PY_VERSION, failures);
    return failures > 0;
}
