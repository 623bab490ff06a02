// SPDX-License-Identifier: MIT
// The row of runtime-hooks/cpython/layout.c against the headers of the Python that is installed.
#define Py_BUILD_CORE 1
#include <Python.h>
#include <internal/pycore_frame.h>

#include <stdio.h>

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

int main(void)
{
    const gp_cpython_layout_t *layout = gp_cpython_layout_find(PY_VERSION_HEX);
    if (layout == NULL) {
        printf("SKIP: no row for " PY_VERSION "\n");
        return 77;
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
    EXPECT(state_profile, PyThreadState, c_profilefunc);
    expect("profile object", 16, offsetof(PyThreadState, c_profileobj) - offsetof(PyThreadState, c_profilefunc));
    EXPECT(state_native_id, PyThreadState, native_thread_id);
    expect("thread state links", 8, offsetof(PyThreadState, next) - offsetof(PyThreadState, prev));
    expect("frame stack top", 64, offsetof(_PyInterpreterFrame, stacktop));
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
