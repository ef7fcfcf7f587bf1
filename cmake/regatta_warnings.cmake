# SPDX-License-Identifier: Apache-2.0
# What every target of this tree is compiled with.
add_compile_options(-Wall -Wextra -Wshadow -Wno-missing-field-initializers)
if(REGATTA_SANITIZE)
  add_compile_options(-fsanitize=${REGATTA_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${REGATTA_SANITIZE})
endif()
