// SPDX-License-Identifier: Apache-2.0
#include "runtime/connected_transport.hpp"

#include "registry/extension_tables.hpp"
#include "registry/validate.hpp"

#include <algorithm>
#include <functional>
#include <utility>

#include <fmt/format.h>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

constexpr std::uint64_t connect_timeout_ns = 20'000'000'000;
constexpr std::uint64_t close_timeout_ns = 10'000'000'000;

} // namespace

connected_transport::connected_transport(const registry& plugins, const component_choice& choice,
                                         const plugin_host::log_function& log, mac_function mac,
                                         exchange_function exchange, plugin_host::extension_function extensions)
    : component_(plugins.find(kind::transport, choice.id)), name_("transport " + component_.id),
      values_(component_, choice.parameters), mac_(std::move(mac)),
      authenticate_(rg::make_versioned<rg_authenticate>()), exchange_(std::move(exchange)),
      exchange_table_(rg::make_versioned<rg_exchange>()),
      host_(plugins, log, [this, extensions = std::move(extensions)](std::string_view id) -> const void* {
        if (id == RG_EXT_AUTHENTICATE) return &authenticate_;
        if (id == RG_EXT_EXCHANGE) return &exchange_table_;
        return extensions ? extensions(id) : nullptr;
      }) {
  authenticate_.context = this;
  authenticate_.mac = [](void* self, const void* data, std::uint64_t size, std::uint8_t* out) -> rg_status {
    return rg::fence(nullptr, [&] { static_cast<connected_transport*>(self)->mac_(data, size, out); });
  };
  exchange_table_.context = this;
  exchange_table_.all_gather = [](void* self, const std::uint32_t* members, std::uint32_t count, const rg_blob* mine,
                                  rg_blob* parts) -> rg_status {
    auto& x = *static_cast<connected_transport*>(self);
    return rg::fence(x.host_.c(), [&] { x.all_gather({members, count}, *mine, parts); });
  };
}

// Called by the plugin.
void connected_transport::all_gather(std::span<const std::uint32_t> members, const rg_blob& mine, rg_blob* parts) {
  constexpr std::uint64_t most = 4096;
  if (!has_listened_)
    throw rg::error(RG_E_OPERATION, name_ + ": exchange: expected a call within connect() or later, got one before");
  if (!std::ranges::binary_search(members, world_.rank) || members.back() >= world_.size ||
      std::ranges::adjacent_find(members, std::greater_equal()) != members.end())
    throw rg::error(RG_E_OPERATION, name_ + ": exchange: expected ranks in ascending order, this one among them");
  if (mine.bytes > most)
    throw rg::error(RG_E_OPERATION,
                    fmt::format("{}: exchange: expected at most {} bytes, got {}", name_, most, mine.bytes));
  const auto* first = static_cast<const std::uint8_t*>(mine.data);
  try {
    exchanged_ = exchange_(bytes(first, first + mine.bytes), members);
  } catch (const failure& e) {
    throw rg::error(RG_E_PEER, e.what());
  }
  for (std::size_t k = 0; k < members.size(); ++k) parts[k] = {exchanged_[k].data(), exchanged_[k].size()};
}

void connected_transport::destroy() noexcept {
  if (void* self = self_.exchange(nullptr)) functions().destroy(self);
}

void connected_transport::create() {
  void* self = nullptr;
  check(functions().create(host_.c(), values_.data(), &self), host_, name_);
  self_ = self;
  caps_ = rg::make_versioned<rg_transport_caps>();
  check(functions().caps(self, &caps_), host_, name_);
  validate(caps_, name_);
  checked_extensions(functions(), self, name_);
}

void connected_transport::connect(const rg_cluster& cluster, std::uint32_t lanes, std::vector<std::uint32_t> peers,
                                  host_addresses addresses) {
  peers_ = std::move(peers);
  addresses_ = std::move(addresses);
  world_ = rg::make_versioned<rg_world>();
  world_.rank = cluster.rank;
  world_.size = cluster.size;
  world_.lanes = lanes;
  world_.peers = peers_.data();
  world_.peer_count = static_cast<std::uint32_t>(peers_.size());
  world_.host_of = cluster.host_of;
  for (const auto& of_host : addresses_)
    for (auto& texts = address_texts_.emplace_back(); const std::string& a : of_host) texts.push_back(a.c_str());
  for (std::uint32_t r = 0; r < cluster.size; ++r) {
    const auto& texts = address_texts_.at(cluster.host_of[r]);
    auto& of_rank = addresses_of_.emplace_back(rg::make_versioned<rg_addresses>());
    of_rank.count = static_cast<std::uint32_t>(texts.size());
    of_rank.texts = texts.data();
  }
  world_.addresses = addresses_of_[cluster.rank].texts;
  world_.address_count = addresses_of_[cluster.rank].count;
  world_.addresses_of = addresses_of_.data();
  rg_blob mine{};
  check(functions().listen(self_, &world_, &mine), host_, name_);
  has_listened_ = true;
  const auto* data = static_cast<const std::uint8_t*>(mine.data);
  const auto blobs = exchange_(mine.bytes ? bytes(data, data + mine.bytes) : bytes{}, {});
  std::vector<rg_blob> views;
  for (const bytes& b : blobs) views.push_back({b.data(), b.size()});
  check_in_time(functions().connect(self_, views.data(), connect_timeout_ns), host_, name_);
}

void connected_transport::close() {
  check_in_time(functions().close(self_, close_timeout_ns), host_, name_);
}

transport_instance connected_transport::instance() {
  return {component_.id, &functions(), self_, caps_, &host_};
}

const void* connected_transport::extension(const char* id) const {
  return functions().extension ? functions().extension(self_, id) : nullptr;
}

rg_counters connected_transport::counters() {
  auto c = rg::make_versioned<rg_counters>();
  if (functions().counters) check(functions().counters(self_, &c), host_, name_);
  return c;
}

std::map<std::string, double> connected_transport::own_counters() {
  std::map<std::string, double> values;
  const rg_counter* first = nullptr;
  std::uint32_t count = 0;
  if (const auto* own = static_cast<const rg_own_counters*>(extension(RG_EXT_COUNTERS)))
    check(own->read(self_, &first, &count), host_, name_);
  for (std::uint32_t i = 0; i < count; ++i) values[rg::at_stride(first, i).name] += rg::at_stride(first, i).value;
  return values;
}

void connected_transport::wake() noexcept {
  if (void* self = self_.load()) functions().wake(self);
}

} // namespace regatta
