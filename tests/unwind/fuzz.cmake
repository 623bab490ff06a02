# SPDX-License-Identifier: MIT
# The fuzz target needs clang; it is built beside whatever compiler builds the rest.
find_program(FUZZ_CLANG NAMES clang clang-14)
set(walker_dir ${PROJECT_SOURCE_DIR}/src/core/unwind)
set(fuzz_sources fuzz_cfi.c ${walker_dir}/cfi.c ${walker_dir}/cfi_entry.c ${walker_dir}/expr.c ${walker_dir}/stack_see.c
                 ${walker_dir}/packed_row.c)
set(fuzz_exe ${CMAKE_CURRENT_BINARY_DIR}/unwind_fuzz_cfi)
if(FUZZ_CLANG)
  execute_process(COMMAND sh -c "echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' >f.c && ${FUZZ_CLANG} -fsanitize=fuzzer,address,undefined f.c -o f"
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} RESULT_VARIABLE fuzz_missing OUTPUT_QUIET ERROR_QUIET)
endif()
if(FUZZ_CLANG AND fuzz_missing EQUAL 0)
  add_custom_command(OUTPUT ${fuzz_exe}
    COMMAND ${FUZZ_CLANG} -std=gnu11 -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
      -I${walker_dir}/.. -I${PROJECT_SOURCE_DIR}/src ${fuzz_sources} -o ${fuzz_exe}
    DEPENDS ${fuzz_sources} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} VERBATIM)
  add_custom_target(unwind_fuzz ALL DEPENDS ${fuzz_exe})
  # The corpus, then a few seconds of something new; what is found goes to the build tree.
  add_test(NAME unwind_fuzz COMMAND sh -c "mkdir -p fuzz && ${fuzz_exe} -runs=50000 -seed=1 -max_total_time=5 -max_len=2048 -print_final_stats=1 fuzz ${CMAKE_CURRENT_SOURCE_DIR}/corpus")
else()
  unwind_skip(unwind_fuzz clang with libclang-rt is not installed)
endif()
