# libunwind as oracle, in programs that know nothing of it.
if(UNWIND_LIBRARY AND NOT GREENPROF_SANITIZE)
  add_library(unwind_oracle MODULE oracle_preload.c ${walker})
  target_link_libraries(unwind_oracle ${UNWIND_LIBRARY})
  add_executable(unwind_oracle_throw oracle_throw.cc step_throw.cc)
  target_compile_options(unwind_oracle_throw PRIVATE -O3 -fomit-frame-pointer)
  add_test(NAME unwind_oracle COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/oracle.sh
    $<TARGET_FILE:unwind_oracle> $<TARGET_FILE:unwind_oracle_throw>)
  set_tests_properties(unwind_oracle PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 170)
else()
  unwind_skip(unwind_oracle libunwind-dev is not installed or this is a sanitizer build)
endif()
