// SPDX-License-Identifier: Apache-2.0
//
// Access to a result (schema regatta.result/1) for the sections of a page.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "page/chart/figure.hpp"
#include "page/chart/scale.hpp"
#include "page/table.hpp"

namespace regatta::page {

inline constexpr std::size_t most_rows = 24; // of a chart of cases; more are in the tables

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
  // Returns a text with the name of a case behind it: "Steps: allreduce"; only the text if the result has one case.
  std::string titled(const std::string& text, std::size_t index) const {
    return keys_.empty() ? text : text + ": " + name_of(index);
  }
  // Returns for each case its entry in the legend of a chart whose lines differ in these keys. The text is name_of()
  // with all the keys if that gives at most `colours` (look.hpp) different names; else name_of() with the first key
  // that gives 2 to `colours` names; else all entries are empty (text "", series 0). Entries of cases without figures
  // are empty, too.
  std::vector<legend_entry> legend_of(const std::vector<std::string>& keys) const;

  // Returns whether charts of cases have texts and values at each mark. With many cases these would be most of the
  // page, and the tables have the values.
  bool shows_marks() const { return measured_.size() <= most_rows; }

  // Returns a sentence about the cases that charts with a row for each case leave out; empty if they have all.
  std::string rows_left_out() const;
  // Returns the text at a mark of a chart: the name, or with many cases the number that the table of cases shows.
  std::string mark_name(std::size_t index) const {
    return shows_marks() ? name_of(index) : "case " + std::to_string(index + 1);
  }

  // Returns a table with a row for each case, whose first columns are the swept keys; cases without figures have a
  // note in place of the cells that the caller appends to all other rows. With many cases the rows are numbered, and
  // only one table of the page, with `names_cases`, has the keys.
  page_table table_of_cases(bool names_cases = false) const;

private:
  const nlohmann::json& result_;
  std::vector<std::string> keys_;
  std::vector<std::size_t> measured_;
};

// Returns the array "repeats" of an entry, or an empty one. Valid as long as the entry.
const nlohmann::json& repeats_in(const nlohmann::json& entry);
// Returns the number at a path of an entry, "efficiency.low"; std::nullopt if there is none.
std::optional<double> number_at(const nlohmann::json& entry, const std::string& path);
// Returns the value at a path of an entry; null if there is none. Other than field() (report/fields.hpp), it does not
// look among swept keys and the experiment's keys, and returns a figure as its object, not its median.
nlohmann::json value_at(const nlohmann::json& entry, const std::string& path);
// Returns low and high of a figure; std::nullopt if it has fewer than two repeats.
std::optional<std::pair<double, double>> interval_at(const nlohmann::json& entry, const std::string& figure);

// Returns a swept value as a number, with its kind: 4, "64KiB", "10Gbit/s". Times are in seconds, rates in bit/s.
// std::nullopt if it is no number.
std::optional<std::pair<double, measure>> swept_number(const std::string& key, const nlohmann::json& value);

// Returns the attributes of an element that shows a value: data-case, data-path, data-value.
std::string data_attributes(std::size_t of_case, const std::string& path, const nlohmann::json& value);

} // namespace regatta::page
