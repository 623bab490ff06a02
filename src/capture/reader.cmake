# The capture reader: libc, libzstd; xxhash as a header.
add_library(gp_capture_reader OBJECT
  ${CMAKE_CURRENT_LIST_DIR}/reader.c
  ${CMAKE_CURRENT_LIST_DIR}/reader_payload.c
  ${CMAKE_CURRENT_LIST_DIR}/reader_records.c
  ${CMAKE_CURRENT_LIST_DIR}/reader_window.c)
target_link_libraries(gp_capture_reader PUBLIC ${GREENPROF_ZSTD})
# Loops over columns of bytes.
set_source_files_properties(${CMAKE_CURRENT_LIST_DIR}/reader_payload.c PROPERTIES COMPILE_OPTIONS
  "$<$<NOT:$<CONFIG:Debug>>:-O3>")
