// SPDX-License-Identifier: Apache-2.0
//
// The graph of a plugin's model, for tests that hold it against its publication or run it.
#pragma once

#include <executed.hpp>

#include <doctest/doctest.h>

#include <deque>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include <regatta/ext/graph.h>

namespace model_graph {

// A graph of a plugin's model, with some parameters given as TOML would. Throws what the model says against them.
class graph_of {
public:
  struct setting {
    std::string name;
    rg_value value;
  };
  graph_of(const std::string& file, const std::string& id, const std::vector<setting>& given) {
    const rg_component& c = reference::load_component(REGATTA_PLUGINS "/" + file, RG_KIND_MODEL, id);
    source_ = static_cast<const rg_graph_source*>(c.extension(RG_EXT_GRAPH));
    REQUIRE(source_ != nullptr);
    std::vector<rg_value> values;
    for (std::uint32_t i = 0; i < c.param_count; ++i) {
      const rg_param& p = rg::at_stride(c.params, i);
      rg_value v{};
      const std::string text = p.default_value;
      if (p.type == RG_PARAM_STRING)
        v.s = texts_.emplace_back(text.substr(1, text.size() - 2)).c_str();
      else if (p.type == RG_PARAM_BOOL)
        v.i = text == "true";
      else if (p.type == RG_PARAM_INT)
        v.i = std::stoll(text);
      else if (p.type == RG_PARAM_FLOAT)
        v.f = std::stod(text);
      else if (p.type == RG_PARAM_INTS)
        v = whole_numbers(text);
      for (const auto& s : given)
        if (s.name == p.name) v = s.value;
      values.push_back(v);
    }
    auto host = rg::make_versioned<rg_host>();
    host.context = &error_;
    host.fail = [](void* context, rg_status status, const char* what) {
      *static_cast<std::string*>(context) = what;
      return status;
    };
    if (source_->create(&host, values.data(), &self_) != RG_OK) throw std::runtime_error(error_);
    graph = source_->graph(self_);
  }
  ~graph_of() { source_->destroy(self_); }
  graph_of(const graph_of&) = delete;
  graph_of& operator=(const graph_of&) = delete;

  std::uint64_t parameters(std::uint32_t kind = RG_TENSOR_DENSE) const {
    std::uint64_t n = 0;
    for (std::uint32_t t = 0; t < graph->tensor_count; ++t)
      if (graph->tensors[t].kind == kind) n += rg::storage_of(graph->tensors[t]);
    return n;
  }
  const rg_graph* graph = nullptr;

private:
  rg_value whole_numbers(const std::string& text) { // "[400, 400]"
    auto& numbers = lists_.emplace_back();
    std::istringstream in(text);
    in.ignore(); // the bracket; then a comma or the other one follows each number
    for (std::int64_t n = 0; in >> n; in.ignore()) numbers.push_back(n);
    return {.ints = numbers.data(), .count = numbers.size()};
  }

  const rg_graph_source* source_ = nullptr;
  void* self_ = nullptr;
  std::deque<std::string> texts_;
  std::deque<std::vector<std::int64_t>> lists_;
  std::string error_;
};

inline rg_value text(const char* s) {
  return {.s = s};
}
inline rg_value whole(std::int64_t i) {
  return {.i = i};
}
inline rg_value number(double f) {
  return {.f = f};
}
inline rg_value list(const std::vector<std::int64_t>& v) {
  return {.ints = v.data(), .count = v.size()};
}

} // namespace model_graph
