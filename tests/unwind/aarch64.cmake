# SPDX-License-Identifier: MIT
# The walker for aarch64: cross-compiled, its unit tests run by qemu-user.
set(walker_dir ${PROJECT_SOURCE_DIR}/src/core/unwind)
find_program(AARCH64_CC aarch64-linux-gnu-gcc)
find_program(QEMU_AARCH64 qemu-aarch64)
if(AARCH64_CC AND QEMU_AARCH64 AND NOT CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64")
  file(GLOB aarch64_walker ${walker_dir}/*.c)
  list(FILTER aarch64_walker EXCLUDE REGEX "x86_64|snapshot")
  list(APPEND aarch64_walker ${PROJECT_SOURCE_DIR}/src/base/descriptors.c ${PROJECT_SOURCE_DIR}/src/base/maps.c ${PROJECT_SOURCE_DIR}/src/base/main_file.c)
  foreach(case cfi cache walk blocks table_room)
    set(exe ${CMAKE_CURRENT_BINARY_DIR}/unwind_aarch64_${case})
    add_custom_command(OUTPUT ${exe}
      COMMAND ${AARCH64_CC} -std=gnu11 -O2 -g -fPIC -Wall -Wextra -Wconversion -Wshadow
        -I${CMAKE_CURRENT_SOURCE_DIR}/mini_cmocka -I${CMAKE_CURRENT_SOURCE_DIR} -I${walker_dir}/.. -I${PROJECT_SOURCE_DIR}/src
        ${cases_${case}} ${aarch64_walker} -o ${exe}
      DEPENDS ${cases_${case}} ${aarch64_walker} WORKING_DIRECTORY ${CMAKE_CURRENT_SOURCE_DIR} VERBATIM)
    list(APPEND aarch64_tests ${exe})
    add_test(NAME unwind_aarch64_${case} COMMAND ${QEMU_AARCH64} -L /usr/aarch64-linux-gnu ${exe})
  endforeach()
  add_custom_target(unwind_aarch64 ALL DEPENDS ${aarch64_tests})
else()
  unwind_skip(unwind_aarch64 gcc-aarch64-linux-gnu or qemu-user is not installed)
endif()
