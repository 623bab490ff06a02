# SPDX-License-Identifier: MIT
# Names of Boost.Context's routines: C ones, and from 1.87 on the C++ ones, for a program in C in the place of the former.
include(CheckCXXSourceCompiles)
check_cxx_source_compiles("#include <boost/version.hpp>
  int main() { static_assert(BOOST_VERSION < 108700, \"\"); }" GREENPROF_BOOST_HAS_C_NAMES)
set(GREENPROF_BOOST_CXX_NAMES
  jump_fcontext=_ZN5boost7context6detail13jump_fcontextEPvS2_
  ontop_fcontext=_ZN5boost7context6detail14ontop_fcontextEPvS2_PFNS1_10transfer_tES3_E
  make_fcontext=_ZN5boost7context6detail13make_fcontextEPvmPFvNS1_10transfer_tEE)

# Where Boost has no others, a C program calls them by these.
function(greenprof_boost_names target)
  if(TARGET ${target} AND NOT GREENPROF_BOOST_HAS_C_NAMES)
    target_compile_definitions(${target} PRIVATE ${GREENPROF_BOOST_CXX_NAMES})
  endif()
endfunction()
