// SPDX-License-Identifier: Apache-2.0
//
// The base of the C++ layer over abi.h: errors, versions of structs, parameters, and the entry symbol of a plugin.
//
//   struct echo {
//     struct parameters {
//       std::int64_t depth = 4;
//       std::string mode = "eager";
//     };
//     static constexpr auto fields = rg::fields(
//         rg::field("depth", &parameters::depth, "messages in flight").range(1, 64),
//         rg::field("mode", &parameters::mode, "how it behaves").one_of("eager", "rendezvous"));
//     ...
//   };
//   RG_PLUGIN("echo", "1.0", rg::transport<echo>("echo", "sends everything back"))
//
// A plugin reports errors by throwing rg::error. Every entry point is wrapped in rg::fence, which turns any exception
// into a status and a text for the host. Needs the standard library only.
#pragma once

#include <regatta/abi.h>

#include <array>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <exception>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace rg {

// ------------------------------------------------------------------------------------------------------ errors ---

// The exception of plugins. `status`, an RG_E_*, says what remains usable (abi/base.h); the text, one line, says what
// happened and what to do. An empty text leaves in place the text that the host got before, e.g. from a transport
// inside this one.
class error : public std::runtime_error {
public:
  error(rg_status status, const std::string& what) : std::runtime_error(what), status_(status) {}
  rg_status status() const noexcept { return status_; }

private:
  rg_status status_;
};

// Runs `f`, which returns nothing or an rg_status. Returns its status, or RG_OK. If `f` throws, passes the text to
// `host` (which may be null) and returns the exception's status: that of an rg::error, RG_E_OPERATION for
// std::bad_alloc, RG_E_PLUGIN for any other exception.
template <class F> rg_status fence(const rg_host* host, F&& f) noexcept {
  auto fail = [&](rg_status status, const char* text) {
    return host ? host->fail(host->context, status, text) : status;
  };
  try {
    if constexpr (std::is_void_v<std::invoke_result_t<F>>) {
      std::forward<F>(f)();
      return RG_OK;
    } else {
      return std::forward<F>(f)();
    }
  } catch (const error& e) {
    return *e.what() ? fail(e.status(), e.what()) : e.status();
  } catch (const std::bad_alloc&) {
    return fail(RG_E_OPERATION, "out of memory");
  } catch (const std::exception& e) {
    return fail(RG_E_PLUGIN, e.what());
  } catch (...) {
    return fail(RG_E_PLUGIN, "threw something that is no std::exception");
  }
}

// ---------------------------------------------------------------------------------------------------- versions ---

// [any] Returns a copy of `theirs`, a struct that starts with struct_size. Members that `theirs` does not have are
// zero; members that T does not have are left out.
template <class T> T copy_versioned(const T& theirs) noexcept {
  T ours{};
  std::memcpy(&ours, &theirs, theirs.struct_size < sizeof(T) ? theirs.struct_size : sizeof(T));
  ours.struct_size = sizeof(T);
  return ours;
}

// [any] As copy_versioned(), without a copy if `theirs` is at least as long as T: it then refers to `theirs`, which
// must outlive it.
template <class T> class versioned_view {
public:
  explicit versioned_view(const T* theirs) noexcept : view_(theirs) {
    if (theirs->struct_size < sizeof(T)) view_ = &(copy_ = copy_versioned(*theirs));
  }
  versioned_view(const versioned_view&) = delete;
  versioned_view& operator=(const versioned_view&) = delete;
  const T& operator*() const noexcept { return *view_; }

private:
  const T* view_;
  T copy_;
};

// Returns a zeroed struct with struct_size set, for the other side to fill or read.
template <class T> T make_versioned() noexcept {
  T t{};
  t.struct_size = sizeof(T);
  return t;
}

// Copies `ours` to the caller's struct `theirs`, as far as theirs->struct_size reaches, and keeps that struct_size.
template <class T> void fill_versioned(T* theirs, const T& ours) noexcept {
  const std::uint32_t size = theirs->struct_size;
  std::memcpy(theirs, &ours, size < sizeof(T) ? size : sizeof(T));
  theirs->struct_size = size;
}

// Returns element `i` of an array of structs, whose stride is the struct_size of the first one. The element may be
// shorter than T: copy it with copy_versioned() before use.
template <class T> const T& at_stride(const T* first, std::size_t i) noexcept {
  return *reinterpret_cast<const T*>(reinterpret_cast<const char*>(first) + i * first->struct_size);
}

// Returns the bits of one element of an rg_type; 0 for an unknown type.
inline std::size_t bits_of(std::uint32_t type) noexcept {
  switch (type) {
  case RG_F64:
  case RG_I64: return 64;
  case RG_F32:
  case RG_I32: return 32;
  case RG_F16:
  case RG_BF16: return 16;
  case RG_U8:
  case RG_I8:
  case RG_F8_E4M3:
  case RG_F8_E5M2: return 8;
  case RG_U4: return 4;
  case RG_U1: return 1;
  default: return 0;
  }
}
// Returns the bytes of one element of an rg_type; 0 for a packed or an unknown type.
inline std::size_t size_of(std::uint32_t type) noexcept {
  return bits_of(type) / 8;
}
// Returns the bytes of `count` elements, rounded up to whole bytes. Requires a known type and a result below 2^61.
inline std::uint64_t bytes_of(std::uint32_t type, std::uint64_t count) noexcept {
  return (count * bits_of(type) + 7) / 8;
}
inline std::uint64_t bytes_of(const rg_buffer& b) noexcept {
  return bytes_of(b.type, b.count);
}

// Returns the elements of a tensor in memory, including its padding.
inline std::uint64_t storage_of(const rg_tensor& t) noexcept {
  if (t.storage) return t.storage;
  std::uint64_t n = 1;
  for (std::uint32_t d = 0; d < t.ndim; ++d) n *= static_cast<std::uint64_t>(t.shape[d]);
  return n;
}

// ------------------------------------------------------------------------------------------------------ logging ---

// [any] Writes texts, one line each, to the engine's log; without a host it drops them. `host` must outlive it. For
// failures throw rg::error instead.
class logger {
public:
  explicit logger(const rg_host* host = nullptr) : host_(host) {}
  void warning(const std::string& text) const { say(RG_LOG_WARNING, text); }
  void info(const std::string& text) const { say(RG_LOG_INFO, text); }
  void debug(const std::string& text) const { say(RG_LOG_DEBUG, text); }

private:
  void say(std::int32_t level, const std::string& text) const {
    if (host_) host_->log(host_->context, level, text.c_str());
  }
  const rg_host* host_;
};

// --------------------------------------------------------------------------------------------------- parameters ---

inline constexpr std::size_t max_choices = 12;

// One member of a `parameters` struct: its name in TOML, a help text of one line, and its allowed values. The default
// is the member's initialiser. The texts must live as long as the plugin: use literals. range(), unit(), one_of() and
// must() return a changed copy, so that they can be chained.
template <class P, class T> struct field_of {
  const char* name;
  T P::*member;
  const char* help;
  double min = 0, max = 0; // both 0: unbounded
  std::uint32_t units = RG_UNIT_NONE;
  std::array<const char*, max_choices + 1> choices{};
  bool required = false;

  // Allows numbers from `low` to `high`, both included; an infinity leaves one side open.
  constexpr field_of range(double low, double high) const {
    field_of f = *this;
    f.min = low;
    f.max = high;
    return f;
  }
  // `u`: RG_UNIT_*, for integers (bytes, nanoseconds) and floats (bit/s).
  constexpr field_of unit(std::uint32_t u) const {
    field_of f = *this;
    f.units = u;
    return f;
  }
  template <class... C> constexpr field_of one_of(C... c) const {
    static_assert(std::is_same_v<T, std::string>, "one_of() is for strings");
    static_assert(sizeof...(C) <= max_choices, "too many choices");
    field_of f = *this;
    f.choices = {c...};
    return f;
  }
  // Makes the parameter one that the user must give: it has no default.
  constexpr field_of must() const {
    field_of f = *this;
    f.required = true;
    return f;
  }
};

template <class P, class T> constexpr field_of<P, T> field(const char* name, T P::*member, const char* help) {
  return {name, member, help};
}
template <class... F> constexpr std::tuple<F...> fields(F... f) {
  return {f...};
}

namespace detail {

template <class T> constexpr std::uint32_t param_type() {
  if constexpr (std::is_same_v<T, bool>)
    return RG_PARAM_BOOL;
  else if constexpr (std::is_integral_v<T>)
    return RG_PARAM_INT;
  else if constexpr (std::is_floating_point_v<T>)
    return RG_PARAM_FLOAT;
  else if constexpr (std::is_same_v<T, std::string>)
    return RG_PARAM_STRING;
  else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
    return RG_PARAM_INTS;
  else if constexpr (std::is_same_v<T, std::vector<double>>)
    return RG_PARAM_FLOATS;
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    return RG_PARAM_STRINGS;
  else
    static_assert(
        !sizeof(T),
        "a parameter is a bool, an integer, a float, a std::string, or a vector of int64_t, double or std::string");
}

inline std::string toml_text(double v) {
  char text[64];
  auto end = std::to_chars(text, text + sizeof text, v).ptr;
  std::string s(text, end);
  if (s.find_first_of(".en") == std::string::npos) s += ".0"; // in TOML a float has a point or an exponent
  return s;
}
template <class T> std::string toml_literal(const T& v) {
  if constexpr (std::is_same_v<T, bool>)
    return v ? "true" : "false";
  else if constexpr (std::is_integral_v<T>)
    return std::to_string(v);
  else if constexpr (std::is_floating_point_v<T>)
    return toml_text(v);
  else if constexpr (std::is_same_v<T, std::string>) {
    std::string s = "\"";
    for (char c : v) {
      if (c == '"' || c == '\\') s += '\\';
      s += c;
    }
    return s + "\"";
  } else {
    std::string s = "[";
    for (const auto& e : v) s += (s.size() > 1 ? ", " : "") + toml_literal(e);
    return s + "]";
  }
}

template <class T> void assign(T& member, const rg_value& v) {
  if constexpr (std::is_same_v<T, bool>)
    member = v.i != 0;
  else if constexpr (std::is_integral_v<T>)
    member = static_cast<T>(v.i);
  else if constexpr (std::is_floating_point_v<T>)
    member = static_cast<T>(v.f);
  else if constexpr (std::is_same_v<T, std::string>)
    member = v.s ? v.s : "";
  else if constexpr (std::is_same_v<T, std::vector<std::int64_t>>)
    member.assign(v.ints, v.ints + v.count);
  else if constexpr (std::is_same_v<T, std::vector<std::string>>)
    member.assign(v.strings, v.strings + v.count);
  else
    member.assign(v.floats, v.floats + v.count);
}

struct no_parameters {};
template <class C> struct parameters_of { using type = no_parameters; };
template <class C>
requires requires {
  typename C::parameters;
}
struct parameters_of<C> {
  using type = typename C::parameters;
};

} // namespace detail

// The `parameters` struct of component C, or an empty struct if it has none.
template <class C> using parameters_t = typename detail::parameters_of<C>::type;

// Returns C's `parameters` struct, filled with the engine's values, which are in the order of C::fields. Strings and
// arrays are copied.
template <class C> parameters_t<C> read_parameters(const rg_value* values) {
  parameters_t<C> p{};
  if constexpr (requires { C::fields; })
    std::apply([&](const auto&... f) { (detail::assign(p.*(f.member), *values++), ...); }, C::fields);
  return p;
}

// [any] Returns the table of C's parameters for its rg_component. The table is built once and is valid as long as the
// plugin is loaded.
template <class C> std::span<const rg_param> parameter_table() {
  static const auto table = [] {
    struct {
      std::vector<rg_param> params;
      std::vector<std::string> defaults;
    } t;
    if constexpr (requires { C::fields; }) {
      const parameters_t<C> initial{};
      std::apply(
          [&](const auto&... f) {
            t.defaults = {detail::toml_literal(initial.*(f.member))...};
            [[maybe_unused]] auto one = [&, i = std::size_t{0}](const auto& d) mutable {
              auto p = make_versioned<rg_param>();
              using member = std::remove_cvref_t<decltype(initial.*(d.member))>;
              p.type = detail::param_type<member>();
              p.unit = d.units;
              p.name = d.name;
              p.help = d.help;
              p.default_value = d.required ? nullptr : t.defaults[i].c_str();
              p.min = d.min;
              p.max = d.max;
              p.choices = d.choices[0] ? d.choices.data() : nullptr;
              t.params.push_back(p);
              ++i;
            };
            (one(f), ...);
          },
          C::fields);
    }
    return t;
  }();
  return table.params;
}

// ------------------------------------------------------------------------------------------------------- plugin ---

namespace detail {

// Returns a component whose tables have static storage. rg::model<T>() and the other functions for components use it.
template <class C>
rg_component component(std::uint32_t kind, const char* id, const char* summary, const void* functions,
                       const void* (*extension)(const char*) = nullptr) {
  static_assert(!std::is_final_v<C>, "a plugin's class must not be final: optional functions are looked up in a class "
                                     "derived from it");
  static_assert(
      std::is_empty_v<parameters_t<C>> || requires { C::fields; },
      "parameters need, in public: static constexpr auto fields = rg::fields(...), which names each");
  auto c = make_versioned<rg_component>();
  c.kind = kind;
  c.id = id;
  c.summary = summary;
  auto table = parameter_table<C>();
  c.params = table.data();
  c.param_count = static_cast<std::uint32_t>(table.size());
  c.functions = functions;
  c.extension = extension;
  return c;
}

template <std::size_t N>
const rg_plugin* describe_plugin(const char* name, const char* version, std::array<rg_component, N>& components) {
  static const auto pointers = [&] {
    std::array<const rg_component*, N> p;
    for (std::size_t i = 0; i < N; ++i) p[i] = &components[i];
    return p;
  }();
  static const rg_plugin plugin = [&] {
    auto p = make_versioned<rg_plugin>();
    p.abi_major = RG_ABI_MAJOR;
    p.abi_minor = RG_ABI_MINOR;
    p.name = name;
    p.version = version;
    p.components = pointers.data();
    p.component_count = N;
    return p;
  }();
  return &plugin;
}

} // namespace detail
} // namespace rg

// Defines the entry symbol of a plugin, from its name, its version and its components: one or more rg_component, as
// rg::model() and the like return. Once in a plugin. If a component throws, the engine refuses the plugin.
#define RG_PLUGIN(name, version, ...)                                                                                  \
  extern "C" RG_EXPORT const rg_plugin* regatta_plugin(const rg_host* host) {                                          \
    const rg_plugin* plugin = nullptr;                                                                                 \
    rg::fence(host, [&] {                                                                                              \
      static auto components = std::to_array<rg_component>({__VA_ARGS__});                                             \
      plugin = rg::detail::describe_plugin(name, version, components);                                                 \
    });                                                                                                                \
    return plugin;                                                                                                     \
  }
