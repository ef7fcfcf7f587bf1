# SPDX-License-Identifier: Apache-2.0
#
#   regatta_add_plugin(NAME SOURCE...)
#
# Adds the module NAME.so, which exports only `regatta_plugin`. Hidden visibility hides the plugin's own symbols. The
# version script also hides the static variables of templates: they would otherwise be unique in the process, and
# dlclose() could not unload the library.
set(REGATTA_PLUGIN_MAP ${CMAKE_CURRENT_LIST_DIR}/plugin.map)

function(regatta_add_plugin name)
  add_library(${name} MODULE ${ARGN})
  target_link_libraries(${name} PRIVATE regatta::sdk)
  get_property(languages GLOBAL PROPERTY ENABLED_LANGUAGES)
  if("CXX" IN_LIST languages) # a plugin may be C alone
    target_compile_features(${name} PRIVATE cxx_std_20)
  endif()
  set_target_properties(
    ${name}
    PROPERTIES PREFIX ""
               C_VISIBILITY_PRESET hidden
               CXX_VISIBILITY_PRESET hidden
               VISIBILITY_INLINES_HIDDEN ON
               LINK_DEPENDS ${REGATTA_PLUGIN_MAP})
  target_link_options(${name} PRIVATE LINKER:--version-script=${REGATTA_PLUGIN_MAP} LINKER:--no-undefined)
  if(DEFINED REGATTA_PLUGIN_OUTPUT_DIRECTORY)
    set_target_properties(${name} PROPERTIES LIBRARY_OUTPUT_DIRECTORY ${REGATTA_PLUGIN_OUTPUT_DIRECTORY})
  endif()
endfunction()
