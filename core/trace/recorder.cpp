// SPDX-License-Identifier: Apache-2.0
#include "trace/recorder.hpp"

#include <algorithm>
#include <fstream>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>

namespace regatta {
namespace {

// A million messages are a file of less than 100 MB (tests/core/timeline/perfetto_test.cpp); other events are smaller.
constexpr std::size_t most_of_all_ranks = 1'000'000, most_of_a_rank = std::size_t{1} << 17;

// CLOCK_MONOTONIC counts from the boot of the kernel, which this names.
std::string boot_id() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string id;
  std::getline(in, id);
  return id;
}

const char* text_or_empty(const char* text) {
  return text ? text : "";
}

} // namespace

std::size_t trace_recorder::capacity_for(std::uint32_t ranks) {
  return std::min(most_of_a_rank, most_of_all_ranks / std::max(ranks, 1U));
}

trace_recorder::trace_recorder(std::size_t capacity)
    : capacity_(capacity), slots_(std::make_unique<slot[]>(capacity)) { // zeros it, which touches the pages
  for (std::size_t k = 0; k < tables_.size(); ++k) {
    host_table& t = tables_[k];
    t.recorder = this;
    t.origin = static_cast<event_origin>(k);
    t.table = rg::make_versioned<rg_trace>();
    t.table.context = &t;
    t.table.on = &on_;
    t.table.span = [](void* self, const rg_span* s) {
      const auto& to = *static_cast<const host_table*>(self);
      const rg_span known = rg::copy_versioned(*s);
      trace_event e;
      e.origin = to.origin;
      e.track = known.track;
      e.begin = known.begin_ns;
      e.end = std::max(known.begin_ns, known.end_ns);
      e.number = known.number;
      to.recorder->add(e, known.name, known.category, known.number_name);
    };
    t.table.text = [](void* self, const char* text) {
      return static_cast<host_table*>(self)->recorder->text(text_or_empty(text));
    };
  }
}

void trace_recorder::add(trace_event e, const char* name, const char* category, const char* number_name) noexcept {
  if (!on()) return;
  const std::size_t k = next_.fetch_add(1, std::memory_order_relaxed);
  if (k >= capacity_) return;
  slot& s = slots_[k];
  s.event = e;
  s.texts = {name, category, number_name};
  s.complete.store(true, std::memory_order_release);
}

void trace_recorder::span(event_origin origin, const char* name, const char* category, std::uint64_t begin,
                          std::uint64_t end, const char* number_name, std::uint64_t number) noexcept {
  trace_event e;
  e.origin = origin;
  e.begin = begin;
  e.end = end;
  e.number = number;
  add(e, name, category, number_name);
}

void trace_recorder::instant(event_origin origin, const char* name, const char* category, std::uint64_t at,
                             const char* number_name, std::uint64_t number) noexcept {
  trace_event e;
  e.kind = event_kind::instant;
  e.origin = origin;
  e.begin = e.end = at;
  e.number = number;
  add(e, name, category, number_name);
}

nlohmann::json trace_recorder::take(std::uint32_t rank, const std::string& role) {
  record(false);
  std::vector<std::string> strings{""};
  std::unordered_map<std::string_view, std::uint32_t> known{{"", 0}};
  const auto index_of = [&](const char* text) {
    const auto [at, is_new] = known.try_emplace(text_or_empty(text), static_cast<std::uint32_t>(strings.size()));
    if (is_new) strings.emplace_back(at->first);
    return at->second;
  };
  const std::size_t count = next_.load(), kept = std::min(count, capacity_);
  std::vector<std::uint8_t> bytes;
  bytes.reserve(kept * sizeof(trace_event));
  for (std::size_t k = 0; k < kept; ++k) {
    slot& s = slots_[k];
    if (!s.complete.load(std::memory_order_acquire)) continue; // a thread is within add()
    s.event.name = index_of(s.texts[0]);
    s.event.category = index_of(s.texts[1]);
    s.event.number_name = index_of(s.texts[2]);
    const auto* first = reinterpret_cast<const std::uint8_t*>(&s.event);
    bytes.insert(bytes.end(), first, first + sizeof s.event);
  }
  return {{"rank", rank},
          {"role", role},
          {"clock", boot_id()},
          {"dropped", count - kept},
          {"strings", std::move(strings)},
          {"events", nlohmann::json::binary(std::move(bytes))}};
}

} // namespace regatta
