// SPDX-License-Identifier: Apache-2.0
#include "ops/convolution.hpp"

#include "kernels/elementwise.hpp"
#include "runtime/fences.hpp"

namespace cudnn {
namespace {

double time(device& d, execution e, execution::addresses at, const char* name) {
  d.workspace.reserve(e.workspace());
  return time_of(d.stream, [&] { e.run(d.dnn, at, d.workspace.get<void>(), name); });
}

// Returns the plan of the graph: by the engine that is known already, by the first engine of cuDNN's heuristics, or by
// the fastest of the first few. The number of an engine is its index in the heuristics' list. Returns null if no engine
// meets the demands.
std::shared_ptr<const plan> choose(device& d, const kernel_choices& c, const std::string& name,
                                   const std::string& shape, graph& g, execution::addresses at) {
  constexpr int most_timed = 8; // some engines take a second to compile
  const int known = c.known(name, shape);
  if (const auto same = d.planning.known.find(shape); same != d.planning.known.end())
    if (known < 0 || static_cast<std::size_t>(known) == same->second->engine()) return same->second;
  const demands wanted{.exact = d.computes.type == dtype::f32 && !d.computes.tf32};
  const std::vector<descriptor> engines = g.engines(d.planning);
  const auto made_by = [&](std::size_t i) { return plan::of(d.planning, g, engines, i, wanted); };
  std::shared_ptr<const plan> best;
  if (known >= 0) best = made_by(static_cast<std::size_t>(known));
  if (!best && !c.given(name)) { // no choice is known, or the cache names an engine that this version lacks
    double least = 0;
    int tried = 0;
    for (std::size_t i = 0; i < engines.size() && tried < (c.times() ? most_timed : 1); ++i) {
      auto made = made_by(i);
      if (!made) continue;
      const double taken = c.times() ? time(d, execution(made), at, name.c_str()) : 0;
      if (tried++ > 0 && taken >= least) continue;
      least = taken;
      best = std::move(made);
    }
  }
  if (best) d.planning.known[shape] = best;
  return best;
}

// Names everything on which an engine's speed depends.
std::string text_of(const convolution_shape& s, bool tf32) {
  std::string all = std::to_string(static_cast<int>(s.type)) + (tf32 ? " tf32" : "") + (s.last ? " last" : "");
  for (const std::int64_t n :
       {s.samples, s.in_channels, s.in_height, s.in_width, s.out_channels, s.kernel, s.stride, s.padding})
    all += ' ' + std::to_string(n);
  return all;
}

std::string text_of(const convolution_end& e) {
  if (e.bias) return e.relu ? " with bias and relu" : " with bias";
  return e.relu ? " with relu" : "";
}

} // namespace

convolution::convolution(std::string name, value* in, value* out, const shape& s, weight* w, weight* bias,
                         std::optional<function> f)
    : op(std::move(name), {in}, out), shape_(s), w_(w), end_(bias, f) {
  weights_ = {w};
  if (bias) weights_.push_back(bias);
}

void convolution::prepare(device& d) {
  filter_gradient_.reserve(w_->elements * size_of(d.computes.type));
  end_.prepare(d, output_->layout, batch);
}

convolution_shape convolution::shape_in(const device& d) const {
  const auto size = [](std::size_t n) { return static_cast<std::int64_t>(n); };
  const value &x = *inputs_[0].from, &y = *output_;
  return {.type = d.computes.type,
          .last = d.computes.channels_last,
          .samples = size(batch),
          .in_channels = size(x.shape[0]),
          .in_height = size(x.shape[1]),
          .in_width = size(x.shape[2]),
          .out_channels = size(y.shape[0]),
          .out_height = size(y.shape[1]),
          .out_width = size(y.shape[2]),
          .kernel = size(shape_.kernel),
          .stride = size(shape_.stride),
          .padding = size(shape_.padding)};
}

convolution::addresses convolution::at(const void* x, const void* f, const void* y) const {
  // cuDNN takes addresses of read-only tensors without const, too.
  const auto any = [](const void* p) { return const_cast<void*>(p); };
  return {{{convolution_graph::x, any(x)},
           {convolution_graph::filter, any(f)},
           {convolution_graph::y, any(y)},
           {convolution_graph::bias, end_.bias() ? end_.bias()->data : nullptr}}};
}

execution convolution::plan_for(device& d, kernel_choices& c, graph::direction made, bool fused,
                                const addresses& a) const {
  static constexpr const char* directions[] = {" forward", " data", " weights"};
  const bool add = made == graph::direction::x && inputs_[0].add;
  const convolution_end end = {.bias = fused && end_.bias(), .relu = fused && end_.relu()};
  const std::string what = directions[static_cast<std::size_t>(made)] + text_of(end), name = name_ + what;
  const convolution_shape all = shape_in(d);
  graph g = convolution_graph::of(all, made, add, end);
  const std::string text = "graph" + what + (add ? " added " : " ") + text_of(all, d.computes.tf32);
  auto chosen = choose(d, c, name, text, g, execution::addresses(a).first(end.bias ? 4 : 3));
  if (!chosen && (!fused || c.given(name))) {
    const int given = c.given(name) ? c.known(name, "") : -1;
    throw rg::error(RG_E_UNSUPPORTED, name + ": cuDNN has no deterministic engine for it" +
                                          (given < 0 ? "" : " of number " + std::to_string(given)));
  }
  if (chosen) {
    d.workspace.reserve(chosen->workspace());
    c.choose(name, text, static_cast<int>(chosen->engine()));
  }
  return execution(std::move(chosen));
}

void convolution::attach(device& d, kernel_choices& c) {
  const addresses ahead = at(x(), w_->gemm_operand(), y());
  if (end_.fused_epilogue() != gemm_epilogue::none && !c.given(name_ + " forward"))
    forward_ = plan_for(d, c, graph::direction::y, true, ahead);
  fused_ = static_cast<bool>(forward_);
  if (!fused_) forward_ = plan_for(d, c, graph::direction::y, false, ahead);
  weights_by_ = plan_for(d, c, graph::direction::w, false, at(x(), filter_gradient_.get<void>(), dy()));
  if (dx()) data_ = plan_for(d, c, graph::direction::x, false, at(dx(), w_->gemm_operand(), dy()));
}

void convolution::perform(device& d, execution& e, const addresses& a) const {
  const bool with_bias = &e == &forward_ && fused_ && end_.bias();
  e.run(d.dnn, execution::addresses(a).first(with_bias ? 4 : 3), d.workspace.get<void>(), name_.c_str());
}

void convolution::forward(device& d, const run&) {
  perform(d, forward_, at(x(), w_->gemm_operand(), y()));
  if (!fused_) end_.forward(d, y());
}

// Whether the filter's gradient is added depends on the step, but a graph fixes it. So the graph always overwrites; to
// add, it writes to a buffer, and a kernel adds that.
void convolution::backward(device& d, const run& r) {
  end_.backward(d, y(), output_->gradient, end_.bias() && adds(r, *end_.bias()));
  const bool in_place = !w_->copied && !adds(r, *w_);
  perform(d, weights_by_, at(x(), in_place ? w_->gradient : filter_gradient_.get<void>(), dy()));
  if (!in_place)
    kernels::relayout(d.stream, d.computes.type, w_->copied ? w_->copy_layout : w_->layout,
                      filter_gradient_.get<void>(), dtype::f32, w_->layout, w_->gradient,
                      w_->elements / w_->layout.elements(), adds(r, *w_));
  if (dx()) perform(d, data_, at(dx(), w_->gemm_operand(), dy()));
}

double convolution::flops() const {
  const double multiplications = static_cast<double>(w_->elements) * static_cast<double>(output_->layout.spatial);
  return 2 * multiplications * (inputs_[0].from->needs_gradient ? 3 : 2);
}

} // namespace cudnn
