# SPDX-License-Identifier: MIT
# libgreenprof.a, for programs that are linked statically: one object, in which every name but the public ones is local.
# What the shared library interposes is local, too, so that the program has libc's own; and what the library asks the
# dynamic loader for comes from src/static. Its code has a section of its own, by which it is known in stacks. Archives of
# others are named, not copied.
set(GREENPROF_STATIC_LIBRARIES crypto zstd deflate z lzma iberty m) # libcrypto may need the next ones
set(archives "")
if(GREENPROF_FORTIFIED) # inside: who links it has none that were made for its C library
  set(GREENPROF_STATIC_LIBRARIES "")
  set(archives ${GREENPROF_ZSTD} ${GREENPROF_DEFLATE} ${GREENPROF_INFLATE} ${GREENPROF_XZ} ${GREENPROF_IBERTY})
endif()
list(TRANSFORM GREENPROF_STATIC_LIBRARIES PREPEND -l OUTPUT_VARIABLE flags)
list(JOIN flags " " GREENPROF_PC_PRIVATE)
# gcc leaves the index of unwind tables out of static programs; stacks are walked by it.
set(GREENPROF_PC_PRIVATE "-Wl,--eh-frame-hdr ${GREENPROF_PC_PRIVATE}" PARENT_SCOPE)
if(GREENPROF_SANITIZE OR GREENPROF_COVERAGE) # their runtimes are shared libraries, or have tables of their own
  return()
endif()

set(joined ${CMAKE_CURRENT_BINARY_DIR}/greenprof-joined.o)
set(local ${CMAKE_CURRENT_BINARY_DIR}/greenprof-static.o)
foreach(name dlsym dlopen dlerror dladdr dladdr1)
  list(APPEND redefined --redefine-sym ${name}=gp_static_${name})
endforeach()
list(APPEND redefined --redefine-sym _dl_find_object=gp_static_dl_find_object)
foreach(name .text .text.hot .text.startup .text.unlikely)
  list(APPEND renamed --rename-section ${name}=gp_own_code)
endforeach()
add_library(gp_static OBJECT static/find_object.c static/loader.c)
add_custom_command(OUTPUT ${local}
  COMMAND ${CMAKE_C_COMPILER} -r -nostdlib -o ${joined} "$<FILTER:${GREENPROF_OBJECTS},EXCLUDE,loader_open>" ${archives}
  COMMAND ${CMAKE_OBJCOPY} --wildcard --strip-debug --keep-global-symbol=prof_*
          --keep-global-symbol=__cyg_profile_func_* ${redefined} ${renamed} ${joined} ${local}
  COMMAND ${CMAKE_COMMAND} -E rm ${joined}
  DEPENDS ${GREENPROF_OBJECTS} COMMAND_EXPAND_LISTS VERBATIM COMMENT "Joining libgreenprof.a")
add_library(greenprof-static STATIC ${local} $<TARGET_OBJECTS:gp_static>)
set_source_files_properties(${local} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
set_target_properties(greenprof-static PROPERTIES OUTPUT_NAME greenprof EXPORT_NAME static LINKER_LANGUAGE C)
target_link_libraries(greenprof-static INTERFACE ${GREENPROF_STATIC_LIBRARIES})
target_link_options(greenprof-static INTERFACE -Wl,--eh-frame-hdr)
target_include_directories(greenprof-static INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
add_library(greenprof::static ALIAS greenprof-static)
