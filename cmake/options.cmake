# SPDX-License-Identifier: MIT
# Compiler settings that every target of the project shares.
# Sources of one processor have its name: NAME_${GREENPROF_ARCH}.c.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
  set(GREENPROF_ARCH aarch64)
else()
  set(GREENPROF_ARCH x86_64)
endif()
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
if(PROJECT_IS_TOP_LEVEL AND NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()

add_compile_options(-Wall -Wextra $<$<COMPILE_LANGUAGE:C>:-Wconversion> $<$<COMPILE_LANGUAGE:C>:-Wshadow>
                    $<$<COMPILE_LANGUAGE:C>:-Wstrict-prototypes>)
option(GREENPROF_WERROR "Turn warnings into errors (CI does)" OFF)
if(GREENPROF_WERROR)
  add_compile_options(-Werror)
endif()

set(GREENPROF_SANITIZE "" CACHE STRING "Sanitizers, as -fsanitize= takes them")
if(GREENPROF_SANITIZE)
  add_compile_options(-fsanitize=${GREENPROF_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${GREENPROF_SANITIZE})
  # What they add makes gcc fear for variables beside getcontext().
  add_compile_options($<$<C_COMPILER_ID:GNU>:-Wno-clobbered>)
endif()
option(GREENPROF_COVERAGE "Instrument for gcov" OFF)
if(GREENPROF_COVERAGE)
  add_compile_options(--coverage -fprofile-update=atomic) # counters of handlers and of threads
  add_link_options(--coverage)
endif()

# musl lacks names of glibc's that the sources use: src/musl has them. Hooks that rest on glibc's inside are left out.
include(CheckIncludeFile)
check_include_file(gnu/libc-version.h GREENPROF_GLIBC)
if(NOT GREENPROF_GLIBC)
  add_compile_options($<$<COMPILE_LANGUAGE:C>:-include${CMAKE_CURRENT_LIST_DIR}/../src/musl/glibc_names.h>)
endif()
