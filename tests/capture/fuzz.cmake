# SPDX-License-Identifier: MIT
# One fuzz target a parser. The corpora are replayed by whatever compiler builds the rest; with clang they are fuzzed for a
# moment as well, under its sanitizers. For longer: capture_fuzz_NAME DIRECTORY-FOR-FINDS corpus
#   capture  a capture through the reader, the report and every exporter
#   payload  packed and compressed chunks, both ways
#   texts    trace ids, moments, restrictions, names that are not UTF-8
#   options  command lines
set(tools ${PROJECT_SOURCE_DIR}/tools/greenprof)
set(fuzz_includes ${CMAKE_CURRENT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/tests/fuzz ${PROJECT_SOURCE_DIR}/src
    ${PROJECT_SOURCE_DIR}/src/read ${PROJECT_SOURCE_DIR}/include ${tools})
set(fuzz_parts ${writer})
foreach(library gp_base gp_model gp_capture_reader gp_symbol gp_report gp_export)
  get_target_property(sources ${library} SOURCES)
  get_target_property(directory ${library} SOURCE_DIR)
  foreach(source ${sources})
    if(source MATCHES "[.]c$")
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${directory})
      list(APPEND fuzz_parts ${source})
    endif()
  endforeach()
endforeach()
list(REMOVE_DUPLICATES fuzz_parts)
find_program(FUZZ_CLANG NAMES clang clang-14)
if(FUZZ_CLANG)
  execute_process(COMMAND sh -c "echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }' >f.c && ${FUZZ_CLANG} -fsanitize=fuzzer,address,undefined f.c -o f"
    WORKING_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR} RESULT_VARIABLE fuzz_missing OUTPUT_QUIET ERROR_QUIET)
endif()
if(FUZZ_CLANG AND fuzz_missing EQUAL 0)
  set(fuzz_directory ${CMAKE_CURRENT_BINARY_DIR}/fuzz)
  set(fuzz_library ${fuzz_directory}/libcapture.a)
  list(TRANSFORM fuzz_includes PREPEND -I OUTPUT_VARIABLE fuzz_include_flags)
  set(fuzz_flags -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all
                 ${fuzz_include_flags} -I${PROJECT_BINARY_DIR}/src/read/export/generated)
  file(MAKE_DIRECTORY ${fuzz_directory})
  file(GLOB fuzz_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/read/*/*.h ${PROJECT_SOURCE_DIR}/src/base/*.h
       ${PROJECT_SOURCE_DIR}/src/model/*.h ${PROJECT_SOURCE_DIR}/src/capture/*.h)
  add_custom_command(OUTPUT ${fuzz_library}
    COMMAND ${FUZZ_CLANG} ${fuzz_flags} -fsanitize=fuzzer-no-link -c ${fuzz_parts}
    COMMAND sh -c "rm -f ${fuzz_library} && ar rc ${fuzz_library} *.o"
    DEPENDS ${fuzz_parts} ${fuzz_headers} gp_export WORKING_DIRECTORY ${fuzz_directory} VERBATIM)
endif()

function(fuzz_target name corpus)
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/fuzz_${name}.c)
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${corpus})
  add_executable(fuzz_${name} ${source} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c ${ARGN})
  target_include_directories(fuzz_${name} PRIVATE ${tools} ${PROJECT_SOURCE_DIR}/tests/fuzz)
  target_link_libraries(fuzz_${name} PRIVATE gp_read)
  file(GLOB files CONFIGURE_DEPENDS ${corpus}/*)
  add_test(NAME capture.corpus_${name} COMMAND fuzz_${name} ${files})
  if(fuzz_library)
    set(exe ${fuzz_directory}/capture_fuzz_${name})
    add_custom_command(OUTPUT ${exe}
      COMMAND ${FUZZ_CLANG} ${fuzz_flags} -fsanitize=fuzzer ${source} ${ARGN} ${fuzz_library} ${GREENPROF_DEFLATE} -lz -llzma
              ${GREENPROF_ZSTD} -liberty -o ${exe}
      DEPENDS ${source} ${ARGN} ${fuzz_library} VERBATIM COMMAND_EXPAND_LISTS)
    add_custom_target(capture_fuzz_${name} ALL DEPENDS ${exe})
    # The corpus, then a few seconds of something new; what is found goes to the build tree.
    add_test(NAME capture.fuzz_${name} COMMAND sh -c "mkdir -p found/${name} && ${exe} -runs=20000 -seed=1 -max_total_time=4 -max_len=4096 -timeout=10 found/${name} ${corpus}"
             WORKING_DIRECTORY ${fuzz_directory})
  endif()
endfunction()
fuzz_target(capture corpus)
fuzz_target(payload corpus_payload ${writer})
fuzz_target(texts corpus_texts ${tools}/time_text.c ${tools}/restriction.c)
fuzz_target(options corpus_options ${tools}/options.c ${tools}/option_table.c ${tools}/sort_key.c ${tools}/nearest.c)
