// SPDX-License-Identifier: Apache-2.0
//
// The C++ layer for transports. abi/transport.h says at rg_transport what each function must do and when it is called.
//
//   class carrier {
//   public:
//     struct parameters { ... };                              // optional, with `fields`: rg::fields()
//     carrier(const rg_host* host, const parameters& p);      // [main]
//     rg_transport_caps caps();                               // [main] struct_size need not be set
//     rg_blob listen(const rg_world& world);                  // [main] the bytes are valid until connect returns
//     void connect(std::span<const rg_blob> blobs, std::uint64_t timeout_ns); // [main] one blob per rank, by rank
//     rg_status send(const rg_transfer& t);                   // [loop] RG_OK: accepted; RG_AGAIN: no room now
//     rg_status recv(const rg_transfer& t);                   // [loop] RG_OK: accepted; RG_AGAIN: no room now
//     // [loop] writes completions to `out` and returns their number; 0 is no error
//     std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, std::span<rg_completion> out);
//     void wake() noexcept;                                   // [any] ends the poll() that runs, or else the next one
//     void cancel(std::uint32_t peer);                        // [loop] operations with it complete: RG_E_CANCELLED
//     void close(std::uint64_t timeout_ns);                   // [main] past timeout_ns: throws rg::error(RG_TIMEOUT)
//     rg_counters counters();                                 // [loop] struct_size need not be set
//
//     // Optional:
//     std::uint64_t now() noexcept;                           // [loop] with RG_CAP_VIRTUAL: virtual time in ns
//     void cancel_operation(std::uint64_t cookie);            // [loop] regatta.cancel/1
//     std::span<const rg_counter> own_counters();             // [loop] regatta.counters/1; valid until the next call
//     // [loop] regatta.regions/1: each of allocate and add is optional, and remove is required with either
//     void* allocate(rg_region region, std::uint64_t bytes, const rg_memory& memory);
//     void add(rg_region region, void* address, std::uint64_t bytes, const rg_memory& memory);
//     void remove(rg_region region) noexcept;
//     // regatta.one_sided/1: all four or none of them; requires allocate or add
//     static constexpr std::uint32_t key_bytes = 16;
//     void expose(rg_region region, void* key);               // [main] writes key_bytes bytes to `key`
//     rg_status put(const rg_one_sided_transfer& t);          // [loop] RG_OK: accepted; RG_AGAIN: no room now
//     rg_status get(const rg_one_sided_transfer& t);          // [loop] as put
//     // regatta.collectives/1: all three or none of them
//     std::uint32_t split(std::span<const std::uint32_t> members); // [main] returns the group
//     // [any]
//     bool offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const noexcept;
//     rg_status begin(const rg_collective& c);                // [loop]
//     rg_status arm(std::int32_t& descriptor);                // [loop] regatta.wait/1
//     const void* extension(const char* id);                  // [any] another extension, by id, or null
//   };
//   RG_PLUGIN("carrier", "1.0", rg::transport<carrier>("carrier", "carries bytes"))
//
// Errors are thrown as rg::error; the destructor is destroy. `world` and the memory that it points to are valid until
// close() or the destructor, `host` until the destructor has ended; a transfer, a collective and `blobs` only during
// the call. Class members that are missing but required fail to compile, with a message that names them.
#pragma once

#include <regatta/ext/cancel.h>
#include <regatta/ext/collectives.h>
#include <regatta/ext/counters.h>
#include <regatta/ext/exchange.h>
#include <regatta/ext/one_sided.h>
#include <regatta/ext/regions.h>
#include <regatta/ext/wait.h>
#include <regatta/members.hpp>
#include <regatta/plugin.hpp>

#include <concepts>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <type_traits>
#include <vector>

namespace rg {

// [main] Sends `mine`, at most 4096 bytes, to all `members`, ascending ranks with this one among them, and returns what
// they have sent, in that order. Blocks until all members have called it; each calls it for the same groups in the same
// order. Call it in connect() and later. Slow, because the bytes go through the run's control channel. Throws
// rg::error: RG_E_OPERATION for wrong members, too many bytes or a call before connect(), RG_E_PEER if the run ends
// meanwhile, RG_E_UNSUPPORTED if the host has no RG_EXT_EXCHANGE.
inline std::vector<std::vector<std::byte>> exchange(const rg_host* host, std::span<const std::uint32_t> members,
                                                    std::span<const std::byte> mine) {
  const auto* e = static_cast<const rg_exchange*>(host->extension(host->context, RG_EXT_EXCHANGE));
  if (!e) throw error(RG_E_UNSUPPORTED, "this engine does not exchange bytes among ranks (" RG_EXT_EXCHANGE ")");
  const rg_blob own{mine.data(), mine.size()};
  std::vector<rg_blob> parts(members.size());
  const auto count = static_cast<std::uint32_t>(members.size());
  if (const rg_status s = e->all_gather(e->context, members.data(), count, &own, parts.data()); s < 0)
    throw error(s, "");
  std::vector<std::vector<std::byte>> all;
  for (const rg_blob& p : parts) {
    const auto* first = static_cast<const std::byte*>(p.data);
    all.emplace_back(first, first + p.bytes);
  }
  return all;
}

// Returns a counter of a transport's own. `name` must live as long as the counter.
inline rg_counter counter(const char* name, std::uint64_t value) noexcept {
  return {.struct_size = sizeof(rg_counter), .name = name, .value = static_cast<double>(value)};
}

RG_MEMBER_NAME(now)
RG_MEMBER_NAME(own_counters)
RG_MEMBER_NAME(cancel_operation)
RG_MEMBER_NAME(allocate)
RG_MEMBER_NAME(remove)
RG_MEMBER_NAME(expose)
RG_MEMBER_NAME(split)
RG_MEMBER_NAME(offers)
RG_MEMBER_NAME(begin)
RG_MEMBER_NAME(arm)
RG_MEMBER_NAME(extension)

namespace detail::transports {

template <class T>
concept makes = std::constructible_from < T,
        const rg_host*, const parameters_t<T>
& > ;
template <class T>
concept has_caps = requires(T t) {
  { t.caps() } -> std::same_as<rg_transport_caps>;
};
template <class T>
concept has_listen = requires(T t, const rg_world& w) {
  { t.listen(w) } -> std::same_as<rg_blob>;
};
template <class T>
concept has_connect = requires(T t, std::span<const rg_blob> blobs, std::uint64_t ns) {
  t.connect(blobs, ns);
};
template <class T>
concept has_send = requires(T t, const rg_transfer& x) {
  { t.send(x) } -> std::same_as<rg_status>;
};
template <class T>
concept has_recv = requires(T t, const rg_transfer& x) {
  { t.recv(x) } -> std::same_as<rg_status>;
};
template <class T>
concept has_poll = requires(T t, std::uint64_t ns, std::span<rg_completion> out) {
  { t.poll(ns, ns, out) } -> std::convertible_to<std::uint32_t>;
};
template <class T>
concept has_wake = requires(T t) {
  { t.wake() }
  noexcept;
};
template <class T>
concept has_cancel = requires(T t, std::uint32_t peer) {
  t.cancel(peer);
};
template <class T>
concept has_close = requires(T t, std::uint64_t ns) {
  t.close(ns);
};
template <class T>
concept has_counters = requires(T t) {
  { t.counters() } -> std::same_as<rg_counters>;
};
template <class T>
concept has_now = requires(T t) {
  { t.now() } -> std::same_as<std::uint64_t>;
}
&&noexcept(std::declval<T&>().now());
template <class T>
concept has_own_counters = requires(T t) {
  { t.own_counters() } -> std::convertible_to<std::span<const rg_counter>>;
};
template <class T>
concept has_cancel_operation = requires(T t, std::uint64_t cookie) {
  t.cancel_operation(cookie);
};
template <class T>
concept has_allocate = requires(T t, rg_region r, std::uint64_t n, const rg_memory& memory) {
  { t.allocate(r, n, memory) } -> std::same_as<void*>;
};
template <class T>
concept has_add = requires(T t, rg_region r, void* p, std::uint64_t n, const rg_memory& memory) {
  t.add(r, p, n, memory);
};
template <class T>
concept has_remove = requires(T t, rg_region r) {
  { t.remove(r) }
  noexcept;
};
template <class T>
concept has_expose = requires(T t, rg_region r, void* key) {
  t.expose(r, key);
};
template <class T>
concept has_put = requires(T t, const rg_one_sided_transfer& x) {
  { t.put(x) } -> std::same_as<rg_status>;
};
template <class T>
concept has_get = requires(T t, const rg_one_sided_transfer& x) {
  { t.get(x) } -> std::same_as<rg_status>;
};
template <class T>
concept has_key_bytes = requires {
  requires(T::key_bytes >= 1 && T::key_bytes <= 1024);
};
template <class T>
concept has_split = requires(T t, std::span<const std::uint32_t> members) {
  { t.split(members) } -> std::same_as<std::uint32_t>;
};
template <class T>
concept has_offers = requires(const T t, std::uint32_t n) {
  { t.offers(n, n, n, n) }
  noexcept->std::same_as<bool>;
};
template <class T>
concept has_begin = requires(T t, const rg_collective& c) {
  { t.begin(c) } -> std::same_as<rg_status>;
};
template <class T>
concept has_arm = requires(T t, std::int32_t& descriptor) {
  { t.arm(descriptor) } -> std::same_as<rg_status>;
};
template <class T>
concept has_extension = requires(T t, const char* id) {
  { t.extension(id) } -> std::convertible_to<const void*>;
};

} // namespace detail::transports

// The members that a class needs to be a transport.
template <class T>
concept transport_class = detail::transports::makes<T> && detail::transports::has_caps<T> &&
    detail::transports::has_listen<T> && detail::transports::has_connect<T> && detail::transports::has_send<T> &&
    detail::transports::has_recv<T> && detail::transports::has_poll<T> && detail::transports::has_wake<T> &&
    detail::transports::has_cancel<T> && detail::transports::has_close<T> && detail::transports::has_counters<T>;

namespace detail::transports {

// Reports each missing member with one line of the compiler's output; a message about the concept would name none.
template <class T> constexpr bool check() {
  static_assert(makes<T>, "a transport is made by T(const rg_host*, const parameters&)");
  static_assert(has_caps<T>, "a transport needs: rg_transport_caps caps()");
  static_assert(has_listen<T>, "a transport needs: rg_blob listen(const rg_world&)");
  static_assert(has_connect<T>, "a transport needs: void connect(std::span<const rg_blob>, std::uint64_t timeout_ns)");
  static_assert(has_send<T>, "a transport needs: rg_status send(const rg_transfer&)");
  static_assert(has_recv<T>, "a transport needs: rg_status recv(const rg_transfer&)");
  static_assert(has_poll<T>, "a transport needs: std::uint32_t poll(std::uint64_t timeout_ns, std::uint64_t spin_ns, "
                             "std::span<rg_completion>)");
  static_assert(has_wake<T>, "a transport needs: void wake() noexcept");
  static_assert(has_cancel<T>, "a transport needs: void cancel(std::uint32_t peer)");
  static_assert(has_close<T>, "a transport needs: void close(std::uint64_t timeout_ns)");
  static_assert(has_counters<T>, "a transport needs: rg_counters counters()");
  static_assert(has_remove<T> || !(has_allocate<T> || has_add<T>),
                "a transport with allocate() or add() needs: void remove(rg_region) noexcept");
  static_assert(has_put<T> == has_get<T> && has_put<T> == has_expose<T> && has_put<T> == has_key_bytes<T>,
                "put and get need all of: static constexpr std::uint32_t key_bytes (1 to 1024), void expose(rg_region, "
                "void* key), rg_status put(const rg_one_sided_transfer&), rg_status get(const rg_one_sided_transfer&)");
  static_assert(has_allocate<T> || has_add<T> || !has_expose<T>,
                "a transport with expose() needs regions: allocate() or add()");
  static_assert(has_split<T> == has_begin<T> && has_split<T> == has_offers<T>,
                "collectives need all of: std::uint32_t split(std::span<const std::uint32_t>), bool "
                "offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) const "
                "noexcept, rg_status begin(const rg_collective&)");
  RG_OPTIONAL_MEMBER(T, now, has_now<T>, "std::uint64_t now() noexcept");
  RG_OPTIONAL_MEMBER(T, own_counters, has_own_counters<T>, "std::span<const rg_counter> own_counters()");
  RG_OPTIONAL_MEMBER(T, cancel_operation, has_cancel_operation<T>, "void cancel_operation(std::uint64_t cookie)");
  RG_OPTIONAL_MEMBER(T, allocate, has_allocate<T>,
                     "void* allocate(rg_region, std::uint64_t bytes, const rg_memory& memory)");
  RG_OPTIONAL_MEMBER(T, add, has_add<T>,
                     "void add(rg_region, void* address, std::uint64_t bytes, const rg_memory& memory)");
  RG_OPTIONAL_MEMBER(T, remove, has_remove<T>, "void remove(rg_region) noexcept");
  RG_OPTIONAL_MEMBER(T, expose, has_expose<T>, "void expose(rg_region region, void* key)");
  RG_OPTIONAL_MEMBER(T, split, has_split<T>, "std::uint32_t split(std::span<const std::uint32_t> members)");
  RG_OPTIONAL_MEMBER(T, offers, has_offers<T>,
                     "bool offers(std::uint32_t kind, std::uint32_t reduction, std::uint32_t type, std::uint32_t wire) "
                     "const noexcept");
  RG_OPTIONAL_MEMBER(T, begin, has_begin<T>, "rg_status begin(const rg_collective&)");
  RG_OPTIONAL_MEMBER(T, arm, has_arm<T>, "rg_status arm(std::int32_t& descriptor)");
  RG_OPTIONAL_MEMBER(T, extension, has_extension<T>, "const void* extension(const char* id)");
  return true;
}

template <class T> struct instance {
  instance(const rg_host* h, const parameters_t<T>& p) : host(h), transport(h, p) {}
  const rg_host* host;
  rg_world world{};
  T transport;
};

// The C functions. Each finds its instance and calls the member function. fence() turns exceptions into a status
// (regatta/plugin.hpp).
template <class T> struct entry {
  using self_type = instance<T>;
  static self_type& of(void* self) noexcept { return *static_cast<self_type*>(self); }

  static rg_status create(const rg_host* host, const rg_value* values, void** self) noexcept {
    return fence(host, [&] { *self = std::make_unique<self_type>(host, read_parameters<T>(values)).release(); });
  }
  static void destroy(void* self) noexcept { delete static_cast<self_type*>(self); }
  static rg_status caps(void* self, rg_transport_caps* out) noexcept {
    return fence(of(self).host, [&] { fill_versioned(out, of(self).transport.caps()); });
  }
  static rg_status listen(void* self, const rg_world* world, rg_blob* blob) noexcept {
    return fence(of(self).host, [&] {
      of(self).world = copy_versioned(*world);
      *blob = of(self).transport.listen(of(self).world);
    });
  }
  static rg_status connect(void* self, const rg_blob* blobs, std::uint64_t timeout_ns) noexcept {
    return fence(of(self).host,
                 [&] { of(self).transport.connect(std::span<const rg_blob>(blobs, of(self).world.size), timeout_ns); });
  }
  static rg_status send(void* self, const rg_transfer* transfer) noexcept {
    return fence(of(self).host, [&] {
      const versioned_view<rg_transfer> view(transfer);
      return of(self).transport.send(*view);
    });
  }
  static rg_status recv(void* self, const rg_transfer* transfer) noexcept {
    return fence(of(self).host, [&] {
      const versioned_view<rg_transfer> view(transfer);
      return of(self).transport.recv(*view);
    });
  }
  static rg_status poll(void* self, std::uint64_t timeout_ns, std::uint64_t spin_ns, rg_completion* out,
                        std::uint32_t capacity, std::uint32_t* count) noexcept {
    *count = 0;
    return fence(of(self).host,
                 [&] { *count = of(self).transport.poll(timeout_ns, spin_ns, std::span(out, capacity)); });
  }
  static void wake(void* self) noexcept { of(self).transport.wake(); }
  static rg_status cancel(void* self, std::uint32_t peer) noexcept {
    return fence(of(self).host, [&] { of(self).transport.cancel(peer); });
  }
  static rg_status close(void* self, std::uint64_t timeout_ns) noexcept {
    return fence(of(self).host, [&] { of(self).transport.close(timeout_ns); });
  }
  static rg_status counters(void* self, rg_counters* out) noexcept {
    return fence(of(self).host, [&] { fill_versioned(out, of(self).transport.counters()); });
  }
  static std::uint64_t now(void* self) noexcept { return of(self).transport.now(); }
  static rg_status own_counters(void* self, const rg_counter** counters, std::uint32_t* count) noexcept {
    return fence(of(self).host, [&] {
      const std::span<const rg_counter> all = of(self).transport.own_counters();
      *counters = all.data();
      *count = static_cast<std::uint32_t>(all.size());
    });
  }
  static rg_status cancel_operation(void* self, std::uint64_t cookie) noexcept {
    return fence(of(self).host, [&] { of(self).transport.cancel_operation(cookie); });
  }

  static rg_status allocate(void* self, rg_region region, std::uint64_t bytes, const rg_memory* memory,
                            void** address) noexcept {
    return fence(of(self).host,
                 [&] { *address = of(self).transport.allocate(region, bytes, copy_versioned(*memory)); });
  }
  static rg_status add(void* self, rg_region region, void* address, std::uint64_t bytes,
                       const rg_memory* memory) noexcept {
    return fence(of(self).host, [&] { of(self).transport.add(region, address, bytes, copy_versioned(*memory)); });
  }
  static void remove(void* self, rg_region region) noexcept { of(self).transport.remove(region); }

  static rg_status expose(void* self, rg_region region, void* key) noexcept {
    return fence(of(self).host, [&] { of(self).transport.expose(region, key); });
  }
  static rg_status put(void* self, const rg_one_sided_transfer* transfer) noexcept {
    return fence(of(self).host, [&] {
      const versioned_view<rg_one_sided_transfer> view(transfer);
      return of(self).transport.put(*view);
    });
  }
  static rg_status get(void* self, const rg_one_sided_transfer* transfer) noexcept {
    return fence(of(self).host, [&] {
      const versioned_view<rg_one_sided_transfer> view(transfer);
      return of(self).transport.get(*view);
    });
  }

  static rg_status split(void* self, const std::uint32_t* members, std::uint32_t count, std::uint32_t* group) noexcept {
    return fence(of(self).host, [&] { *group = of(self).transport.split(std::span(members, count)); });
  }
  static std::uint32_t offers(void* self, std::uint32_t kind, std::uint32_t reduction, std::uint32_t type,
                              std::uint32_t wire) noexcept {
    return of(self).transport.offers(kind, reduction, type, wire);
  }
  static rg_status begin(void* self, const rg_collective* collective) noexcept {
    return fence(of(self).host, [&] {
      const versioned_view<rg_collective> view(collective);
      return of(self).transport.begin(*view);
    });
  }

  static rg_status arm(void* self, std::int32_t* descriptor) noexcept {
    return fence(of(self).host, [&] { return of(self).transport.arm(*descriptor); });
  }

  static const void* extension(void* self, const char* id) noexcept;
};

template <class T> constexpr rg_regions make_regions() {
  rg_regions r{};
  r.struct_size = sizeof r;
  if constexpr (has_allocate<T>) r.allocate = &entry<T>::allocate;
  if constexpr (has_add<T>) r.add = &entry<T>::add;
  if constexpr (has_remove<T>) r.remove = &entry<T>::remove;
  return r;
}
template <class T> constexpr rg_one_sided make_one_sided() {
  rg_one_sided o{};
  o.struct_size = sizeof o;
  if constexpr (has_put<T>) {
    o.key_bytes = T::key_bytes;
    o.expose = &entry<T>::expose;
    o.put = &entry<T>::put;
    o.get = &entry<T>::get;
  }
  return o;
}
template <class T> constexpr rg_collectives make_collectives() {
  rg_collectives c{};
  c.struct_size = sizeof c;
  if constexpr (has_split<T>) {
    c.split = &entry<T>::split;
    c.offers = &entry<T>::offers;
    c.begin = &entry<T>::begin;
  }
  return c;
}
template <class T> constexpr rg_wait make_wait() {
  rg_wait w{};
  w.struct_size = sizeof w;
  if constexpr (has_arm<T>) w.arm = &entry<T>::arm;
  return w;
}
template <class T> constexpr rg_own_counters make_own_counters() {
  rg_own_counters c{};
  c.struct_size = sizeof c;
  if constexpr (has_own_counters<T>) c.read = &entry<T>::own_counters;
  return c;
}
template <class T> constexpr rg_cancel make_cancel() {
  rg_cancel c{};
  c.struct_size = sizeof c;
  if constexpr (has_cancel_operation<T>) c.cancel = &entry<T>::cancel_operation;
  return c;
}
template <class T> constexpr rg_transport make_functions() {
  rg_transport f{};
  f.struct_size = sizeof f;
  f.create = &entry<T>::create;
  f.destroy = &entry<T>::destroy;
  f.caps = &entry<T>::caps;
  f.listen = &entry<T>::listen;
  f.connect = &entry<T>::connect;
  f.send = &entry<T>::send;
  f.recv = &entry<T>::recv;
  f.poll = &entry<T>::poll;
  f.wake = &entry<T>::wake;
  f.cancel = &entry<T>::cancel;
  f.close = &entry<T>::close;
  f.counters = &entry<T>::counters;
  if constexpr (has_now<T>) f.now = &entry<T>::now;
  f.extension = &entry<T>::extension;
  return f;
}

template <class T> inline constexpr rg_regions regions = make_regions<T>();
template <class T> inline constexpr rg_one_sided one_sided = make_one_sided<T>();
template <class T> inline constexpr rg_collectives collectives = make_collectives<T>();
template <class T> inline constexpr rg_wait wait = make_wait<T>();
template <class T> inline constexpr rg_own_counters counter_table = make_own_counters<T>();
template <class T> inline constexpr rg_cancel cancel_table = make_cancel<T>();
template <class T> inline constexpr rg_transport functions = make_functions<T>();

template <class T> const void* entry<T>::extension([[maybe_unused]] void* self, const char* id) noexcept {
  if constexpr (has_allocate<T> || has_add<T>)
    if (std::strcmp(id, RG_EXT_REGIONS) == 0) return &regions<T>;
  if constexpr (has_put<T>)
    if (std::strcmp(id, RG_EXT_ONE_SIDED) == 0) return &one_sided<T>;
  if constexpr (has_split<T>)
    if (std::strcmp(id, RG_EXT_COLLECTIVES) == 0) return &collectives<T>;
  if constexpr (has_arm<T>)
    if (std::strcmp(id, RG_EXT_WAIT) == 0) return &wait<T>;
  if constexpr (has_own_counters<T>)
    if (std::strcmp(id, RG_EXT_COUNTERS) == 0) return &counter_table<T>;
  if constexpr (has_cancel_operation<T>)
    if (std::strcmp(id, RG_EXT_CANCEL) == 0) return &cancel_table<T>;
  const void* found = nullptr;
  if constexpr (has_extension<T>) fence(of(self).host, [&] { found = of(self).transport.extension(id); });
  return found;
}

} // namespace detail::transports

// Returns the component of transport T, for RG_PLUGIN.
template <class T> rg_component transport(const char* id, const char* summary) {
  if constexpr (detail::transports::check<T>() && transport_class<T>)
    return detail::component<T>(RG_KIND_TRANSPORT, id, summary, &detail::transports::functions<T>);
  else
    return {};
}

} // namespace rg
