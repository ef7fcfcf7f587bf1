# SPDX-License-Identifier: Apache-2.0
# find_package(regatta): the target regatta::sdk, the function regatta_add_plugin(), and the program as REGATTA_PROGRAM.
include(${CMAKE_CURRENT_LIST_DIR}/regatta-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/regatta_add_plugin.cmake)
get_filename_component(REGATTA_PROGRAM ${CMAKE_CURRENT_LIST_DIR}/../../../bin/regatta ABSOLUTE)
