// SPDX-License-Identifier: Apache-2.0
#include "choices.hpp"

#include <charconv>
#include <sstream>

#include <regatta/plugin.hpp>

namespace cudnn {

choices::choices(bool time, const char* given) : timed(time) {
  std::istringstream in(given ? given : "");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.rfind(": ");
    int number = -1;
    if (colon != std::string::npos) std::from_chars(line.data() + colon + 2, line.data() + line.size(), number);
    if (number < 0) throw rg::error(RG_E_CONFIG, "\"" + line + "\" is no pick of the executor cudnn");
    given_[line.substr(0, colon)] = number;
  }
}

int choices::given(const std::string& name) const {
  const auto at = given_.find(name);
  return at == given_.end() ? -1 : at->second;
}

} // namespace cudnn
