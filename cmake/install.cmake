# SPDX-License-Identifier: MIT
# Install rules: libraries, headers, pkg-config file, CMake package, the command.
install(TARGETS greenprof-core greenprof greenprof-hooks EXPORT greenprofTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(TARGETS greenprof-otel LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} NAMELINK_SKIP) # the core loads it
install(DIRECTORY include/greenprof DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
if(TARGET greenprof-command)
  install(TARGETS greenprof-command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  set(docs ${PROJECT_BINARY_DIR}/docs)
  install(DIRECTORY ${docs}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR}/man1 FILES_MATCHING PATTERN "*.1")
  install(FILES ${docs}/completion/greenprof.bash RENAME greenprof
    DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions)
  install(FILES ${docs}/completion/_greenprof DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
  install(FILES ${docs}/completion/greenprof.fish
    DESTINATION ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
endif()

install(EXPORT greenprofTargets NAMESPACE greenprof:: DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/greenprof)
configure_package_config_file(cmake/greenprofConfig.cmake.in ${PROJECT_BINARY_DIR}/greenprofConfig.cmake
  INSTALL_DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/greenprof)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/greenprofConfigVersion.cmake COMPATIBILITY SameMajorVersion)
install(FILES ${PROJECT_BINARY_DIR}/greenprofConfig.cmake ${PROJECT_BINARY_DIR}/greenprofConfigVersion.cmake
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/cmake/greenprof)

configure_file(cmake/greenprof.pc.in ${PROJECT_BINARY_DIR}/greenprof.pc @ONLY)
configure_file(cmake/greenprof-hooks.pc.in ${PROJECT_BINARY_DIR}/greenprof-hooks.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/greenprof.pc ${PROJECT_BINARY_DIR}/greenprof-hooks.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
