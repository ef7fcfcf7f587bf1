// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// The settings of a campaign that are the same in all of its cases, read from result.json; for the heading of a table.
// `result` must have "context" and "results" and outlive this object. A key has its section in front: "train.batch".
class common_settings {
public:
  using named_text = std::pair<std::string, std::string>; // name and value of a setting

  explicit common_settings(const nlohmann::json& result);

  // Returns whether the cases differ in this key; the table then has a column for it.
  bool varies(const std::string& key) const;
  // Returns the value of a key as text, with blanks in lists so that they wrap; empty if it varies or is unknown.
  std::string text(const std::string& key) const;

  // Returns the settings of a section ("train") that differ from their defaults and do not vary, named without the
  // section: "accumulate". For the sections "model", "strategy" and "transport" call parameters().
  std::vector<named_text> given(const std::string& section) const;
  // Returns the parameters of a section's plugin ("strategy") that differ from their defaults, do not vary and are not
  // swept, named "k", or "geo_ps.k" if the cases choose several plugins. Includes a strategy's `k` and `sparsity` also
  // at their defaults, because they decide what is sent and learned.
  std::vector<named_text> parameters(const std::string& section) const;
  // Returns swept keys that do not vary, such as an axis of a single value, named by key:
  // "transport.shaped.bandwidth". Leaves out the keys `shown` and those of given().
  std::vector<named_text> swept_alike(const std::vector<std::string>& shown) const;

  // Returns the ids of all plugins of a kind that any case uses: {"onednn"} for "executor".
  std::vector<std::string> plugins(const std::string& kind) const;

private:
  const nlohmann::json& result_;
  const nlohmann::json& context_;
  std::vector<std::string> varying_;
};

} // namespace regatta
