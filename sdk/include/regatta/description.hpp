// SPDX-License-Identifier: Apache-2.0
//
// rg::description: the tensors and inputs of a model, and the memory that their C structs point to.
#pragma once

#include <regatta/plugin.hpp>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace rg {

using shape = std::vector<std::int64_t>; // the dimensions of a tensor, or of one sample of an input

// Returns the number of elements; 1 for a shape without dimensions.
inline std::int64_t elements(const shape& s) noexcept {
  std::int64_t n = 1;
  for (auto d : s) n *= d;
  return n;
}

// [main] The tensors and inputs of a model, numbered from 0 in the order in which they are added. Tensors are added in
// the order in which their gradients become ready. Names and shapes are copied. All that tensors() and inputs() return
// is valid until something is added or the description is destroyed. The functions that add return the number of what
// they have added, and throw rg::error (RG_E_CONFIG) for a shape of more than RG_MAX_DIMS dimensions.
class description {
public:
  description() = default;
  description(const description&) = delete;
  description& operator=(const description&) = delete;

  // Adds a dense tensor, not padded, compressible, with full weight decay and learning rate.
  std::uint32_t dense(std::string name, const shape& dims) { return add(RG_TENSOR_DENSE, std::move(name), dims); }
  // Adds a sparse table of `rows` rows of `row` elements, of which a batch touches at most `max_rows` rows.
  std::uint32_t table(std::string name, std::int64_t rows, std::int64_t row, std::uint64_t max_rows) {
    const std::uint32_t number = add(RG_TENSOR_ROWS, std::move(name), {rows, row});
    tensors_[number].max_rows = max_rows;
    return number;
  }
  // Adds values without a gradient, such as running statistics.
  std::uint32_t state(std::string name, const shape& dims) { return add(RG_TENSOR_STATE, std::move(name), dims); }
  // Returns a tensor, to change what the functions above set. Requires number < tensors().size().
  rg_tensor& tensor(std::uint32_t number) { return tensors_[number]; }

  // Adds an input of fp32 numbers; `dims` is the shape of one sample.
  std::uint32_t values(std::string name, const shape& dims) {
    return add_input(RG_INPUT_VALUES, RG_F32, std::move(name), dims, 0);
  }
  // Adds an input of integers from 0 to range - 1: classes, tokens.
  std::uint32_t indices(std::string name, const shape& dims, std::int64_t range) {
    return add_input(RG_INPUT_INDEX, RG_I32, std::move(name), dims, range);
  }

  std::span<const rg_tensor> tensors() const { return tensors_; }
  std::span<const rg_input> inputs() const { return inputs_; }
  // Returns a model's info with these tensors and inputs, and with the layout "canonical". The caller sets at least
  // `unit`.
  rg_model_info info() const {
    auto i = make_versioned<rg_model_info>();
    i.tensors = tensors_.data();
    i.tensor_count = static_cast<std::uint32_t>(tensors_.size());
    i.inputs = inputs_.data();
    i.input_count = static_cast<std::uint32_t>(inputs_.size());
    i.layout = "canonical";
    return i;
  }

private:
  std::uint32_t add(std::uint32_t kind, std::string name, const shape& dims) {
    auto t = make_versioned<rg_tensor>();
    t.kind = kind;
    t.name = keep(std::move(name));
    t.type = RG_F32;
    t.ndim = static_cast<std::uint32_t>(dims.size());
    t.shape = keep(dims);
    t.compressible = 1;
    t.decay = t.lr_scale = 1;
    tensors_.push_back(t);
    return static_cast<std::uint32_t>(tensors_.size() - 1);
  }
  std::uint32_t add_input(std::uint32_t kind, std::uint32_t type, std::string name, const shape& dims,
                          std::int64_t range) {
    auto i = make_versioned<rg_input>();
    i.kind = kind;
    i.name = keep(std::move(name));
    i.type = type;
    i.ndim = static_cast<std::uint32_t>(dims.size());
    i.shape = keep(dims);
    i.range = range;
    inputs_.push_back(i);
    return static_cast<std::uint32_t>(inputs_.size() - 1);
  }
  const char* keep(std::string text) { return texts_.emplace_back(std::move(text)).c_str(); }
  const std::int64_t* keep(const shape& dims) {
    if (dims.size() > RG_MAX_DIMS)
      throw error(RG_E_CONFIG, "a shape has at most " + std::to_string(RG_MAX_DIMS) + " dimensions");
    return shapes_.emplace_back(dims).data();
  }

  std::deque<std::string> texts_;
  std::deque<shape> shapes_;
  std::vector<rg_tensor> tensors_;
  std::vector<rg_input> inputs_;
};

} // namespace rg
