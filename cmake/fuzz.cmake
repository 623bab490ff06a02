# SPDX-License-Identifier: MIT
# Fuzz targets (tools/fuzz runs them for longer): the corpus is replayed by whatever compiler builds the rest; with clang it
# is fuzzed for a moment as well, under its sanitizers. What is found goes to the build tree.

# Sets GREENPROF_FUZZ_CLANG, "" where there is no clang with its fuzzer.
function(greenprof_find_fuzzer)
  if(DEFINED CACHE{GREENPROF_FUZZ_CLANG})
    return()
  endif()
  find_program(FUZZ_CLANG NAMES clang clang-14)
  set(found "")
  if(FUZZ_CLANG)
    file(WRITE ${PROJECT_BINARY_DIR}/fuzzer/f.c "int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return !d && n; }\n")
    execute_process(COMMAND ${FUZZ_CLANG} -fsanitize=fuzzer,address,undefined f.c -o f
      WORKING_DIRECTORY ${PROJECT_BINARY_DIR}/fuzzer RESULT_VARIABLE missing OUTPUT_QUIET ERROR_QUIET)
    if(missing EQUAL 0)
      set(found ${FUZZ_CLANG})
    endif()
  endif()
  set(GREENPROF_FUZZ_CLANG "${found}" CACHE INTERNAL "clang with libclang-rt")
endfunction()

# greenprof_fuzz_parts(ROOM PARTS ... INCLUDES ... HEADERS ...): what the targets of a room (capture, wire, ...) fuzz, built
# once, with coverage. PARTS: sources; HEADERS: what they depend on besides.
function(greenprof_fuzz_parts room)
  cmake_parse_arguments(ARG "" "" "PARTS;INCLUDES;HEADERS" ${ARGN})
  greenprof_find_fuzzer()
  set(includes ${PROJECT_SOURCE_DIR}/tests/fuzz ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${ARG_INCLUDES})
  list(TRANSFORM includes PREPEND -I OUTPUT_VARIABLE flags)
  list(REMOVE_DUPLICATES ARG_PARTS)
  set(${room}_fuzz_includes ${includes} PARENT_SCOPE)
  set(${room}_fuzz_flags -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined -fno-sanitize-recover=all ${flags} PARENT_SCOPE)
  if(GREENPROF_FUZZ_CLANG)
    set(directory ${CMAKE_CURRENT_BINARY_DIR}/fuzz)
    set(archive ${directory}/lib${room}.a)
    file(MAKE_DIRECTORY ${directory})
    add_custom_command(OUTPUT ${archive}
      COMMAND ${GREENPROF_FUZZ_CLANG} -std=gnu11 -D_GNU_SOURCE -g -O1 -fsanitize=address,undefined,fuzzer-no-link
              -fno-sanitize-recover=all ${flags} -c ${ARG_PARTS}
      COMMAND sh -c "rm -f ${archive} && ar rc ${archive} *.o"
      DEPENDS ${ARG_PARTS} ${ARG_HEADERS} WORKING_DIRECTORY ${directory} VERBATIM)
    set(${room}_fuzz_archive ${archive} PARENT_SCOPE)
  endif()
endfunction()

# greenprof_fuzz(ROOM NAME SOURCE F CORPUS DIRECTORY RUNS N LONGEST BYTES MORE ... REPLAY ... LIBRARIES ... OPTIONS ...)
# Tests ROOM.corpus_NAME and ROOM.fuzz_NAME, target ROOM_fuzz_NAME. MORE: sources besides; REPLAY: libraries of the replay;
# LIBRARIES: of the fuzzed program, after the room's parts; OPTIONS: of both when they are linked.
function(greenprof_fuzz room name)
  cmake_parse_arguments(ARG "" "SOURCE;CORPUS;RUNS;LONGEST" "MORE;REPLAY;LIBRARIES;OPTIONS" ${ARGN})
  file(STRINGS ${PROJECT_SOURCE_DIR}/tools/fuzz listed REGEX "^${room}_fuzz_${name} ")
  if(NOT listed)
    message(FATAL_ERROR "tools/fuzz does not list ${room}_fuzz_${name}")
  endif()
  set(source ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_SOURCE})
  set(corpus ${CMAKE_CURRENT_SOURCE_DIR}/${ARG_CORPUS})
  file(GLOB inputs CONFIGURE_DEPENDS ${corpus}/*)
  add_executable(${room}_replay_${name} ${source} ${PROJECT_SOURCE_DIR}/tests/fuzz/replay.c ${ARG_MORE})
  target_include_directories(${room}_replay_${name} PRIVATE ${${room}_fuzz_includes})
  target_link_libraries(${room}_replay_${name} PRIVATE ${ARG_REPLAY})
  target_link_options(${room}_replay_${name} PRIVATE ${ARG_OPTIONS})
  add_test(NAME ${room}.corpus_${name} COMMAND ${room}_replay_${name} ${inputs})
  if(NOT GREENPROF_FUZZ_CLANG)
    add_test(NAME ${room}.fuzz_${name} COMMAND sh -c "echo SKIP: clang with libclang-rt is not installed; exit 77")
    set_tests_properties(${room}.fuzz_${name} PROPERTIES SKIP_RETURN_CODE 77)
    return()
  endif()
  set(directory ${CMAKE_CURRENT_BINARY_DIR}/fuzz)
  set(exe ${directory}/${room}_fuzz_${name})
  add_custom_command(OUTPUT ${exe}
    COMMAND ${GREENPROF_FUZZ_CLANG} ${${room}_fuzz_flags} -fsanitize=fuzzer ${ARG_OPTIONS} ${source} ${ARG_MORE}
            ${${room}_fuzz_archive} ${ARG_LIBRARIES} -o ${exe}
    DEPENDS ${source} ${ARG_MORE} ${${room}_fuzz_archive} VERBATIM COMMAND_EXPAND_LISTS)
  add_custom_target(${room}_fuzz_${name} ALL DEPENDS ${exe})
  add_test(NAME ${room}.fuzz_${name} COMMAND sh -c "mkdir -p found/${name} && ${exe} -runs=${ARG_RUNS} -seed=1 -max_total_time=4 -max_len=${ARG_LONGEST} -timeout=10 found/${name} ${corpus}"
           WORKING_DIRECTORY ${directory})
endfunction()
