# SPDX-License-Identifier: MIT
# One fuzz target a parser.
#   capture  a capture through the reader, the report and every exporter
#   payload  packed and compressed chunks, both ways
#   texts    trace ids, moments, restrictions, names that are not UTF-8
#   options  command lines
#   rings    the ring file of a killed process
set(tools ${PROJECT_SOURCE_DIR}/tools/greenprof)
set(fuzz_parts ${writer})
foreach(library gp_base gp_base_helpers gp_model gp_capture_reader gp_symbol gp_facts gp_report gp_export)
  get_target_property(sources ${library} SOURCES)
  get_target_property(directory ${library} SOURCE_DIR)
  foreach(source ${sources})
    if(source MATCHES "[.]c$")
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${directory})
      list(APPEND fuzz_parts ${source})
    endif()
  endforeach()
endforeach()
file(GLOB fuzz_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/base/*.h ${PROJECT_SOURCE_DIR}/src/capture/*.h
     ${PROJECT_SOURCE_DIR}/src/capture/*/*.h)
foreach(room model report export page symbol)
  file(GLOB headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/${room}/*.h)
  list(APPEND fuzz_headers ${headers})
endforeach()
greenprof_fuzz_parts(capture PARTS ${fuzz_parts} HEADERS ${fuzz_headers} gp_export
  INCLUDES ${CMAKE_CURRENT_SOURCE_DIR} ${tools} ${PROJECT_BINARY_DIR}/src/export/generated
           ${PROJECT_BINARY_DIR}/src/ship/generated ${PROJECT_BINARY_DIR}/tools/greenprof/generated)

set(libraries_capture ${GREENPROF_D_OBJECT}) # the only target that reaches names
function(fuzz_target name corpus)
  greenprof_fuzz(capture ${name} SOURCE fuzz_${name}.c CORPUS ${corpus} RUNS 20000 LONGEST 4096 MORE ${ARGN} REPLAY gp_read
    LIBRARIES ${GREENPROF_DEFLATE} -lz -llzma ${GREENPROF_ZSTD} ${libraries_${name}} -liberty)
endfunction()
fuzz_target(capture corpus)
fuzz_target(payload corpus_payload ${writer})
fuzz_target(texts corpus_texts ${tools}/report/time_text.c ${tools}/report/row_limit.c)
fuzz_target(options corpus_options ${tools}/options.c ${tools}/run/environment.c ${tools}/option_table.c ${tools}/report/sort_key.c ${tools}/nearest.c)

set(recovery ${PROJECT_SOURCE_DIR}/src/capture/killed/ring_known.c ${PROJECT_SOURCE_DIR}/src/capture/killed/ring_walk.c ${PROJECT_SOURCE_DIR}/src/capture/killed/recovery_rings.c
    ${PROJECT_SOURCE_DIR}/src/capture/write/intern.c ${PROJECT_SOURCE_DIR}/src/capture/write/ring_to_records.c)
fuzz_target(rings corpus_rings ${writer} ${recovery})
if(TARGET capture_fuzz_capture)
  add_dependencies(capture_fuzz_capture gp_d_object)
endif()
