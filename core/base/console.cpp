// SPDX-License-Identifier: Apache-2.0
#include "base/console.hpp"

#include "base/descriptor.hpp"

#include <unistd.h>

namespace regatta {

void print_error(std::string_view text) noexcept {
  write_all(STDERR_FILENO, text);
}

} // namespace regatta
