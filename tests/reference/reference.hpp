// SPDX-License-Identifier: Apache-2.0
//
// The layers of regatta/layers.hpp as plain loops in double: executors are compared with them. Slow.
#pragma once

#include <regatta/layers.hpp>

#include <cstdint>
#include <utility>
#include <vector>

namespace reference {

struct batch {
  std::size_t samples = 1;
  std::vector<std::vector<double>> inputs; // [samples, shape...] by input; indices, too
  std::uint64_t seed = 1, step = 0, first_sample = 0, global_samples = 1;
  std::vector<std::uint64_t> global_counts; // empty: the engine has none
};

// Whether dropout keeps an element (canonical) of a sample, see regatta/layers.hpp.
bool keeps(const batch& b, std::size_t sample, std::size_t element, double p, std::uint32_t layer);

class interpreter {
public:
  // The graph must outlive it.
  explicit interpreter(const rg_graph& graph);

  // Canonical, by number in the graph. Dense weights and states; gradients of dense ones.
  std::vector<std::vector<double>> tensors, gradients;

  // Sum of the losses. Training uses the batch's statistics and dropout, and updates states.
  double forward(const batch& b, bool training = true);
  // After a training forward pass: gradients of that sum / global_samples.
  void backward(const batch& b);

  // The output of a node, [samples, shape...].
  const std::vector<double>& output(std::size_t k) const { return values_[k]; }

private:
  struct node {
    rg_node raw;
    std::size_t elements; // of one sample
    double attr(const char* key) const;
  };
  void run_forward(std::size_t k, const batch& b, bool training);
  void run_backward(std::size_t k, const batch& b);
  // sequence.cpp, sparse.cpp; false if the op is not one of that file
  bool forward_sequence(std::size_t k, const batch& b, bool training);
  bool backward_sequence(std::size_t k, const batch& b);
  bool forward_sparse(std::size_t k, const batch& b);
  bool backward_sparse(std::size_t k, const batch& b);
  template <class F> void each_lookup(std::size_t k, const batch& b, const F& f) const;
  std::pair<std::size_t, std::size_t> sizes(const node& dense) const; // inputs, outputs

  std::vector<node> nodes_;
  std::vector<rg_tensor> info_;
  std::vector<std::vector<double>> values_, slopes_;
  std::vector<std::vector<double>> notes_; // what a node remembers for its backward pass
};

} // namespace reference
