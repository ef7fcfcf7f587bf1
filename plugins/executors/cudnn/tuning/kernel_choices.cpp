// SPDX-License-Identifier: Apache-2.0
#include "tuning/kernel_choices.hpp"

#include <charconv>
#include <sstream>

#include <regatta/plugin.hpp>

namespace cudnn {
namespace {

// Returns the number, or -1 if the text is none.
int number_in(std::string_view text) {
  int number = -1;
  const auto end = std::from_chars(text.data(), text.data() + text.size(), number);
  return end.ptr == text.data() + text.size() ? number : -1;
}

} // namespace

kernel_choices::kernel_choices(bool timed, const char* chosen, std::string machine)
    : timed_(timed), machine_(std::move(machine)),
      cache_("cudnn", timed && !chosen ? plugins::choice_cache::usual_file("cudnn") : "") {
  std::istringstream in(chosen ? chosen : "");
  for (std::string line; std::getline(in, line);) {
    const std::size_t colon = line.rfind(": ");
    const int number = colon == std::string::npos ? -1 : number_in(std::string_view(line).substr(colon + 2));
    if (number < 0)
      throw rg::error(RG_E_CONFIG,
                      "\"" + line + "\" is not a kernel choice of the executor cudnn: expected \"NAME: NUMBER\"");
    given_[line.substr(0, colon)] = number;
  }
}

kernel_choices::~kernel_choices() {
  try {
    cache_.save(); // if this fails, the next run times again
  } catch (const std::exception&) {
  }
}

int kernel_choices::known(const std::string& name, const std::string& shape) const {
  if (const auto at = given_.find(name); at != given_.end()) return at->second;
  const std::string* cached = timed_ ? cache_.find(machine_ + shape) : nullptr;
  return cached ? number_in(*cached) : -1;
}

void kernel_choices::choose(const std::string& name, const std::string& shape, int number) {
  note(name, number);
  if (timed_ && !given(name)) cache_.add(machine_ + shape, std::to_string(number), name);
}

void kernel_choices::note(const std::string& name, int number) {
  report_ += name + ": " + std::to_string(number) + '\n';
}

} // namespace cudnn
