// SPDX-License-Identifier: Apache-2.0
//
// A folder of NumPy files, NAME.npy for the model's input NAME. The first dimension counts samples. Values are not
// normalised.
#include "base/failure.hpp"
#include "data/formats.hpp"
#include "data/mapped_file.hpp"
#include "data/npy_header.hpp"
#include "data/sample_order.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <type_traits>

#include <fmt/core.h>

namespace regatta {
namespace {

static_assert(std::endian::native == std::endian::little, "the files are read as they are");

// Calls f(zero of the C++ type).
template <class F> auto with_type(npy_type type, F f) {
  switch (type) {
  case npy_type::f4: return f(float{});
  case npy_type::f8: return f(double{});
  case npy_type::i4: return f(std::int32_t{});
  case npy_type::i8: return f(std::int64_t{});
  default: return f(std::uint8_t{});
  }
}
template <class F> auto with_type(std::uint32_t rg_type, F f) {
  switch (rg_type) {
  case RG_F32: return f(float{});
  case RG_I32: return f(std::int32_t{});
  case RG_I64: return f(std::int64_t{});
  default: return f(std::uint8_t{});
  }
}

template <class T> T load(const std::uint8_t* bytes, std::uint64_t i) noexcept {
  T value; // the data may be unaligned
  std::memcpy(&value, bytes + i * sizeof(T), sizeof(T));
  return value;
}

// Returns the position of the first of n elements that is no index below `range`; n: there is none.
template <class T> std::uint64_t first_bad(const std::uint8_t* in, std::uint64_t n, std::uint64_t range) noexcept {
  for (std::uint64_t i = 0; i < n; ++i)
    // negative indices become huge
    if (static_cast<std::uint64_t>(static_cast<std::int64_t>(load<T>(in, i))) >= range) return i;
  return n;
}

class npy_array {
public:
  npy_array(const std::filesystem::path& folder, const data_input& input, std::uint64_t first_samples)
      : input_(input), file_(folder / (input.name + ".npy")), header_(parse_npy_header(file_.bytes(), file_.name())) {
    const auto& shape = header_.shape;
    if (shape.empty()) throw bad("is a scalar; expected an array with one sample per row");
    // Both (N) and (N, 1) can feed a scalar.
    const std::vector<std::uint64_t> of_sample(shape.begin() + 1, shape.end());
    if (of_sample != input_.shape && !(input_.elements == 1 && header_.elements == shape[0]))
      throw misfit(fmt::format("has samples of {}, but the model's input \"{}\" takes {}", shape_text(of_sample),
                               input_.name, shape_text(input_.shape)));
    if (samples() == 0) throw bad("holds no samples");
    if (!convertible())
      throw misfit(
          fmt::format("has elements of type {}, which the model's input \"{}\" cannot take", type_name(), input_.name));
    const std::uint64_t checked = first_samples ? std::min(first_samples, samples()) : samples();
    for (std::uint64_t s = 0; input_.kind == RG_INPUT_INDEX && s < checked; ++s) require_indices(s);
  }

  std::uint64_t samples() const noexcept { return header_.shape[0]; }
  const std::string& name() const noexcept { return file_.name(); }

  // Converts one sample into element k of the buffer. Checks indices again: a model may index with them, and the file
  // may change.
  void read(std::uint64_t sample, void* out, std::uint64_t k) const {
    if (input_.kind == RG_INPUT_INDEX) require_indices(sample);
    with_type(input_.type, [&](auto to) {
      with_type(header_.type, [&](auto from) {
        const std::uint8_t* const in = bytes_of(sample);
        auto* const target = static_cast<decltype(to)*>(out) + k * input_.elements;
        if constexpr (std::is_same_v<decltype(to), decltype(from)>)
          std::memcpy(target, in, input_.elements * sizeof to);
        else
          for (std::uint64_t i = 0; i < input_.elements; ++i)
            target[i] = static_cast<decltype(to)>(load<decltype(from)>(in, i));
      });
    });
  }

private:
  failure bad(const std::string& what) const {
    return failure(exit_code::run, fmt::format("{}: {}", file_.name(), what));
  }
  failure misfit(const std::string& what) const { // between data and model, both of which are whole
    return failure(exit_code::usage, fmt::format("{}: {}", file_.name(), what));
  }
  const char* type_name() const noexcept { return npy_type_name(header_.type); }
  const std::uint8_t* bytes_of(std::uint64_t sample) const noexcept {
    return file_.bytes().data() + header_.data + sample * input_.elements * header_.element_bytes();
  }

  // For indices any integer type, because their range is checked. For values any type that loses nothing but
  // floating-point precision.
  bool convertible() const noexcept {
    const bool integer = header_.type != npy_type::f4 && header_.type != npy_type::f8;
    if (input_.kind == RG_INPUT_INDEX) return integer;
    switch (input_.type) {
    case RG_F32: return true;
    case RG_I64: return integer;
    case RG_I32: return integer && header_.type != npy_type::i8;
    default: return header_.type == npy_type::u1;
    }
  }

  void require_indices(std::uint64_t sample) const {
    const std::uint64_t at = with_type(header_.type, [&](auto from) {
      if constexpr (std::is_integral_v<decltype(from)>)
        return first_bad<decltype(from)>(bytes_of(sample), input_.elements, input_.range);
      else
        return input_.elements; // convertible() has rejected this type
    });
    if (at < input_.elements)
      throw bad(fmt::format("sample {} has an index that is not from 0 to {}, as the model's input \"{}\" needs",
                            sample, input_.range - 1, input_.name));
  }

  data_input input_;
  mapped_file file_;
  npy_header header_;
};

class npy_source final : public data_source {
public:
  npy_source(const std::vector<data_input>& inputs, const std::filesystem::path& folder, bool shuffle,
             std::uint64_t seed, std::uint64_t first_samples)
      : order_{1, shuffle, seed} {
    for (const auto& input : inputs) {
      if (input.name.find('/') != std::string::npos)
        throw failure(exit_code::usage,
                      fmt::format("the model's input \"{}\" cannot be the name of a file", input.name));
      arrays_.emplace_back(folder, input, first_samples);
      const auto& first = arrays_.front();
      if (arrays_.back().samples() != first.samples())
        throw failure(exit_code::run, fmt::format("{}: has {} samples, but {} has {}", arrays_.back().name(),
                                                  arrays_.back().samples(), first.name(), first.samples()));
    }
    if (!arrays_.empty()) order_.size = arrays_.front().samples();
  }

  void fill(std::uint64_t step, std::uint64_t global_batch, std::uint64_t first, std::uint64_t samples,
            std::span<void* const> out) override {
    for (std::uint64_t k = 0; k < samples; ++k) {
      const std::uint64_t sample = order_.at(step * global_batch + first + k);
      for (std::size_t i = 0; i < arrays_.size(); ++i) arrays_[i].read(sample, out[i], k);
    }
  }

  std::uint64_t size() const noexcept override { return arrays_.empty() ? 0 : order_.size; }

private:
  std::vector<npy_array> arrays_;
  sample_order order_;
};

} // namespace

std::unique_ptr<data_source> make_npy(const std::vector<data_input>& inputs, const std::filesystem::path& folder,
                                      bool shuffle, std::uint64_t seed, std::uint64_t first_samples) {
  return std::make_unique<npy_source>(inputs, folder, shuffle, seed, first_samples);
}

} // namespace regatta
