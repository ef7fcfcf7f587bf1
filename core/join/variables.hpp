// SPDX-License-Identifier: Apache-2.0
//
// Reads the environment variables of launchers, and words errors about them.
#pragma once

#include "base/failure.hpp"
#include "join/environment.hpp"

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>

namespace regatta {

// Position of a process in a launch, with the names of the variables that say so.
struct launched_pair {
  const char *rank_name, *size_name;
  std::uint32_t rank = 0, size = 0;
};

// Returns a port from 1 to 65535, or nullopt if the text is none.
std::optional<std::uint16_t> port_of(const std::string& text);

// A view of an environment, which must outlive it. An empty variable is like one that is not set. [any]
class variables {
public:
  explicit variables(const environment& get) : get_(get) {}

  bool has(const char* name) const { return !text(name).empty(); }
  std::string text(const char* name) const; // empty: not set
  // Throws failure (usage) if the variable is set, but no number below 2^32.
  std::optional<std::uint32_t> number(const char* name) const;
  // Returns rank and size if both are set, nullopt if neither is. Throws failure (usage) if one of them is missing or
  // rank is not below size; `launcher` is the one that sets them, for the message.
  std::optional<launched_pair> pair(const std::string& launcher, const char* rank_name, const char* size_name) const;

  // Return "RANK=1, WORLD_SIZE=2" of those variables that are set, and "To run on this host alone, unset RANK and
  // WORLD_SIZE" of them.
  std::string said(std::initializer_list<const char*> names) const;
  std::string or_unset(std::initializer_list<const char*> names) const;
  // Returns, but does not throw, the failure (usage) for a launcher's variable that is set without another one.
  failure half_set(const std::string& launcher, const char* set, const char* missing) const;

private:
  const environment& get_;
};

} // namespace regatta
