// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution.hpp"

#include "runtime/memory_plan.hpp"
#include "tuning/kernel_choices.hpp"

#include <algorithm>
#include <utility>

namespace onednn {

convolution::convolution(std::string name, value* in, value* out, const convolution_shape& s, weight* w, weight* bias,
                         const device& dev)
    : op(std::move(name), {in}, out), dev_(dev), shape_(s), weight_(w), bias_(bias) {
  shape_.bias = bias != nullptr;
  shape_.half = out->half;
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

namespace {

std::size_t floats(const desc& d) {
  return d.get_size() / sizeof(float);
}

} // namespace

std::unique_ptr<convolution_kernel> convolution::choose_kernel(const preparation& p, direction d) const {
  auto candidates = [&](std::size_t batch) { return convolution_candidates(dev_, shape_, weight_->layout, batch, d); };
  auto found = candidates(p.batch);
  std::vector<std::string> algorithms;
  algorithms.reserve(found.size());
  for (const auto& k : found) algorithms.push_back(k->algorithm());

  // 1e10 operations are enough to tell candidates apart; the whole batch may take a hundred times as many.
  const auto enough = static_cast<std::size_t>(1e10 / shape_.flops()) + 1;
  const std::size_t batch = std::min(p.batch, enough);
  std::vector<std::unique_ptr<convolution_kernel>> trials;
  convolution_operands work{};
  auto set_up = [&] {
    trials = batch == p.batch ? std::move(found) : candidates(batch);
    const std::size_t lanes = dev_.kernels->lanes;
    auto padded = [&](std::size_t c) { return (c + lanes - 1) / lanes * lanes; };
    const std::size_t x = batch * padded(shape_.channels) * shape_.height * shape_.width;
    const std::size_t y = batch * padded(shape_.outputs) * shape_.out_height * shape_.out_width;
    const std::size_t w = floats(weight_->layout), bias = padded(shape_.outputs);
    std::size_t scratch = 0;
    for (const auto& k : trials) scratch = std::max(scratch, k->scratch_bytes());
    auto even = [](std::size_t n) { return (n + 15) / 16 * 16; };
    float* at = p.choices.workspace((even(x) + even(w) + even(bias) + even(y)) * sizeof(float) + scratch);
    auto take = [&](std::size_t count) { return std::exchange(at, at + even(count)); };
    work.x = take(x); // sized and filled as fp32; every bit pattern is a bf16, too
    work.w = take(w);
    work.bias = take(bias);
    work.y = take(y);
    work.scratch = reinterpret_cast<std::byte*>(at);
  };
  auto seconds = [&](std::size_t i) {
    if (trials.empty()) set_up();
    return seconds_of([&] { trials[i]->run(work); });
  };

  const std::string shape =
      "convolution " + std::to_string(static_cast<int>(d)) + ' ' + std::to_string(shape_.channels) + ' ' +
      std::to_string(shape_.outputs) + ' ' + std::to_string(shape_.height) + ' ' + std::to_string(shape_.width) + ' ' +
      std::to_string(shape_.kernel) + ' ' + std::to_string(shape_.stride) + ' ' + std::to_string(shape_.padding) + ' ' +
      std::to_string(shape_.plain_input) + ' ' + std::to_string(shape_.bias) + " batch " + std::to_string(batch) +
      (shape_.half ? " bf16" : " fp32") + (weight_->layout == weight_->canonical ? " row-major" : "");
  const std::size_t chosen = p.choices.choose(name_ + ' ' + name_of(d), shape, algorithms, seconds);
  std::unique_ptr<convolution_kernel> kernel =
      std::move(batch == p.batch && !trials.empty() ? trials[chosen] : found[chosen]);
  if (kernel->slow())
    dev_.log.warning("oneDNN has only reference code for the " + std::string(name_of(d)) + " of " + name_ +
                     ": it will be slow");
  return kernel;
}

void convolution::prepare(const preparation& p) {
  for (direction d : directions)
    if (wants(d)) kernels_[static_cast<int>(d)] = choose_kernel(p, d);
}

void convolution::plan(memory_plan&) {
  inputs_[0].from->kept = true;
}

// All directions share one struct, hence the const_cast: a kernel does not write an operand that its direction reads.
convolution_operands convolution::data(void* x, const float* w, const float* bias, void* y) const {
  return {x, const_cast<float*>(w), const_cast<float*>(bias), y, false, false, dev_.scratch};
}

void convolution::forward(run&) {
  kernels_[0]->run(data(inputs_[0].from->data, weight_->data, bias_ ? bias_->data : nullptr, output_->data));
}

void convolution::backward(run& r) {
  convolution_operands d =
      data(inputs_[0].from->data, weight_->gradient, bias_ ? bias_->gradient : nullptr, output_->gradient);
  d.add_to_w = adds(r, *weight_);
  d.add_to_bias = bias_ && adds(r, *bias_);
  kernels_[2]->run(d);
  if (inputs_[0].gradient) kernels_[1]->run(data(inputs_[0].gradient, weight_->data, nullptr, output_->gradient));
}

std::size_t convolution::scratch_bytes() const {
  std::size_t most = 0;
  for (const auto& k : kernels_)
    if (k) most = std::max(most, k->scratch_bytes());
  return most;
}

double convolution::flops() const {
  return shape_.flops() * (inputs_[0].from->needs_gradient ? 3 : 2);
}

void convolution::report(std::string& text) const {
  for (direction d : directions)
    if (const auto& k = kernels_[static_cast<int>(d)])
      text += name_ + ' ' + name_of(d) + ": " + k->algorithm() + ' ' + k->runs() + '\n';
}

} // namespace onednn
