// SPDX-License-Identifier: Apache-2.0
//
// What the sections of a page ask of a result (schema regatta.result/1).
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "page/chart/scale.hpp"
#include "page/table.hpp"

namespace regatta::page {

// A result and the words for its cases. The document must outlive it. [any]
class result_view {
public:
  explicit result_view(const nlohmann::json& result);

  const nlohmann::json& document() const { return result_; }
  const nlohmann::json& entry(std::size_t index) const { return result_.at("results")[index]; }
  std::size_t size() const { return result_.at("results").size(); }
  const std::vector<std::size_t>& measured() const { return measured_; } // cases that have figures
  const std::vector<std::string>& keys() const { return keys_; }         // swept keys whose values differ

  // Returns the value of a swept key in a case.
  nlohmann::json value_of(std::size_t index, const std::string& key) const;
  // Returns the values of these keys, such as "allreduce, workers 2"; "the case" without keys.
  std::string name_of(std::size_t index, const std::vector<std::string>& keys) const;
  std::string name_of(std::size_t index) const { return name_of(index, keys_); }
  // Returns the text of the case in a legend of at most as many entries as there are colours: its name if there are few
  // cases, else the value of the first of the keys that has few values.
  std::string group_of(std::size_t index, const std::vector<std::string>& keys, std::size_t lines) const;

  // Returns a table with a row for each case, whose first columns are the swept keys; cases without figures have a
  // note in place of the cells that the caller appends to all other rows.
  page_table table_of_cases() const;

private:
  const nlohmann::json& result_;
  std::vector<std::string> keys_;
  std::vector<std::size_t> measured_;
};

// Returns the number at a path of an entry, "efficiency.low"; std::nullopt if there is none.
std::optional<double> number_at(const nlohmann::json& entry, const std::string& path);
// Returns the value at a path of an entry, without field()'s special cases; null if there is none.
nlohmann::json value_at(const nlohmann::json& entry, const std::string& path);
// Returns low and high of a figure; std::nullopt if it has fewer than two repeats.
std::optional<std::pair<double, double>> interval_at(const nlohmann::json& entry, const std::string& figure);

// Returns a swept value as a number, with its kind: 4, "64KiB", "10Gbit/s".
std::optional<std::pair<double, measure>> swept_number(const std::string& key, const nlohmann::json& value);

// Returns the attributes of the marker of a value: data-case, data-path, data-value.
std::string data_attributes(std::size_t of_case, const std::string& path, const nlohmann::json& value);

} // namespace regatta::page
