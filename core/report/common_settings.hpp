// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

namespace regatta {

// The settings of a result that hold for all of its cases. The result must outlive it.
class common_settings {
public:
  using named_text = std::pair<std::string, std::string>;

  explicit common_settings(const nlohmann::json& result);

  // Whether the cases differ in this key, which then is a column.
  bool varies(const std::string& key) const;
  // The setting as a text, lists with blanks so that they wrap; empty where it varies or is not known.
  std::string text(const std::string& key) const;

  // Names and texts of the settings of a section ("optimizer") that are not their defaults and do not vary.
  std::vector<named_text> given(const std::string& section) const;
  // Of a section that chooses a plugin, the plugin's parameters: "k" of the one plugin, or "geo_ps.k" where the plugin
  // varies. A strategy's `k` and `sparsity` are there with their defaults, too: they decide what is sent and learned.
  std::vector<named_text> parameters(const std::string& section) const;
  // Keys that the sweep has and that do not vary after all, such as one of a single value, but for `shown` and those of
  // given(): "transport.shaped.bandwidth".
  std::vector<named_text> swept_alike(const std::vector<std::string>& shown) const;

  // Ids of the plugins of a kind that take part: "executor" -> "onednn".
  std::vector<std::string> plugins(const std::string& kind) const;

private:
  const nlohmann::json& result_;
  const nlohmann::json& context_;
  std::vector<std::string> varying_;
};

} // namespace regatta
