// SPDX-License-Identifier: Apache-2.0
//
// The layers of regatta/layers.hpp, layers_sequence.hpp and layers_sparse.hpp as plain loops in double on the CPU.
// Executors are compared with it: by tests, and with train.debug = "sync" after each op. Slow, and none of its code is
// used by the executors that it judges. All values are in canonical layout, [samples, shape...].
#pragma once

#include <regatta/layers.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace reference {

struct batch {
  std::size_t samples = 1;
  std::vector<std::vector<double>> inputs; // [samples, shape...] by input; indices, too
  std::uint64_t seed = 1, step = 0, first_sample = 0, global_samples = 1;
  // For the rg_batch that tests make of this batch; the interpreter does not read them. Empty: null there.
  std::vector<std::uint64_t> global_counts;
  // Factor on the loss of each counted label in a loss that is a mean over labels. 0: the number of samples divided by
  // the number of labels of this batch that are not 0.
  double label_weight = 0;
};

// Returns whether dropout with probability p keeps an element of a sample, the sample-th of the batch, in this step.
// `element` is its canonical index, `layer` the attribute of that name of the op.
bool keeps(const batch& b, std::size_t sample, std::size_t element, double p, std::uint32_t layer);

class interpreter {
public:
  enum class tables { whole, rows_of_a_step };

  // The shapes of the graph's tensors must outlive this object; the rest of the graph is copied. Throws rg::error,
  // RG_E_UNSUPPORTED, for an attribute that it does not know. Sets tensors[] to init_a where their init is
  // RG_INIT_CONSTANT, else to 0. With rows_of_a_step, tensors[] of a sparse table starts empty, and the caller fills it
  // and rows[] before a pass.
  explicit interpreter(const rg_graph& graph, tables t = tables::whole);

  // By number of the tensor in the graph. `gradients` of states stay 0.
  std::vector<std::vector<double>> tensors, gradients;
  // By number of the tensor: the ids of the rows that tensors[] holds, ascending. Empty: row i has the id i.
  std::vector<std::vector<std::uint64_t>> rows;
  // By number of the node: its output, and the gradient of it.
  std::vector<std::vector<double>> values, value_gradients;

  // Computes all values, and returns the sum of the losses over the batch. In training, batch norm uses the statistics
  // of the batch and updates the states, and dropout drops. Throws rg::error: RG_E_UNSUPPORTED for an unknown op,
  // RG_E_CONFIG for a missing attribute, RG_E_OPERATION for an id that is not in rows[].
  double forward(const batch& b, bool training = true);
  // Computes the gradients of that sum / b.global_samples. Requires a forward pass in training with the same batch.
  void backward(const batch& b);

  // The same for one node. forward_node() requires the values of the node's inputs, and sets its own value.
  // backward_node() requires forward_node(k), and the gradient of its value; it adds to the gradients of its inputs and
  // weights. clear_gradients() sets all gradients to 0; it requires that the values of all nodes are set.
  void forward_node(std::size_t k, const batch& b, bool training);
  void backward_node(std::size_t k, const batch& b);
  void clear_gradients();

  const std::vector<std::uint32_t>& inputs_of(std::size_t k) const { return nodes_[k].inputs; }
  bool is_input(std::size_t k) const { return nodes_[k].op == "input"; }
  const std::string& name_of_tensor(std::size_t tensor) const { return names_[tensor]; }

private:
  struct node {
    std::string op, name;
    std::vector<std::uint32_t> inputs, weights;
    std::vector<std::pair<std::string, double>> attrs;
    std::vector<std::int64_t> shape; // of one sample
    std::size_t elements = 1;        // of one sample
    double attr(const char* key) const;
  };
  // sequence.cpp, sparse.cpp; they return false if the op is not one of that file.
  bool forward_sequence(std::size_t k, const batch& b, bool training);
  bool backward_sequence(std::size_t k, const batch& b);
  bool forward_sparse(std::size_t k, const batch& b);
  bool backward_sparse(std::size_t k, const batch& b);
  template <class F> void each_lookup(std::size_t k, const batch& b, const F& f) const;
  std::size_t row_of(std::size_t tensor, double id) const;
  std::pair<std::size_t, std::size_t> sizes(const node& dense) const; // inputs, outputs

  std::vector<node> nodes_;
  std::vector<rg_tensor> info_;
  std::vector<std::string> names_;         // of tensors
  std::vector<std::vector<double>> saved_; // by node: data of the forward pass for the backward pass
};

} // namespace reference
