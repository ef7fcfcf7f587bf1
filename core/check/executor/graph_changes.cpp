// SPDX-License-Identifier: Apache-2.0
#include "check/executor/graph_changes.hpp"

#include <cstring>

#include <regatta/plugin.hpp>

namespace regatta::conformance {
namespace {

constexpr std::size_t growth = 32; // bytes of members that this interface does not know

template <class T> std::vector<T> copies(const T* first, std::size_t count) {
  std::vector<T> all;
  for (std::size_t i = 0; i < count; ++i) all.push_back(rg::copy_versioned(rg::at_stride(first, i)));
  return all;
}

// Returns the structs with `growth` zero bytes behind each.
template <class T> std::vector<std::byte> longer(std::vector<T> all) {
  std::vector<std::byte> bytes(all.size() * (sizeof(T) + growth));
  for (std::size_t i = 0; i < all.size(); ++i) {
    all[i].struct_size = sizeof(T) + growth;
    std::memcpy(bytes.data() + i * (sizeof(T) + growth), &all[i], sizeof(T));
  }
  return bytes;
}

template <class T> const T* first_of(const std::vector<std::byte>& bytes) {
  return reinterpret_cast<const T*>(bytes.data());
}

} // namespace

changed_graph::changed_graph(const rg_graph& g)
    : nodes(copies(g.nodes, g.node_count)), tensors(copies(g.tensors, g.tensor_count)), graph_(rg::copy_versioned(g)) {
  for (const rg_node& n : nodes) attributes.push_back(copies(n.attrs, n.attr_count));
}

const rg_graph& changed_graph::get() {
  for (std::size_t k = 0; k < nodes.size(); ++k) {
    nodes[k].attrs = attributes[k].data();
    nodes[k].attr_count = static_cast<std::uint32_t>(attributes[k].size());
  }
  graph_.nodes = nodes.data();
  graph_.tensors = tensors.data();
  return graph_;
}

longer_graph::longer_graph(const rg_graph& g)
    : tensors_(longer(copies(g.tensors, g.tensor_count))), inputs_(longer(copies(g.inputs, g.input_count))) {
  std::vector<rg_node> nodes = copies(g.nodes, g.node_count);
  for (rg_node& n : nodes) {
    attributes_.push_back(longer(copies(n.attrs, n.attr_count)));
    n.attrs = first_of<rg_attr>(attributes_.back());
  }
  nodes_ = longer(nodes);
  std::vector<rg_graph> graph = {rg::copy_versioned(g)};
  graph[0].nodes = first_of<rg_node>(nodes_);
  graph[0].tensors = first_of<rg_tensor>(tensors_);
  graph[0].inputs = first_of<rg_input>(inputs_);
  graph_ = longer(graph);
}

} // namespace regatta::conformance
