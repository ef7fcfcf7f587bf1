# SPDX-License-Identifier: Apache-2.0
#
# Libraries that some kinds of data need. A build without one of them reports so when such data is requested.
function(regatta_data_library definition package library header)
  find_library(${definition}_LIBRARY ${library})
  find_path(${definition}_INCLUDE_DIR ${header})
  if(${definition}_LIBRARY AND ${definition}_INCLUDE_DIR)
    target_link_libraries(regatta_data PRIVATE ${${definition}_LIBRARY})
    target_include_directories(regatta_data SYSTEM PRIVATE ${${definition}_INCLUDE_DIR})
    target_compile_definitions(regatta_data PUBLIC ${definition}=1)
  else()
    message(STATUS "${package} is not installed: left out is ${ARGN}")
    target_compile_definitions(regatta_data PUBLIC ${definition}=0)
  endif()
  mark_as_advanced(${definition}_LIBRARY ${definition}_INCLUDE_DIR)
endfunction()

regatta_data_library(REGATTA_JPEG libjpeg62-turbo-dev jpeg jpeglib.h "data.format = \"imagenet\"")
regatta_data_library(REGATTA_SENTENCEPIECE libsentencepiece-dev sentencepiece sentencepiece_processor.h
                     "data.tokens = \"subwords\"")
regatta_data_library(REGATTA_ZMQ "cppzmq-dev or libzmq3-dev" zmq zmq.hpp "data.source = \"stream\"")
# Training a vocabulary needs a separate library of the same package.
if(REGATTA_SENTENCEPIECE_LIBRARY)
  target_link_libraries(regatta_data PRIVATE sentencepiece_train)
endif()
