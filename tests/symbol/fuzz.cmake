# SPDX-License-Identifier: MIT
# One fuzz target a parser.
foreach(part buckets descriptors helpers index maps memory)
  list(APPEND fuzz_parts ${PROJECT_SOURCE_DIR}/src/base/${part}.c)
endforeach()
foreach(part compressed debug_file demangle demangle_d dwarf dwarf_abbrev dwarf_ahead dwarf_files dwarf_flatten dwarf_form dwarf_functions
        dwarf_inlined dwarf_line_program dwarf_lines dwarf_origin dwarf_ranges dwarf_split dwarf_unit dwarf_walk eh_functions elf_file
        perf_map plt symbol_table symfs)
  list(APPEND fuzz_parts ${PROJECT_SOURCE_DIR}/src/symbol/${part}.c)
endforeach()
file(GLOB fuzz_headers CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/symbol/*.h ${PROJECT_SOURCE_DIR}/src/base/*.h)
greenprof_fuzz_parts(symbol PARTS ${fuzz_parts} HEADERS ${fuzz_headers})

# elf opens no files by names out of the input, and debug_info none but its own; maps reads the input in place of /proc's file.
set(wrap_elf -Wl,--wrap=open,--wrap=syscall)
set(wrap_debug_info -Wl,--wrap=gp_elf_open)
set(wrap_maps -Wl,--wrap=syscall,--wrap=read)
set(libraries_names ${GREENPROF_D_OBJECT})
foreach(target elf debug_info debug_line packed names perf_map maps)
  greenprof_fuzz(symbol ${target} SOURCE fuzz/fuzz_${target}.c CORPUS corpus/${target} RUNS 10000 LONGEST 16384 REPLAY gp_read
    OPTIONS ${wrap_${target}} LIBRARIES ${GREENPROF_DEFLATE} -lz -llzma ${GREENPROF_ZSTD} ${libraries_${target}} -liberty)
endforeach()
if(TARGET symbol_fuzz_names)
  add_dependencies(symbol_fuzz_names gp_d_object)
endif()
