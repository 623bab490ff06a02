# SPDX-License-Identifier: MIT
# The readers of `greenprof trace`. The corpus is replayed by whatever compiler builds the rest; with clang they are fuzzed
# for a moment as well, under its sanitizers. For longer: tools/fuzz tree_fuzz_spans
set(tree ${PROJECT_SOURCE_DIR}/src/read/tree)
file(GLOB corpus CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/corpus/*)
add_executable(fuzz_spans fuzz_spans.c ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c)
target_include_directories(fuzz_spans PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz)
target_link_libraries(fuzz_spans PRIVATE gp_tree)
add_test(NAME tree.corpus_spans COMMAND fuzz_spans ${corpus})

find_program(FUZZ_CLANG NAMES clang clang-14)
if(FUZZ_CLANG)
  execute_process(COMMAND sh -c "echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' >f.c && ${FUZZ_CLANG} -fsanitize=fuzzer,address,undefined f.c -o f"
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} RESULT_VARIABLE fuzz_missing OUTPUT_QUIET ERROR_QUIET)
endif()
if(FUZZ_CLANG AND fuzz_missing EQUAL 0)
  set(fuzz_exe ${CMAKE_CURRENT_BINARY_DIR}/fuzz/tree_fuzz_spans)
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fuzz)
  # Of the sources only those that read what others wrote: no captures, no network.
  set(fuzz_sources ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_spans.c)
  foreach(part spans tree clocks critical read_json read_osprofiler read_profile
          write_words write_text write_json write_dot write_chrome write_html write_rally)
    list(APPEND fuzz_sources ${tree}/${part}.c)
  endforeach()
  foreach(part base/index base/memory read/export/json_text read/export/text read/export/xml)
    list(APPEND fuzz_sources ${PROJECT_SOURCE_DIR}/src/${part}.c)
  endforeach()
  file(GLOB fuzz_headers CONFIGURE_DEPENDS ${tree}/*.h)
  add_custom_command(OUTPUT ${fuzz_exe}
    COMMAND ${FUZZ_CLANG} -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
            -I${PROJECT_SOURCE_DIR}/tests/fuzz -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/src
            -I${PROJECT_SOURCE_DIR}/src/read -I${PROJECT_BINARY_DIR}/src/read/tree ${fuzz_sources} -ljansson -o ${fuzz_exe}
    DEPENDS ${fuzz_sources} ${fuzz_headers} gp_tree VERBATIM)
  add_custom_target(tree_fuzz_spans ALL DEPENDS ${fuzz_exe})
  add_test(NAME tree.fuzz_spans COMMAND sh -c "mkdir -p found && ${fuzz_exe} -runs=20000 -seed=1 -max_total_time=4 -max_len=4096 -timeout=10 found ${CMAKE_CURRENT_SOURCE_DIR}/corpus"
           WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR})
endif()
