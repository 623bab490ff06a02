# SPDX-License-Identifier: MIT
# Fixed words that are looked up while a program runs, as perfect hashes by gperf.
find_program(GREENPROF_GPERF gperf REQUIRED)

# greenprof_words(FILE HEADER): of a .gperf file, HEADER with its function. What includes it lists it as a source.
function(greenprof_words file header)
  cmake_path(GET header PARENT_PATH folder)
  add_custom_command(OUTPUT ${header}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
    COMMAND ${GREENPROF_GPERF} --output-file=${header} ${file}
    DEPENDS ${file} VERBATIM)
endfunction()

# greenprof_word_list(NAME FILE WORD...): a .gperf file of words and their places in a list that CMake has.
function(greenprof_word_list name file)
  set(rows "")
  set(place 0)
  foreach(word ${ARGN})
    string(APPEND rows "${word}, ${place}\n")
    math(EXPR place "${place} + 1")
  endforeach()
  if(NOT ARGN) # gperf takes no empty list
    set(rows "-, 0\n")
  endif()
  file(CONFIGURE OUTPUT ${file} CONTENT "%{
#pragma GCC system_header
#include <stddef.h>
#include <string.h>
static const struct @name@ *@name@_find(const char *word, size_t len);
enum { @name@_count = @place@ };
%}
%language=ANSI-C
%readonly-tables
%compare-strncmp
%struct-type
%define lookup-function-name @name@_find
%define hash-function-name @name@_hash
struct @name@ { const char *name; int place; };
%%
@rows@" @ONLY)
endfunction()
