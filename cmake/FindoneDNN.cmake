# SPDX-License-Identifier: Apache-2.0
#
# Defines oneDNN::oneDNN. Debian's dnnl-config.cmake requires the development files of OpenCL, which a CPU build does not
# need.
include(FindPackageHandleStandardArgs)
find_path(oneDNN_INCLUDE_DIR oneapi/dnnl/dnnl.hpp)
find_library(oneDNN_LIBRARY dnnl)
if(oneDNN_INCLUDE_DIR AND EXISTS ${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h)
  file(STRINGS ${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h lines REGEX "DNNL_VERSION_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "[^0-9]*MAJOR +([0-9]+)[^0-9]*MINOR +([0-9]+)[^0-9]*PATCH +([0-9]+).*" "\\1.\\2.\\3" oneDNN_VERSION "${lines}")
endif()
find_package_handle_standard_args(oneDNN REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR VERSION_VAR oneDNN_VERSION)
if(oneDNN_FOUND AND NOT TARGET oneDNN::oneDNN)
  add_library(oneDNN::oneDNN UNKNOWN IMPORTED)
  set_target_properties(oneDNN::oneDNN PROPERTIES IMPORTED_LOCATION ${oneDNN_LIBRARY} INTERFACE_INCLUDE_DIRECTORIES
                                                                                      ${oneDNN_INCLUDE_DIR})
endif()
mark_as_advanced(oneDNN_INCLUDE_DIR oneDNN_LIBRARY)
