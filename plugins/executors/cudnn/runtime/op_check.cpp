// SPDX-License-Identifier: Apache-2.0
#include "runtime/op_check.hpp"

#include <cmath>

namespace cudnn {

struct op_check::tensor_name {
  const op& of;
  const char* pass;
  std::string tensor;
};

namespace {

std::string place_of(const op& o, const char* pass) {
  return "op " + o.kind + " of layer " + o.name() + ", " + pass + " pass";
}

[[noreturn]] void fail(const std::string& place, const std::string& tensor, const std::string& index, double actual) {
  throw rg::error(RG_E_OPERATION, place + ": " + tensor + " at " + index + ": expected a finite number, got " +
                                      std::to_string(actual) +
                                      " (train.debug = \"sync\"; everything before it was finite)");
}

} // namespace

void op_check::before_forward(op& o, const run& r) {
  for (const edge& e : o.inputs()) {
    const value& v = *e.from;
    if (v.input < 0 || program_.inputs[static_cast<std::size_t>(v.input)].type != RG_F32) continue;
    check_value({o, "forward", "input " + v.name}, v, v.data, r.samples());
  }
  for (const weight* w : o.weights()) check_weight(o, "forward", *w, w->data, "");
}

void op_check::after_forward(op& o, const run& r) {
  wait(o, "forward");
  if (const auto* l = dynamic_cast<const loss*>(&o)) { // its output has no memory of its own
    double sum = 0;
    if (r.training) device_.download(&sum, r.losses + l->number, sizeof sum);
    if (!std::isfinite(sum)) fail(place_of(o, "forward"), "the loss", "the sum over the batch", sum);
  } else {
    const value& v = o.output();
    check_value({o, "forward", "output " + v.name}, v, v.data, r.samples());
  }
  for (const weight* w : o.weights())
    if (w->info.kind == RG_TENSOR_STATE) check_weight(o, "forward", *w, w->data, "");
}

void op_check::after_backward(op& o, const run& r) {
  wait(o, "backward");
  if (device_.computes.type == dtype::f16) return;
  for (const edge& e : o.inputs())
    if (e.from->gradient)
      check_value({o, "backward", "gradient of " + e.from->name}, *e.from, e.from->gradient, r.samples());
  for (const weight* w : o.weights())
    if (w->info.kind != RG_TENSOR_STATE) check_weight(o, "backward", *w, w->gradient, "gradient of ");
}

void op_check::wait(const op& o, const char* pass) const {
  cuda::check(cudaStreamSynchronize(device_.stream), place_of(o, pass).c_str());
}

void op_check::check_weight(const op& o, const char* pass, const weight& w, const float* at, const char* prefix) {
  const std::size_t elements = w.sparse ? w.sparse->count * w.row() : w.elements;
  if (elements == 0) return;
  copy_.resize(elements * sizeof(float));
  device_.download(copy_.data(), at, copy_.size());
  const auto* x = reinterpret_cast<const float*>(copy_.data());
  for (std::size_t i = 0; i < elements; ++i)
    if (!std::isfinite(x[i])) fail(place_of(o, pass), prefix + w.name, "element " + std::to_string(i), x[i]);
}

void op_check::check_value(const tensor_name& name, const value& v, const void* at, std::size_t samples) {
  const std::size_t elements = samples * v.elements();
  if (elements == 0) return;
  copy_.resize(elements * size_of(v.type));
  device_.download(copy_.data(), at, copy_.size());
  by_type(v.type, [&](auto type) {
    const auto* x = as(type, static_cast<const void*>(copy_.data()));
    for (std::size_t i = 0; i < elements; ++i) expect_finite(name, v, i, to_float(x[i]));
  });
}

// The index in the error is that of the canonical layout, whatever the layout in memory.
void op_check::expect_finite(const tensor_name& name, const value& v, std::size_t i, double x) const {
  if (std::isfinite(x)) return;
  const element_position at = position_of(v.layout, static_cast<std::uint32_t>(i));
  fail(place_of(name.of, name.pass), name.tensor,
       "sample " + std::to_string(at.sample) + ", element " +
           std::to_string(std::size_t{at.channel} * v.layout.spatial + at.position),
       x);
}

} // namespace cudnn
