# SPDX-License-Identifier: Apache-2.0
#
# cuDNN has no CMake package. Defines cuDNN::cuDNN. Searches cuDNN_ROOT and the folders of the CUDA toolkit.
include(FindPackageHandleStandardArgs)
find_path(cuDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_library(cuDNN_LIBRARY cudnn HINTS ${CUDAToolkit_LIBRARY_DIR} PATH_SUFFIXES lib64 lib)
if(cuDNN_INCLUDE_DIR AND EXISTS ${cuDNN_INCLUDE_DIR}/cudnn_version.h)
  file(STRINGS ${cuDNN_INCLUDE_DIR}/cudnn_version.h lines REGEX "define CUDNN_(MAJOR|MINOR|PATCHLEVEL) +[0-9]+")
  string(REGEX REPLACE "[^0-9]*MAJOR +([0-9]+)[^0-9]*MINOR +([0-9]+)[^0-9]*PATCHLEVEL +([0-9]+).*" "\\1.\\2.\\3" cuDNN_VERSION "${lines}")
endif()
find_package_handle_standard_args(cuDNN REQUIRED_VARS cuDNN_LIBRARY cuDNN_INCLUDE_DIR VERSION_VAR cuDNN_VERSION)
if(cuDNN_FOUND AND NOT TARGET cuDNN::cuDNN)
  add_library(cuDNN::cuDNN UNKNOWN IMPORTED)
  set_target_properties(cuDNN::cuDNN PROPERTIES IMPORTED_LOCATION ${cuDNN_LIBRARY}
                                                INTERFACE_INCLUDE_DIRECTORIES "${cuDNN_INCLUDE_DIR};${CUDAToolkit_INCLUDE_DIRS}")
endif()
mark_as_advanced(cuDNN_INCLUDE_DIR cuDNN_LIBRARY)
