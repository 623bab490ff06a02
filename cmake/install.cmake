# SPDX-License-Identifier: MIT
# Install rules: libraries, headers, pkg-config file, CMake package, the command.
# Components, each a package of tools/package: runtime, dev, python. And wheel, which tools/wheel packs.
install(TARGETS greenprof-core greenprof greenprof-hooks EXPORT greenprofTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_COMPONENT dev)
if(TARGET greenprof-static)
  install(TARGETS greenprof-static EXPORT greenprofTargets ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT dev)
endif()
install(TARGETS greenprof-otel LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_SKIP) # the core loads it
if(TARGET greenprof-ship) # libgreenprof loads it
  install(TARGETS greenprof-ship LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_SKIP)
endif()
get_property(backends GLOBAL PROPERTY GREENPROF_BACKEND_LIBRARIES)
if(backends) # so does it these
  install(TARGETS ${backends} LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} COMPONENT runtime NAMELINK_SKIP)
endif()
install(DIRECTORY include/greenprof DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} COMPONENT dev FILES_MATCHING PATTERN "*.h")
if(TARGET greenprof-command)
  install(TARGETS greenprof-command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR} COMPONENT runtime)
  set(docs ${PROJECT_BINARY_DIR}/docs)
  install(DIRECTORY ${docs}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 COMPONENT runtime FILES_MATCHING PATTERN "*.1")
  if(TARGET greenprof-man3)
    install(DIRECTORY ${docs}/man3 DESTINATION ${CMAKE_INSTALL_MANDIR} COMPONENT dev)
  endif()
  install(FILES ${docs}/completion/greenprof.bash RENAME greenprof
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions COMPONENT runtime)
  install(FILES ${docs}/completion/_greenprof DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions COMPONENT runtime)
  install(FILES ${docs}/completion/greenprof.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d COMPONENT runtime)
endif()

install(EXPORT greenprofTargets NAMESPACE greenprof:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/greenprof
  COMPONENT dev)
configure_package_config_file(cmake/greenprofConfig.cmake.in ${PROJECT_BINARY_DIR}/greenprofConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/greenprof)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/greenprofConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/greenprofConfig.cmake ${PROJECT_BINARY_DIR}/greenprofConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/greenprof COMPONENT dev)

configure_file(cmake/greenprof.pc.in ${PROJECT_BINARY_DIR}/greenprof.pc @ONLY)
configure_file(cmake/greenprof-hooks.pc.in ${PROJECT_BINARY_DIR}/greenprof-hooks.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/greenprof.pc ${PROJECT_BINARY_DIR}/greenprof-hooks.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig
  COMPONENT dev)

if(NOT GREENPROF_WHEEL_LACKS)
  get_property(parts GLOBAL PROPERTY GREENPROF_WHEEL_PARTS)
  add_custom_target(greenprof-wheel DEPENDS ${parts} greenprof-core greenprof-otel ${backends} greenprof-python)
  foreach(name greenprof greenprof-ship)
    install(FILES $<TARGET_FILE:wheel-${name}> DESTINATION greenprof/lib COMPONENT wheel EXCLUDE_FROM_ALL)
  endforeach()
  foreach(name greenprof-core greenprof-otel ${backends})
    install(FILES $<TARGET_FILE:${name}> RENAME $<TARGET_SONAME_FILE_NAME:${name}> DESTINATION greenprof/lib COMPONENT wheel EXCLUDE_FROM_ALL)
  endforeach()
  install(PROGRAMS $<TARGET_FILE:wheel-greenprof-command> DESTINATION bin COMPONENT wheel EXCLUDE_FROM_ALL)
endif()
