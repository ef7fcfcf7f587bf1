# SPDX-License-Identifier: Apache-2.0
# Compiler options of every target in this tree.
add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Wall;-Wextra;-Wshadow;-Wno-missing-field-initializers>")
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC 12 warns falsely of overlaps and overruns in the standard library (GCC bugs 105651 and 105329).
  add_compile_options("$<$<COMPILE_LANGUAGE:C,CXX>:-Wno-restrict;-Wno-array-bounds;-Wno-stringop-overflow>")
  # GCC 13 and 14 take a reference that a function returns for one to its temporary argument.
  if(CMAKE_CXX_COMPILER_VERSION VERSION_GREATER_EQUAL 13)
    add_compile_options("$<$<COMPILE_LANGUAGE:CXX>:-Wno-dangling-reference>")
  endif()
endif()
if(REGATTA_SANITIZE)
  # A sanitizer report needs line numbers, not variables; -O2 and -g would double the build time.
  add_compile_options(-fsanitize=${REGATTA_SANITIZE} -fno-omit-frame-pointer -O1 -g1)
  add_link_options(-fsanitize=${REGATTA_SANITIZE})
  if(REGATTA_SANITIZE MATCHES "undefined")
    # Undefined behaviour ends the process, so that a test fails. It does so by a trap, not by a message: each check would
    # have a record of where it stands, and AddressSanitizer would guard each record. With GCC 12 and records, the
    # program's data were 195 MB and each start took 0.3 s.
    add_compile_options(-fsanitize-undefined-trap-on-error)
  endif()
  if(REGATTA_SANITIZE MATCHES "undefined" AND CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # clang 14 cannot emit the check of function types beside a coroutine ("difference across sections").
    add_compile_options(-fno-sanitize=function)
  endif()
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # At -O1, GCC 12 inlines only one of Asio's operator new and operator delete, and then warns that they do not match;
    # and it takes an empty std::optional that is copied for one that is read.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-mismatched-new-delete> $<$<COMPILE_LANGUAGE:CXX>:-Wno-maybe-uninitialized>)
  endif()
  if(REGATTA_SANITIZE MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # ThreadSanitizer does not support the memory fences in Asio; mutexes protect what Asio's threads share.
    add_compile_options($<$<COMPILE_LANGUAGE:CXX>:-Wno-tsan>)
  endif()
endif()
