# SPDX-License-Identifier: MIT
# What a build needs of a machine it was not made on: as little as can be for Debian packages, nothing for a wheel.

# Sets OUT to the archives of these names, or to nothing where one is missing.
function(greenprof_find_archives out)
  set(archives "")
  foreach(name ${ARGN})
    find_library(GREENPROF_ARCHIVE_${name} NAMES lib${name}.a)
    list(APPEND archives ${GREENPROF_ARCHIVE_${name}})
  endforeach()
  if(archives MATCHES "NOTFOUND")
    set(archives "")
  endif()
  set(${out} ${archives} PARENT_SCOPE)
endfunction()

# greenprof_archives(TARGET LIBRARY NAME...): link the archives of these names where all are there, else PkgConfig::LIBRARY.
# Packages then need no version of it that another Debian lacks.
function(greenprof_archives target library)
  greenprof_find_archives(archives ${ARGN})
  if(NOT archives)
    target_link_libraries(${target} PRIVATE PkgConfig::${library})
    return()
  endif()
  target_include_directories(${target} SYSTEM PRIVATE ${${library}_INCLUDE_DIRS})
  target_link_libraries(${target} PRIVATE ${archives})
endfunction()

# Why no wheel can be made of this build; tools/wheel tells it.
set(lacks "")
if(NOT GREENPROF_COMMAND OR NOT GREENPROF_INSTALL)
  set(lacks "it has no command, or installs nothing")
elseif(GREENPROF_SANITIZE OR GREENPROF_COVERAGE)
  set(lacks "it is instrumented")
endif()
set(GREENPROF_WHEEL_LACKS "${lacks}" CACHE INTERNAL "")
set(GREENPROF_WHEEL_FOLDER ${PROJECT_BINARY_DIR}/wheel)

# In the place of shared libraries of these names, which another distribution need not have.
if(NOT GREENPROF_WHEEL_LACKS)
  foreach(name crypto lzma)
    greenprof_find_archives(archive ${name})
    if(archive)
      file(MAKE_DIRECTORY ${GREENPROF_WHEEL_FOLDER}/archives)
      file(CREATE_LINK ${archive} ${GREENPROF_WHEEL_FOLDER}/archives/lib${name}.a SYMBOLIC)
    endif()
  endforeach()
endif()

# What is looked for at run time: by the command, few of whose subcommands need it, and by all that a wheel has.
add_library(greenprof-found OBJECT EXCLUDE_FROM_ALL tools/wheel/found.c)

# greenprof_wheel_part(TARGET [OBJECTS LIBRARY...] [ARCHIVES NAME...]): wheel-TARGET, of the same objects and those of the
# libraries, but linked for a wheel, and first of all with these archives. Not part of a build by itself.
function(greenprof_wheel_part target)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "" "" "OBJECTS;ARCHIVES")
  if(GREENPROF_WHEEL_LACKS)
    return()
  endif()
  foreach(property TYPE SOURCES LINK_LIBRARIES LINK_OPTIONS OUTPUT_NAME)
    get_target_property(${property} ${target} ${property})
    if(NOT ${property})
      set(${property} "")
    endif()
  endforeach()
  list(FILTER SOURCES INCLUDE REGEX "TARGET_OBJECTS|\\.o$")
  set(objects ${SOURCES})
  foreach(library ${ARG_OBJECTS})
    list(APPEND objects $<TARGET_OBJECTS:${library}>)
  endforeach()
  get_target_property(own ${target} SOURCES)
  list(FILTER own INCLUDE REGEX "\\.c$")
  if(own)
    list(APPEND objects $<TARGET_OBJECTS:${target}>)
  endif()
  if(TYPE STREQUAL "EXECUTABLE")
    add_executable(wheel-${target} EXCLUDE_FROM_ALL ${objects})
    target_link_options(wheel-${target} PRIVATE -no-pie) # libunwind's archives are made for nothing else, as python3 is on Debian
  else()
    add_library(wheel-${target} SHARED EXCLUDE_FROM_ALL ${objects})
    set_target_properties(wheel-${target} PROPERTIES SUFFIX .so.0)
  endif()
  if(NOT OUTPUT_NAME)
    set(OUTPUT_NAME ${target})
  endif()
  set_target_properties(wheel-${target} PROPERTIES OUTPUT_NAME ${OUTPUT_NAME} LINKER_LANGUAGE C
    LIBRARY_OUTPUT_DIRECTORY ${GREENPROF_WHEEL_FOLDER} RUNTIME_OUTPUT_DIRECTORY ${GREENPROF_WHEEL_FOLDER})
  target_link_options(wheel-${target} PRIVATE ${LINK_OPTIONS} -L${GREENPROF_WHEEL_FOLDER}/archives -Wl,--as-needed)
  greenprof_find_archives(archives ${ARG_ARCHIVES})
  target_link_libraries(wheel-${target} PRIVATE ${archives} ${LINK_LIBRARIES})
  set_property(GLOBAL APPEND PROPERTY GREENPROF_WHEEL_PARTS wheel-${target})
endfunction()
