# SPDX-License-Identifier: MIT
# The headers that requests bring.
file(GLOB fuzz_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/wire/*.h)
file(GLOB fuzz_parts CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/wire/*.c)
greenprof_fuzz_parts(wire PARTS ${fuzz_parts} ${PROJECT_SOURCE_DIR}/src/model/trace_id.c
  ${PROJECT_SOURCE_DIR}/src/base/descriptors.c ${PROJECT_SOURCE_DIR}/src/base/key_list.c ${PROJECT_SOURCE_DIR}/src/base/number.c HEADERS ${fuzz_headers})
greenprof_fuzz(wire headers SOURCE fuzz_headers.c CORPUS corpus RUNS 50000 LONGEST 2048 REPLAY ${wire} crypto LIBRARIES -lcrypto)
