# SPDX-License-Identifier: MIT
# One fuzz target a parser. The corpora are replayed by whatever compiler builds the rest; with clang they are fuzzed for a
# moment as well, under its sanitizers. For longer: symbol_fuzz_NAME DIRECTORY-FOR-FINDS corpus/NAME
find_program(FUZZ_CLANG NAMES clang clang-14)
set(fuzz_parts)
foreach(part buckets index maps memory)
  list(APPEND fuzz_parts ${PROJECT_SOURCE_DIR}/src/base/${part}.c)
endforeach()
foreach(part compressed debug_file demangle dwarf dwarf_abbrev dwarf_files dwarf_flatten dwarf_form dwarf_functions
        dwarf_inlined dwarf_lines dwarf_origin dwarf_ranges dwarf_unit dwarf_walk eh_functions elf_file perf_map plt symbol_table)
  list(APPEND fuzz_parts ${PROJECT_SOURCE_DIR}/src/read/symbol/${part}.c)
endforeach()
if(FUZZ_CLANG)
  execute_process(COMMAND sh -c "echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' >f.c && ${FUZZ_CLANG} -fsanitize=fuzzer,address,undefined f.c -o f"
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} RESULT_VARIABLE fuzz_missing OUTPUT_QUIET ERROR_QUIET)
endif()
if(FUZZ_CLANG AND fuzz_missing EQUAL 0)
  set(fuzz_directory ${CMAKE_CURRENT_BINARY_DIR}/fuzz)
  set(fuzz_library ${fuzz_directory}/libsymbol.a)
  set(fuzz_flags -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
                 -I${PROJECT_SOURCE_DIR}/src -I${PROJECT_SOURCE_DIR}/src/read -I${PROJECT_SOURCE_DIR}/include -I${PROJECT_SOURCE_DIR}/tests/fuzz)
  file(MAKE_DIRECTORY ${fuzz_directory})
  file(GLOB fuzz_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/read/symbol/*.h ${PROJECT_SOURCE_DIR}/src/base/*.h)
  add_custom_command(OUTPUT ${fuzz_library}
    COMMAND ${FUZZ_CLANG} ${fuzz_flags} -fsanitize=fuzzer-no-link -c ${fuzz_parts}
    COMMAND sh -c "rm -f ${fuzz_library} && ar rc ${fuzz_library} *.o"
    DEPENDS ${fuzz_parts} ${fuzz_headers} WORKING_DIRECTORY ${fuzz_directory} VERBATIM)
endif()

foreach(target elf debug_info debug_line packed names perf_map maps)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/fuzz/fuzz_${target}.c)
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/corpus/${target})
  # elf opens no files by names out of the input; maps reads the input in place of /proc's file.
  set(wrap $<$<STREQUAL:${target},elf>:-Wl,--wrap=open> $<$<STREQUAL:${target},maps>:-Wl,--wrap=open,--wrap=read>)
  file(GLOB inputs CONFIGURE_DEPENDS ${corpus}/*)
  add_executable(symbol_replay_${target} ${source} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c)
  target_include_directories(symbol_replay_${target} PRIVATE ${PROJECT_SOURCE_DIR}/tests/fuzz)
  target_link_libraries(symbol_replay_${target} PRIVATE gp_read)
  target_link_options(symbol_replay_${target} PRIVATE ${wrap})
  add_test(NAME symbol.corpus_${target} COMMAND symbol_replay_${target} ${inputs})
  if(fuzz_library)
    set(fuzz_exe ${fuzz_directory}/symbol_fuzz_${target})
    add_custom_command(OUTPUT ${fuzz_exe}
      COMMAND ${FUZZ_CLANG} ${fuzz_flags} -fsanitize=fuzzer ${wrap} ${source} ${fuzz_library} ${GREENPROF_DEFLATE} -lz -llzma
              ${GREENPROF_ZSTD} -liberty -o ${fuzz_exe}
      DEPENDS ${source} ${fuzz_library} VERBATIM COMMAND_EXPAND_LISTS)
    add_custom_target(symbol_fuzz_${target} ALL DEPENDS ${fuzz_exe})
    add_test(NAME symbol.fuzz_${target} COMMAND sh -c "mkdir -p found/${target} && ${fuzz_exe} -runs=10000 -seed=1 -max_total_time=4 -max_len=16384 -timeout=10 found/${target} ${corpus}"
             WORKING_DIRECTORY ${fuzz_directory})
  endif()
endforeach()
