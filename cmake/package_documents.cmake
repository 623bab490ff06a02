# SPDX-License-Identifier: MIT
# Run by CPack between installing and packing: the documents that Debian's policy wants of each package, and compressed
# manual pages.
set(debian ${CMAKE_CURRENT_LIST_DIR}/debian)

function(compress file)
  execute_process(COMMAND gzip -9n ${file} COMMAND_ERROR_IS_FATAL ANY)
endfunction()

foreach(component ${CPACK_COMPONENTS_ALL})
  string(TOUPPER ${component} upper)
  set(package ${CPACK_DEBIAN_${upper}_PACKAGE_NAME})
  set(share ${CPACK_TEMPORARY_INSTALL_DIRECTORY}/${component}${CPACK_PACKAGING_INSTALL_PREFIX}/share)
  file(GLOB pages ${share}/man/man*/*.[1-9])
  foreach(page ${pages})
    if(NOT IS_SYMLINK ${page})
      compress(${page})
    endif()
  endforeach()
  set(version ${CPACK_PACKAGE_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})
  set(contact ${CPACK_PACKAGE_CONTACT})
  configure_file(${debian}/changelog.in ${share}/doc/${package}/changelog.Debian @ONLY)
  compress(${share}/doc/${package}/changelog.Debian)
  configure_file(${debian}/copyright ${share}/doc/${package}/copyright COPYONLY)
  if(EXISTS ${debian}/${package}.lintian-overrides)
    configure_file(${debian}/${package}.lintian-overrides ${share}/lintian/overrides/${package} COPYONLY)
  endif()
endforeach()
