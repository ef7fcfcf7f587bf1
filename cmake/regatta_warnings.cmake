# SPDX-License-Identifier: Apache-2.0
# What every target of this tree is compiled with.
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wshadow;-Wno-missing-field-initializers>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 sees overlaps and overruns in the standard library that are not there (its bugs 105651 and 105329).
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>")
endif()
if(REGATTA_SANITIZE)
  # A report needs lines, not variables; what -O2 and -g add would double the time of the build.
  add_compile_options(-fsanitize=${REGATTA_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${REGATTA_SANITIZE})
  if(REGATTA_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # clang 14 cannot emit the check of function types beside a coroutine ("difference across sections").
    add_compile_options(-fno-sanitize=function)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete>) # at -O1 GCC 12 sees but half of Asio's pair
  endif()
  if(REGATTA_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # Asio has fences, which ThreadSanitizer does not see; what its threads share is under its mutexes as well.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
endif()
