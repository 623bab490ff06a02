# SPDX-License-Identifier: MIT
# The reader of call frame information.
foreach(part cfi cfi_entry expr stack_see packed_row)
  list(APPEND fuzz_parts ${PROJECT_SOURCE_DIR}/src/core/unwind/${part}.c)
endforeach()
file(GLOB fuzz_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/core/unwind/*.h)
greenprof_fuzz_parts(unwind PARTS ${fuzz_parts} HEADERS ${fuzz_headers} INCLUDES ${PROJECT_SOURCE_DIR}/src/core)
greenprof_fuzz(unwind cfi SOURCE fuzz_cfi.c CORPUS corpus RUNS 50000 LONGEST 2048 REPLAY ${walker})
