# SPDX-License-Identifier: Apache-2.0
# find_package(regatta): the target regatta::sdk and the function regatta_add_plugin().
include(${CMAKE_CURRENT_LIST_DIR}/regatta-targets.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/regatta_add_plugin.cmake)
