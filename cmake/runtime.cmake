# SPDX-License-Identifier: MIT
# One folder a runtime: all that is known of it stands there, and its CMakeLists.txt says with greenprof_runtime() what
# there is. From these calls come the stubs, the names that the core exports, the archive of link-time hooks, and the
# tables of greenprof_runtime_tables().

set_property(GLOBAL PROPERTY GREENPROF_HOOK_OBJECTS "")
set_property(GLOBAL PROPERTY GREENPROF_HOOK_NAMES "") # of runtimes' functions
set_property(GLOBAL PROPERTY GREENPROF_LIBC_NAMES "") # of libc's functions

# greenprof_hook_objects(NAME FILE...): objects of the core.
function(greenprof_hook_objects name)
  add_library(gp_hook_${name} OBJECT ${ARGN})
  target_include_directories(gp_hook_${name} PRIVATE ${PROJECT_SOURCE_DIR}/runtime-hooks)
  target_compile_options(gp_hook_${name} PRIVATE $<$<COMPILE_LANGUAGE:C>:-ftls-model=initial-exec>)
  set_property(GLOBAL APPEND PROPERTY GREENPROF_HOOK_OBJECTS $<TARGET_OBJECTS:gp_hook_${name}>)
endfunction()

# Write lines that call the assembly macros of `include`.
function(greenprof_assembly file include lines)
  file(CONFIGURE OUTPUT ${file} CONTENT
       "#include \"${include}\"\n${lines}    .section .note.GNU-stack, \"\", @progbits\n" @ONLY)
endfunction()

# NAME=HOOK -> NAME and HOOK; NAME alone has no hook.
macro(greenprof_split pair)
  string(REPLACE "=" ";" words ${pair})
  list(POP_FRONT words symbol hook)
endmacro()

# greenprof_runtime(NAME TITLE TEXT ...)
#   TITLE           as `greenprof runtimes` calls it
#   SYMBOLS         names by which a shared library, or a program that has it linked in, is known to be it
#   SOURCES         hooks in the core; without them, and without WRAP_SOURCES, the folder builds its own
#   PORTABLE        its hooks are not for x86-64 only
# A runtime in a shared library:
#   OBJECT, HOW     pattern of the library's file name; how it is hooked, for `greenprof runtimes`
#   STUBS           NAME=HOOK: functions for which a register-preserving stub is made, and what it calls (interpose.h)
#   WRAPPERS        functions that SOURCES define themselves
#   LIBC            it is the C library: its names are exported by what programs link as well. Those of others are not:
#                   a program linked with libgreenprof before its runtime would take them for the runtime's own.
# Linked into a program, patched as it starts (patch/targets.h):
#   PATCH           NAME=HOOK: functions for which a stub is made; NAME: SOURCES define gp_patch_NAME (patch/hooks.h)
#   PATCH_NAME      its word for GREENPROF_PATCH, which another runtime right before it may have as well; else NAME
#   PATCH_OPTIONAL  the same; the others are of use without it
#   PATCH_UNLESS    names of programs in which it is hooked in a better way, or that have another runtime; two at most
#   PATCH_CODE      header with GP_CODE_NAME for each of these: the code by which it is found where names are gone; and
#                   GP_SIGN_RUNTIME: what all builds have in common
# Linked into a program, hooked at link time (wrap/wrap.h): makes greenprof::wrap-NAME and greenprof-wrap-NAME.pc
#   WRAP_SWITCHES   "NAME REGISTER [OFFSET]": functions for which a stub is made, and where the target's stack pointer is
#   WRAP_MAKERS     functions that WRAP_SOURCES wrap
#   WRAP_FROM_WITHIN the runtime's own archive calls them, too, which may be searched after ours
#   LINKED_TITLE    instead of "TITLE, linked in"
#   EXCEPT          pattern of programs that have the names for something else
#   ALSO            another name that tells it from what has the first one, too
# Linked into a program, read at samples (signal/poll.h):
#   POLL            the variable that is read; SOURCES say how
# Not hooked, but told (unhooked/forms.h):
#   FORMS           "FILE|HAS|LACKS LACKS|WHAT IS NOT SEEN": objects of that file name (pattern, empty = any) which define
#                   the function HAS (empty = none tells), and none of LACKS
function(greenprof_runtime name)
  cmake_parse_arguments(PARSE_ARGV 1 ARG "LIBC;PORTABLE;WRAP_FROM_WITHIN" "TITLE;OBJECT;HOW;PATCH_CODE;PATCH_NAME;LINKED_TITLE;EXCEPT;ALSO;POLL"
    "SYMBOLS;SOURCES;STUBS;WRAPPERS;PATCH;PATCH_OPTIONAL;PATCH_UNLESS;WRAP_SWITCHES;WRAP_MAKERS;WRAP_SOURCES;FORMS")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "greenprof_runtime(${name}): ${ARG_UNPARSED_ARGUMENTS}")
  elseif(NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64" AND NOT ARG_PORTABLE)
    return()
  endif()
  set(names ${ARG_WRAPPERS})
  set(lines "")
  foreach(pair ${ARG_STUBS})
    greenprof_split(${pair})
    list(APPEND names ${symbol})
    string(APPEND lines "GP_STUB ${symbol}, ${hook}\n")
  endforeach()
  foreach(pair ${ARG_PATCH} ${ARG_PATCH_OPTIONAL})
    greenprof_split(${pair})
    if(hook)
      string(APPEND lines "GP_PATCH_STUB ${symbol}, ${hook}\n")
    endif()
  endforeach()
  if(lines)
    greenprof_assembly(${name}_stubs.S patch/patch_stub_x86_64.inc "${lines}")
    list(APPEND ARG_SOURCES ${CMAKE_CURRENT_BINARY_DIR}/${name}_stubs.S)
  endif()
  if(ARG_SOURCES)
    greenprof_hook_objects(${name} ${ARG_SOURCES})
  endif()
  if(ARG_LIBC)
    set_property(GLOBAL APPEND PROPERTY GREENPROF_LIBC_NAMES ${names})
  else()
    set_property(GLOBAL APPEND PROPERTY GREENPROF_HOOK_NAMES ${names})
  endif()
  if(NOT ARG_LINKED_TITLE)
    set(ARG_LINKED_TITLE "${ARG_TITLE}, linked in")
  endif()
  greenprof_wrap()
  greenprof_rows()
endfunction()

# Of greenprof_runtime(): what is hooked at link time.
macro(greenprof_wrap)
  set(functions ${ARG_WRAP_MAKERS})
  set(lines "")
  foreach(switch ${ARG_WRAP_SWITCHES})
    string(REPLACE " " ";" words ${switch})
    list(GET words 0 function)
    list(APPEND functions ${function})
    list(JOIN words ", " arguments)
    string(APPEND lines "GP_WRAP ${arguments}\n")
  endforeach()
  if(functions)
    greenprof_assembly(${name}_wrap.S wrap/wrap_x86_64.inc "${lines}")
    list(TRANSFORM ARG_WRAP_SOURCES PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/)
    set_property(GLOBAL APPEND PROPERTY GREENPROF_WRAP_SOURCES ${ARG_WRAP_SOURCES} ${CMAKE_CURRENT_BINARY_DIR}/${name}_wrap.S)
    # -u: the archive of the runtime may be searched before ours, which calls it.
    set(flags "-Wl,--wrap=\\1,-u,\\1")
    if(ARG_WRAP_FROM_WITHIN)
      string(APPEND flags ",-u,__wrap_\\1")
    endif()
    list(TRANSFORM functions REPLACE "(.+)" "${flags}")
    add_library(greenprof-wrap-${name} INTERFACE)
    set_target_properties(greenprof-wrap-${name} PROPERTIES EXPORT_NAME wrap-${name})
    target_link_options(greenprof-wrap-${name} INTERFACE ${functions})
    target_link_libraries(greenprof-wrap-${name} INTERFACE greenprof-wrap)
    add_library(greenprof::wrap-${name} ALIAS greenprof-wrap-${name})
    if(GREENPROF_INSTALL)
      install(TARGETS greenprof-wrap-${name} EXPORT greenprofTargets)
      list(JOIN functions " " flags)
      configure_file(${PROJECT_SOURCE_DIR}/cmake/greenprof-wrap.pc.in ${CMAKE_CURRENT_BINARY_DIR}/greenprof-wrap-${name}.pc @ONLY)
      install(FILES ${CMAKE_CURRENT_BINARY_DIR}/greenprof-wrap-${name}.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig COMPONENT dev)
    endif()
  endif()
endmacro()

# A C string of a text, or NULL.
function(greenprof_c_string out text)
  if(text STREQUAL "")
    set(${out} NULL PARENT_SCOPE)
  else()
    set(${out} "\"${text}\"" PARENT_SCOPE)
  endif()
endfunction()

function(greenprof_add_row table row)
  set_property(GLOBAL APPEND_STRING PROPERTY GREENPROF_${table}_ROWS "    ${row},\n")
endfunction()

# Of greenprof_runtime(): its rows of the tables.
macro(greenprof_rows)
  if(ARG_OBJECT)
    foreach(symbol ${ARG_SYMBOLS})
      greenprof_add_row(SHARED
        "{.name = \"${ARG_TITLE}\", .how = \"${ARG_HOW}\", .object = \"${ARG_OBJECT}\", .symbol = \"${symbol}\"}")
    endforeach()
  endif()
  set(patch_title "${ARG_TITLE}")
  if(functions)
    set(patch_title "${ARG_LINKED_TITLE}")
    greenprof_c_string(except "${ARG_EXCEPT}")
    greenprof_c_string(also "${ARG_ALSO}")
    foreach(symbol ${ARG_SYMBOLS})
      greenprof_add_row(LINKED "{.name = \"${ARG_LINKED_TITLE}\", .how = \"at link time\", .symbol = \"${symbol}\", .wrap = \"${name}\", .except = ${except}, .also = ${also}}")
    endforeach()
  endif()
  if(ARG_PATCH)
    if(NOT ARG_PATCH_NAME)
      set(ARG_PATCH_NAME ${name})
    endif()
    set(row "{.name = \"${ARG_PATCH_NAME}\", .title = \"${patch_title}\", .unless = {")
    set_property(GLOBAL APPEND PROPERTY GREENPROF_PATCH_UNLESS ${ARG_PATCH_UNLESS})
    foreach(symbol ${ARG_PATCH_UNLESS})
      string(APPEND row "\"${symbol}\", ")
    endforeach()
    string(APPEND row "NULL}, .functions = {")
    foreach(pair ${ARG_PATCH} OPTIONAL ${ARG_PATCH_OPTIONAL})
      if(pair STREQUAL "OPTIONAL")
        set(optional ", .optional = true")
      else()
        greenprof_split(${pair})
        set_property(GLOBAL APPEND PROPERTY GREENPROF_PATCH_NAMES ${symbol})
        string(APPEND row "{.symbol = \"${symbol}\"${optional}")
        if(ARG_PATCH_CODE)
          string(APPEND row ", GP_CODE_${symbol}")
        endif()
        string(APPEND row "}, ")
      endif()
    endforeach()
    string(APPEND row "}")
    if(ARG_PATCH_CODE)
      string(APPEND row ", GP_SIGN_${name}")
    endif()
    greenprof_add_row(PATCH "${row}}")
    if(ARG_PATCH_CODE)
      cmake_path(GET CMAKE_CURRENT_SOURCE_DIR FILENAME folder)
      set_property(GLOBAL APPEND_STRING PROPERTY GREENPROF_PATCH_INCLUDES "#include \"${folder}/${ARG_PATCH_CODE}\"\n")
    endif()
  endif()
  foreach(form ${ARG_FORMS})
    string(REPLACE "|" ";" words "${form}")
    list(GET words 0 file)
    list(GET words 1 has)
    list(GET words 2 lacks)
    list(GET words 3 unseen)
    string(REGEX REPLACE "([^ ]+) *" "\"\\1\", " lacks "${lacks}")
    greenprof_add_row(FORM
      "{.title = \"${ARG_TITLE}\", .file = \"${file}\", .has = \"${has}\", .lacks = {${lacks}NULL}, .unseen = \"${unseen}\"}")
  endforeach()
  if(ARG_POLL)
    set(is_patched false)
    if(ARG_PATCH)
      set(is_patched true)
    endif()
    greenprof_add_row(POLLED "{.title = \"${ARG_TITLE}\", .variable = \"${ARG_POLL}\", .is_patched = ${is_patched}}")
  endif()
endmacro()

# Write what the folders have said, once all have: what can be patched (patch_rows.c, patch_functions.h), the words
# that a program's symbols are looked up in (patch_words.gperf), and what
# `greenprof runtimes` knows besides (runtime_rows.inc, polled_rows.inc).
function(greenprof_runtime_tables folder)
  foreach(name SHARED_ROWS LINKED_ROWS POLLED_ROWS FORM_ROWS PATCH_ROWS PATCH_INCLUDES PATCH_NAMES PATCH_UNLESS)
    get_property(${name} GLOBAL PROPERTY GREENPROF_${name})
  endforeach()
  file(CONFIGURE OUTPUT ${folder}/patch_rows.c CONTENT "#include \"patch/targets.h\"
@PATCH_INCLUDES@
const gp_patch_runtime_t gp_patch_runtimes[] = {
@PATCH_ROWS@    {0},
};
" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/form_rows.c CONTENT "#include \"unhooked/forms.h\"

#include <stddef.h>

const gp_form_t gp_forms[] = {
@FORM_ROWS@    {0},
};
" @ONLY)
  list(TRANSFORM PATCH_NAMES REPLACE "(.+)" "EACH(\\1)" OUTPUT_VARIABLE PATCH_FUNCTIONS)
  list(JOIN PATCH_FUNCTIONS " " PATCH_FUNCTIONS)
  list(REMOVE_ITEM PATCH_UNLESS ${PATCH_NAMES})
  list(REMOVE_DUPLICATES PATCH_UNLESS)
  greenprof_word_list(patch_word ${folder}/patch_words.gperf ${PATCH_NAMES} ${PATCH_UNLESS})
  greenprof_words(${folder}/patch_words.gperf ${folder}/patch_words.h)
  file(CONFIGURE OUTPUT ${folder}/patch_functions.h CONTENT "#define GP_PATCH_EACH_FUNCTION(EACH) @PATCH_FUNCTIONS@\n" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/runtime_rows.inc CONTENT "@SHARED_ROWS@@LINKED_ROWS@" @ONLY)
  file(CONFIGURE OUTPUT ${folder}/polled_rows.inc CONTENT "@POLLED_ROWS@" @ONLY)
endfunction()
