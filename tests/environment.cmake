# SPDX-License-Identifier: MIT
# Read by ctest as it begins: tests count samples, so the rate does not depend on what a signal costs on this machine.
if(NOT DEFINED ENV{GREENPROF_FREQUENCY})
  set(ENV{GREENPROF_FREQUENCY} 1000)
endif()
