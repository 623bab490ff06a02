# SPDX-License-Identifier: MIT
# Debian packages by CPack, one a component: tools/package configures for them and builds them.
set(CPACK_GENERATOR DEB)
set(CPACK_PACKAGE_NAME greenprof)
set(CPACK_PACKAGE_VERSION ${PROJECT_VERSION})
set(CPACK_COMPONENTS_ALL runtime dev)
if(TARGET greenprof-python)
  list(APPEND CPACK_COMPONENTS_ALL python)
endif()
set(CPACK_DEB_COMPONENT_INSTALL ON)
set(CPACK_DEBIAN_FILE_NAME DEB-DEFAULT)
set(CPACK_DEBIAN_PACKAGE_RELEASE 1)
set(CPACK_DEBIAN_PACKAGE_SOURCE greenprof)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS ON)
set(CPACK_DEBIAN_PACKAGE_SHLIBDEPS_PRIVATE_DIRS ${PROJECT_BINARY_DIR}/src)
set(CPACK_DEBIAN_PACKAGE_CONTROL_STRICT_PERMISSION ON)
set(CPACK_INSTALL_DEFAULT_DIRECTORY_PERMISSIONS
  OWNER_READ OWNER_WRITE OWNER_EXECUTE GROUP_READ GROUP_EXECUTE WORLD_READ WORLD_EXECUTE)
set(CPACK_PRE_BUILD_SCRIPTS ${PROJECT_SOURCE_DIR}/cmake/package_documents.cmake)

# Addresses differ from builder to builder; the variables are those of Debian's own tools.
set(CPACK_PACKAGE_CONTACT "The greenprof authors <greenprof@localhost>")
if(DEFINED ENV{DEBFULLNAME} AND DEFINED ENV{DEBEMAIL})
  set(CPACK_PACKAGE_CONTACT "$ENV{DEBFULLNAME} <$ENV{DEBEMAIL}>")
endif()

set(CPACK_PACKAGE_DESCRIPTION_SUMMARY "sampling profiler that knows coroutines")
set(about "greenprof samples a program from inside and charges each sample to the
coroutine that was running, with its request and its trace id.")

# What packages need of each other has the same version: their interface is greenprof's own.
set(same "libgreenprof0 (= ${PROJECT_VERSION}-${CPACK_DEBIAN_PACKAGE_RELEASE})")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_NAME libgreenprof0)
set(CPACK_DEBIAN_RUNTIME_PACKAGE_SECTION libs)
set(CPACK_DEBIAN_RUNTIME_DEBUGINFO_PACKAGE ON)
# CPack's own would call ldconfig by scripts.
set(control ${PROJECT_BINARY_DIR}/debian)
file(CONFIGURE OUTPUT ${control}/triggers CONTENT "activate-noawait ldconfig\n")
get_property(libraries GLOBAL PROPERTY GREENPROF_BACKEND_LIBRARIES)
list(TRANSFORM libraries PREPEND lib)
set(shlibs "")
foreach(library libgreenprof libgreenprof-core libgreenprof-otel libgreenprof-ship ${libraries})
  string(APPEND shlibs "${library} 0 libgreenprof0 (>= ${PROJECT_VERSION})\n")
endforeach()
file(CONFIGURE OUTPUT ${control}/shlibs CONTENT "${shlibs}")
set(CPACK_DEBIAN_RUNTIME_PACKAGE_CONTROL_EXTRA ${control}/triggers ${control}/shlibs)
if(DEBUGINFOD_FOUND) # the command loads it, and libcurl, with which libgreenprof-ship is linked
  set(CPACK_DEBIAN_RUNTIME_PACKAGE_DEPENDS "libdebuginfod1 | libdebuginfod1t64")
endif()
set(CPACK_COMPONENT_RUNTIME_DESCRIPTION "${about}

This package has the libraries and the command greenprof, which profiles
unchanged programs and reads the captures.")

set(CPACK_DEBIAN_DEV_PACKAGE_NAME libgreenprof-dev)
set(CPACK_DEBIAN_DEV_PACKAGE_SECTION libdevel)
set(CPACK_DEBIAN_DEV_PACKAGE_DEPENDS "${same}")
# For programs that are linked statically.
set(CPACK_DEBIAN_DEV_PACKAGE_RECOMMENDS "libdeflate-dev, libiberty-dev, liblzma-dev, libssl-dev, libzstd-dev, zlib1g-dev")
set(CPACK_DEBIAN_DEV_PACKAGE_SHLIBDEPS OFF)
set(CPACK_COMPONENT_DEV_DESCRIPTION "${about}

This package has headers, the static library, the hooks that are linked into
a program, manual pages of the functions, and files for pkg-config and CMake.")

if(TARGET greenprof-python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_NAME python3-greenprof)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_SECTION python)
  set(CPACK_DEBIAN_PYTHON_PACKAGE_DEPENDS "${same}, python3 (>= 3.11~)")
  set(CPACK_DEBIAN_PYTHON_DEBUGINFO_PACKAGE ON)
  set(CPACK_COMPONENT_PYTHON_DESCRIPTION "${about}

This package has the module greenprof: profiles in place of cProfile's, by
green thread, asyncio task or thread, and a middleware for WSGI applications.")
endif()
include(CPack)
