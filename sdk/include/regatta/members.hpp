// SPDX-License-Identifier: Apache-2.0
//
// Optional members of a plugin's class. A class that has the name but not the form would lose the function silently;
// RG_OPTIONAL_MEMBER makes this an error of the compiler that says the right form.
#pragma once

#include <type_traits>

// NOLINTBEGIN(bugprone-macro-parentheses): the arguments are names and types

// Defines detail::names::NAME<T>: whether class T has a member function of this name, of any form and access. The
// lookup of the name in a class derived from T and from a class that has it, too, is ambiguous then. A private variable
// of this name counts, too, a public one does not. False for a final class, from which none can be derived. At
// namespace scope of rg.
#define RG_MEMBER_NAME(NAME)                                                                                           \
  namespace detail::names {                                                                                            \
  struct has_##NAME {                                                                                                  \
    int NAME;                                                                                                          \
  };                                                                                                                   \
  template <class T> struct joined_##NAME : T, has_##NAME {};                                                          \
  template <class T> constexpr bool test_##NAME() {                                                                    \
    if constexpr (std::is_final_v<T>)                                                                                  \
      return false;                                                                                                    \
    else if constexpr (requires { requires std::is_member_object_pointer_v<decltype(&T::NAME)>; })                     \
      return false;                                                                                                    \
    else                                                                                                               \
      return !requires {                                                                                               \
        &joined_##NAME<T>::NAME;                                                                                       \
      };                                                                                                               \
  }                                                                                                                    \
  template <class T> inline constexpr bool NAME = test_##NAME<T>();                                                    \
  }

// A class T that has a member NAME must have it in the right form: `usable` says whether it does, `form` what it is.
#define RG_OPTIONAL_MEMBER(T, NAME, usable, form)                                                                      \
  static_assert((usable) || !::rg::detail::names::NAME<T>, #NAME " must be public and of this form: " form)

// A class T must not have a member NAME, which is a misspelt `right`.
#define RG_MISSPELT_MEMBER(T, NAME, right)                                                                             \
  static_assert(!::rg::detail::names::NAME<T>, "there is no function " #NAME ": the engine calls " right)

// NOLINTEND(bugprone-macro-parentheses)

namespace rg {
RG_MEMBER_NAME(add) // of transports and of compressors
} // namespace rg
