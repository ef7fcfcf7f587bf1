// SPDX-License-Identifier: Apache-2.0
//
// Checked reading of JSON from other programs. nlohmann's own conversions truncate 1.5 to 1 and turn -1 into a large
// unsigned number.
#pragma once

#include "base/failure.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
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
    return j.is_array() && std::all_of(j.begin(), j.end(), json_type<T>::holds);
  }
};

template <class T> struct json_type<std::map<std::string, T>> {
  static bool holds(const nlohmann::json& j) {
    return j.is_object() && std::all_of(j.begin(), j.end(), json_type<T>::holds); // of the values
  }
};

template <class A, class B> struct json_type<std::pair<A, B>> {
  static bool holds(const nlohmann::json& j) {
    return j.is_array() && j.size() == 2 && json_type<A>::holds(j[0]) && json_type<B>::holds(j[1]);
  }
};

template <class T> struct json_type<std::optional<T>> {
  static bool holds(const nlohmann::json& j) { return j.is_null() || json_type<T>::holds(j); }
};

template <class T> struct is_optional : std::false_type {};
template <class T> struct is_optional<std::optional<T>> : std::true_type {};

struct any_visitor {
  template <class T> void operator()(const char* key, T& member) const;
};

} // namespace detail

// A type whose members are listed once, for both directions of its JSON: a function each_member(x, visit), found by
// argument-dependent lookup, calls visit(key, member) for each of them, on a const and on a mutable x.
template <class T>
concept has_members = requires(T& x) {
  each_member(x, detail::any_visitor{});
};

// [any] Returns member `key` of an object. T is bool, a number, std::string, json, a std::vector, std::map with string
// keys or std::pair of these types, which may nest, or a std::optional of one of them (null: std::nullopt); a
// std::optional cannot be an element of another type. A floating-point T accepts any number, an integral T only an
// integer that fits. Throws failure (run), which names the key, if `object` is no object, or the member is missing or
// of another type.
template <class T> T member(const nlohmann::json& object, const char* key) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (found == object.end()) throw failure(exit_code::run, fmt::format("\"{}\" is missing", key));
  if (!detail::json_type<T>::holds(*found))
    throw failure(exit_code::run, fmt::format("\"{}\" has a value of the wrong type, {}", key, found->type_name()));
  if constexpr (detail::is_optional<T>::value)
    return found->is_null() ? T{} : T(found->template get<typename T::value_type>());
  else
    return found->template get<T>();
}

// [any] Assigns member<T>() to `to`; leaves `to` unchanged if that throws.
template <class T> void take(const nlohmann::json& object, const char* key, T& to) {
  to = member<T>(object, key);
}

// [any] Returns an object of the members that each_member() lists.
template <has_members T> nlohmann::json members_to_json(const T& from) {
  nlohmann::json object = nlohmann::json::object();
  each_member(from, [&object]<class M>(const char* key, const M& value) {
    if constexpr (has_members<M>)
      object[key] = members_to_json(value);
    else if constexpr (detail::is_optional<M>::value)
      object[key] = value ? nlohmann::json(*value) : nlohmann::json(nullptr);
    else
      object[key] = value;
  });
  return object;
}

// [any] Assigns the members that members_to_json() wrote. Throws failure (run), which names the key, as member() does;
// the members before it are then already assigned.
template <has_members T> void take_members(const nlohmann::json& object, T& to) {
  each_member(to, [&object]<class M>(const char* key, M& value) {
    if constexpr (has_members<M>)
      take_members(member<nlohmann::json>(object, key), value);
    else
      take(object, key, value);
  });
}

// [any] Returns element `index`, counted from 0, of an array, with the types of member() except std::optional. Throws
// failure (run), which names the index, if `array` is no array, is too short, or the element is of another type.
template <class T> T element(const nlohmann::json& array, std::size_t index) {
  if (!array.is_array() || index >= array.size() || !detail::json_type<T>::holds(array[index]))
    throw failure(exit_code::run, fmt::format("element {} is missing or has a value of the wrong type", index));
  return array[index].get<T>();
}

} // namespace regatta
