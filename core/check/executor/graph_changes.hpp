// SPDX-License-Identifier: Apache-2.0
//
// Copies of a graph in other structs, which tests change.
#pragma once

#include <cstddef>
#include <vector>

#include <regatta/ext/graph.h>

namespace regatta::conformance {

// A copy whose nodes, attributes and tensors can be changed. Attributes can be added and removed, too; the number of
// nodes and of tensors must not change. The graph must outlive it.
class changed_graph {
public:
  explicit changed_graph(const rg_graph& g);
  changed_graph(const changed_graph&) = delete;
  changed_graph& operator=(const changed_graph&) = delete;
  // Returns the copy; valid until the next call or change.
  const rg_graph& get();

  std::vector<rg_node> nodes;
  std::vector<std::vector<rg_attr>> attributes; // by node
  std::vector<rg_tensor> tensors;

private:
  rg_graph graph_;
};

// A copy in structs that are longer than those of this version of the interface, as structs of a later version may be.
// The graph must outlive it.
class longer_graph {
public:
  explicit longer_graph(const rg_graph& g);
  longer_graph(const longer_graph&) = delete;
  longer_graph& operator=(const longer_graph&) = delete;
  const rg_graph& get() const { return *reinterpret_cast<const rg_graph*>(graph_.data()); }

private:
  std::vector<std::vector<std::byte>> attributes_; // by node
  std::vector<std::byte> nodes_, tensors_, inputs_, graph_;
};

} // namespace regatta::conformance
