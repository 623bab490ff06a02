# SPDX-License-Identifier: MIT
# libunwind as oracle, in programs that know nothing of it.
if(UNWIND_LIBRARY AND NOT GREENPROF_SANITIZE)
  add_library(unwind_oracle MODULE oracle_preload.c ${walker})
  target_link_libraries(unwind_oracle ${UNWIND_LIBRARY})
  add_executable(unwind_oracle_throw oracle_throw.cc step_throw.cc)
  target_compile_options(unwind_oracle_throw PRIVATE -O3 -fomit-frame-pointer)
  set(service -) # the demo service at -O3, where it is built at all
  if(TARGET demo-service)
    get_target_property(sources demo-service SOURCES)
    get_target_property(folder demo-service SOURCE_DIR)
    list(TRANSFORM sources PREPEND ${folder}/)
    add_executable(unwind_oracle_service ${sources})
    target_compile_options(unwind_oracle_service PRIVATE -O3 -fomit-frame-pointer)
    target_link_libraries(unwind_oracle_service PRIVATE greenprof sqlite3 pthread jansson z)
    set(service $<TARGET_FILE:unwind_oracle_service>)
  endif()
  add_test(NAME unwind_oracle COMMAND ${CMAKE_CURRENT_SOURCE_DIR}/oracle.sh
    $<TARGET_FILE:unwind_oracle> $<TARGET_FILE:unwind_oracle_throw> ${service})
  set_tests_properties(unwind_oracle PROPERTIES SKIP_RETURN_CODE 77 TIMEOUT 170)
else()
  unwind_skip(unwind_oracle libunwind-dev is not installed or this is a sanitizer build)
endif()
