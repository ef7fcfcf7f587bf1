// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// The settings of a result that are the same in all of its cases. The result must outlive this object.
class common_settings {
public:
  using named_text = std::pair<std::string, std::string>;

  explicit common_settings(const nlohmann::json& result);

  // Returns whether the cases differ in this key, which then is a column.
  bool varies(const std::string& key) const;
  // Returns the setting as text, with blanks in lists so that they wrap; empty if it varies or is unknown.
  std::string text(const std::string& key) const;

  // Returns names and texts of a section's settings ("optimizer") that differ from their defaults and do not vary.
  std::vector<named_text> given(const std::string& section) const;
  // Returns the parameters of a section's plugin: "k" for a single plugin, or "geo_ps.k" if the plugin varies. Includes
  // a strategy's `k` and `sparsity` with their default values too, because they decide what is sent and learned.
  std::vector<named_text> parameters(const std::string& section) const;
  // Returns swept keys that do not vary, such as an axis of a single value, except `shown` and the keys of given():
  // "transport.shaped.bandwidth".
  std::vector<named_text> swept_alike(const std::vector<std::string>& shown) const;

  // Returns the ids of the plugins of a kind that take part: "executor" -> "onednn".
  std::vector<std::string> plugins(const std::string& kind) const;

private:
  const nlohmann::json& result_;
  const nlohmann::json& context_;
  std::vector<std::string> varying_;
};

} // namespace regatta
