// SPDX-License-Identifier: Apache-2.0
//
// Members of JSON that somebody else wrote. nlohmann's own conversions cut 1.5 to 1 and make a large number of -1.
#pragma once

#include "base/failure.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {

namespace detail {

template <class T> struct json_type {
  static bool holds(const nlohmann::json& j) {
    if constexpr (std::is_same_v<T, bool>)
      return j.is_boolean();
    else if constexpr (std::is_floating_point_v<T>)
      return j.is_number();
    else if constexpr (std::is_integral_v<T>)
      return j.is_number_unsigned()  ? std::in_range<T>(j.get<std::uint64_t>())
             : j.is_number_integer() ? std::in_range<T>(j.get<std::int64_t>())
                                     : false;
    else
      return std::is_same_v<T, nlohmann::json> || j.is_string();
  }
};

template <class T> struct json_type<std::vector<T>> {
  static bool holds(const nlohmann::json& j) {
    if (!j.is_array()) return false;
    for (const nlohmann::json& element : j)
      if (!json_type<T>::holds(element)) return false;
    return true;
  }
};

template <class T> struct json_type<std::map<std::string, T>> {
  static bool holds(const nlohmann::json& j) {
    if (!j.is_object()) return false;
    for (const nlohmann::json& value : j)
      if (!json_type<T>::holds(value)) return false;
    return true;
  }
};

template <class A, class B> struct json_type<std::pair<A, B>> {
  static bool holds(const nlohmann::json& j) {
    return j.is_array() && j.size() == 2 && json_type<A>::holds(j[0]) && json_type<B>::holds(j[1]);
  }
};

} // namespace detail

// Returns member `key` of an object: a bool, number, string, json, or a vector, map by string or pair of these. Throws
// failure (run), which names the key, where the member is missing or is of another type, or a number does not fit. [any]
template <class T> T member(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) throw failure(exit_code::run, fmt::format("\"{}\" is missing", key));
  if (!detail::json_type<T>::holds(*found))
    throw failure(exit_code::run, fmt::format("\"{}\" has a value of the wrong type, {}", key, found->type_name()));
  return found->template get<T>();
}

template <class T> void take(const nlohmann::json& object, const char* key, T& to) {
  to = member<T>(object, key);
}

// Element `index` of an array, as member().
template <class T> T element(const nlohmann::json& array, std::size_t index) {
  if (!array.is_array() || index >= array.size() || !detail::json_type<T>::holds(array[index]))
    throw failure(exit_code::run, fmt::format("element {} is missing or has a value of the wrong type", index));
  return array[index].get<T>();
}

} // namespace regatta
