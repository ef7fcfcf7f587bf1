// SPDX-License-Identifier: Apache-2.0
//
// Batches from another process, over ZeroMQ. The producer binds a PUSH socket, and every worker connects a PULL socket
// to it. A message is one micro-batch of one worker; docs/data.md defines its contents.
#include "data/formats.hpp"

#include "base/failure.hpp"
#include "base/json.hpp"
#include "base/text.hpp"
#include "data/producer.hpp"
#include "experiment/experiment.hpp"

#include <fmt/format.h>

#if REGATTA_ZMQ
#include <algorithm>
#include <chrono>
#include <cstring>
#include <optional>

#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>
#include <zmq.hpp>

namespace regatta {
namespace {

using nlohmann::json;

constexpr std::pair<std::uint32_t, const char*> type_names[] = {
    {RG_F32, "f32"}, {RG_I32, "i32"}, {RG_I64, "i64"}, {RG_U8, "u8"}};

const char* name_of(std::uint32_t type) {
  for (const auto& [value, name] : type_names)
    if (value == type) return name;
  return "?";
}

// Returns the largest element of an input of indices, as unsigned: negative ones become large.
template <class T> std::uint64_t largest(const void* data, std::uint64_t count) {
  using unsigned_type = std::make_unsigned_t<T>;
  const auto* const first = static_cast<const T*>(data);
  unsigned_type most = 0;
  for (std::uint64_t i = 0; i < count; ++i) most = std::max(most, static_cast<unsigned_type>(first[i]));
  return most;
}

class stream final : public data_source {
public:
  stream(std::vector<data_input> inputs, const data_config& config)
      : inputs_(std::move(inputs)), endpoint_(config.endpoint), command_(config.producer),
        timeout_(std::chrono::ceil<std::chrono::milliseconds>(std::chrono::nanoseconds(config.timeout_ns))) {
    socket_.set(zmq::sockopt::linger, 0);
    socket_.set(zmq::sockopt::rcvhwm, static_cast<int>(config.prefetch));
    socket_.set(zmq::sockopt::rcvtimeo, static_cast<int>(std::min(timeout_, look_again).count()));
  }

  // Connects here, because the endpoint may contain the worker's number, which is known only now.
  void plan(const request& r) override {
    const std::uint64_t worker = r.first / (r.samples * r.micros);
    const bool each_its_own = replace(endpoint_, "{worker}", std::to_string(worker));
    if (!command_.empty() && (each_its_own || worker == 0)) {
      replace(command_, "{endpoint}", endpoint_);
      replace(command_, "{batch}", std::to_string(r.samples));
      replace(command_, "{worker}", std::to_string(worker));
      producer_.emplace(command_);
    }
    try {
      socket_.connect(endpoint_);
    } catch (const zmq::error_t& e) {
      throw failure(exit_code::usage, fmt::format("data.endpoint: \"{}\": {}", one_line(endpoint_), e.what()));
    }
  }

  void fill(std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t samples, std::span<void* const> out) override {
    zmq::message_t part;
    wait_for(part);
    ++message_;
    const std::vector<std::size_t> order = read_head(part, samples);
    for (const std::size_t i : order) {
      if (!part.more() || !receive(part)) throw bad("ends before the data of its tensors");
      const data_input& input = inputs_[i];
      const std::uint64_t count = samples * input.elements, bytes = count * rg::size_of(input.type);
      if (part.size() != bytes)
        throw bad(fmt::format("has {} bytes of \"{}\" instead of {}", part.size(), input.name, bytes));
      std::memcpy(out[i], part.data(), bytes);
      check_range(input, out[i], count);
    }
    if (part.more()) throw bad("has more parts than tensors");
  }

private:
  // Interval at which the process that data.producer started is checked while no batch arrives.
  static constexpr std::chrono::milliseconds look_again{200};

  // Replaces each `mark`, and returns whether there was one.
  static bool replace(std::string& text, std::string_view mark, const std::string& by) {
    bool found = false;
    for (std::size_t at = 0; (at = text.find(mark, at)) != std::string::npos; at += by.size()) {
      text.replace(at, mark.size(), by);
      found = true;
    }
    return found;
  }

  void wait_for(zmq::message_t& part) {
    const auto end = std::chrono::steady_clock::now() + timeout_;
    while (!receive(part)) {
      if (producer_)
        if (const auto how = producer_->ended())
          throw failure(exit_code::run, fmt::format("data.producer {}: {}", *how, one_line(command_)));
      if (std::chrono::steady_clock::now() >= end)
        throw failure(exit_code::run, fmt::format("{}: no batch came for {} s (data.timeout); is the producer running, "
                                                  "and does it bind a PUSH socket there?",
                                                  endpoint_, static_cast<double>(timeout_.count()) / 1000));
    }
  }

  failure bad(const std::string& what) {
    // drains the message, so that the socket stays usable if the error is caught
    while (socket_.get(zmq::sockopt::rcvmore)) {
      zmq::message_t rest;
      receive(rest);
    }
    return {exit_code::run, fmt::format("{}: message {} {}", endpoint_, message_, what)};
  }

  bool receive(zmq::message_t& part) {
    for (;;) {
      try {
        return socket_.recv(part, zmq::recv_flags::none).has_value();
      } catch (const zmq::error_t& e) {
        if (e.num() != EINTR) throw failure(exit_code::run, fmt::format("{}: {}", endpoint_, e.what()));
      }
    }
  }

  // Returns the input for each of the message's tensors.
  std::vector<std::size_t> read_head(const zmq::message_t& part, std::uint64_t samples) {
    const auto text = part.to_string_view();
    json head;
    try {
      head = parse_json(text);
    } catch (const failure& e) {
      throw bad(fmt::format("has no head {{\"regatta\": 1, \"tensors\": [...]}} as its first part ({})", e.what()));
    }
    if (!head.is_object() || head.value("regatta", json()) != 1 || !head.contains("tensors") ||
        !head["tensors"].is_array())
      throw bad("has no head {\"regatta\": 1, \"tensors\": [...]} as its first part");
    std::vector<std::size_t> order;
    for (const json& tensor : head["tensors"]) {
      const json name = tensor.is_object() ? tensor.value("name", json()) : json();
      const auto input = std::ranges::find_if(inputs_, [&](const data_input& i) { return name == i.name; });
      if (input == inputs_.end())
        throw bad(
            fmt::format("has a tensor {}, which the model does not take: it takes {}", one_line(name.dump()), names()));
      const auto number = static_cast<std::size_t>(input - inputs_.begin());
      if (std::ranges::find(order, number) != order.end()) throw bad(fmt::format("has \"{}\" twice", input->name));
      if (tensor.value("type", json()) != name_of(input->type))
        throw bad(fmt::format("has \"{}\" of type {} instead of \"{}\"", input->name,
                              one_line(tensor.value("type", json()).dump()), name_of(input->type)));
      json shape = json::array({samples});
      for (const std::uint64_t n : input->shape) shape.push_back(n);
      if (tensor.value("shape", json()) != shape)
        throw bad(fmt::format("has \"{}\" of shape {} instead of {}", input->name,
                              one_line(tensor.value("shape", json()).dump()), shape.dump()));
      order.push_back(number);
    }
    if (order.size() != inputs_.size())
      throw bad(fmt::format("has {} of the model's {} inputs: {}", order.size(), inputs_.size(), names()));
    return order;
  }

  void check_range(const data_input& input, const void* data, std::uint64_t count) {
    if (input.kind != RG_INPUT_INDEX) return;
    const std::uint64_t most = input.type == RG_U8    ? largest<std::uint8_t>(data, count)
                               : input.type == RG_I32 ? largest<std::int32_t>(data, count)
                                                      : largest<std::int64_t>(data, count);
    if (most >= input.range)
      throw bad(fmt::format("has an index in \"{}\" outside 0 to {}", input.name, input.range - 1));
  }

  std::string names() const {
    std::vector<std::string> all;
    for (const data_input& i : inputs_) all.push_back(i.name);
    return join(all);
  }

  std::vector<data_input> inputs_;
  std::string endpoint_, command_;
  std::chrono::milliseconds timeout_;
  std::optional<producer> producer_;
  std::uint64_t message_ = 0;
  zmq::context_t context_{1};
  zmq::socket_t socket_{context_, zmq::socket_type::pull};
};

} // namespace

std::unique_ptr<data_source> make_stream(std::vector<data_input> inputs, const data_config& config) {
  return std::make_unique<stream>(std::move(inputs), config);
}

} // namespace regatta

#else

namespace regatta {

std::unique_ptr<data_source> make_stream(std::vector<data_input>, const data_config&) {
  throw failure(exit_code::usage, "data.source: this build has no \"stream\": install cppzmq-dev and libzmq3-dev, and "
                                  "build again");
}

} // namespace regatta
#endif
