# SPDX-License-Identifier: Apache-2.0
#
# NCCL has no CMake package. Defines NCCL::NCCL. Searches NCCL_ROOT and the folders of the CUDA toolkit.
include(FindPackageHandleStandardArgs)
find_path(NCCL_INCLUDE_DIR nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(NCCL_LIBRARY nccl HINTS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib64 lib)
if(NCCL_INCLUDE_DIR AND EXISTS ${NCCL_INCLUDE_DIR}/nccl.h)
  file(STRINGS ${NCCL_INCLUDE_DIR}/nccl.h lines REGEX "define NCCL_(MAJOR|MINOR|PATCH) +[0-9]+")
  string(REGEX REPLACE "[^0-9]*MAJOR +([0-9]+)[^0-9]*MINOR +([0-9]+)[^0-9]*PATCH +([0-9]+).*" "\\1.\\2.\\3" NCCL_VERSION "${lines}")
endif()
find_package_handle_standard_args(NCCL REQUIRED_VARS NCCL_LIBRARY NCCL_INCLUDE_DIR VERSION_VAR NCCL_VERSION)
if(NCCL_FOUND AND NOT TARGET NCCL::NCCL)
  add_library(NCCL::NCCL UNKNOWN IMPORTED)
  set_target_properties(NCCL::NCCL PROPERTIES IMPORTED_LOCATION ${NCCL_LIBRARY}
                                              INTERFACE_INCLUDE_DIRECTORIES "${NCCL_INCLUDE_DIR};${CUDAToolkit_INCLUDE_DIRS}")
endif()
mark_as_advanced(NCCL_INCLUDE_DIR NCCL_LIBRARY)
