// SPDX-License-Identifier: Apache-2.0
#include "check/model/reference.hpp"

#include "base/failure.hpp"
#include "check/model/model_under_test.hpp"
#include "data/npy_header.hpp"

#include <cmath>
#include <cstring>
#include <fstream>
#include <iterator>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace regatta::conformance {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t reference_batch = 8;
constexpr double reference_tolerance = 1e-3; // of a gradient's length: fp32 after many layers against any precision

using dimensions = std::vector<std::uint64_t>;

fs::path file_of(const fs::path& folder, std::string name) {
  std::replace(name.begin(), name.end(), '/', '_');
  return folder / (name + ".npy");
}

void write_npy(const fs::path& file, const char* type, const dimensions& shape, const void* data, std::size_t bytes) {
  std::string head = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}", type,
                                 fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  head.resize((10 + head.size() + 1 + 63) / 64 * 64 - 10 - 1, ' '); // data begins at a multiple of 64 bytes
  head += '\n';
  std::ofstream out(file, std::ios::binary);
  out << "\x93NUMPY" << '\x01' << '\0' << static_cast<char>(head.size() % 256) << static_cast<char>(head.size() / 256)
      << head;
  out.write(static_cast<const char*>(data), static_cast<std::streamsize>(bytes));
  if (!out.flush()) throw failure(exit_code::run, fmt::format("{}: cannot be written", file.string()));
}

void write_floats(const fs::path& file, const dimensions& shape, const floats& values) {
  write_npy(file, "<f4", shape, values.data(), values.size() * sizeof(float));
}

template <class T> std::vector<double> doubles_of(const std::uint8_t* data, std::size_t count) {
  std::vector<T> values(count);
  std::memcpy(values.data(), data, count * sizeof(T));
  return {values.begin(), values.end()};
}

std::vector<double> read_npy(const fs::path& file, dimensions& shape) {
  std::ifstream in(file, std::ios::binary);
  if (!in)
    throw failed(fmt::format("{} cannot be read; expected one file NAME.npy for each trained tensor", file.string()));
  const std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  const npy_header head = parse_npy_header(bytes, file.string());
  shape = head.shape;
  if (head.type == npy_type::f4) return doubles_of<float>(bytes.data() + head.data, head.elements);
  if (head.type == npy_type::f8) return doubles_of<double>(bytes.data() + head.data, head.elements);
  throw failed(fmt::format("{} has element type {}; expected float32 (f4) or float64 (f8)", file.string(),
                           npy_type_name(head.type)));
}

// Returns the canonical shape; for a sparse table, with the number of prepared rows.
dimensions shape_of(const model_under_test& m, std::uint32_t t) {
  const rg_tensor& tensor = m.tensors()[t];
  dimensions shape(tensor.shape, tensor.shape + tensor.ndim);
  if (tensor.kind == RG_TENSOR_ROWS) shape[0] = m.rows(t).size();
  return shape;
}

struct fixed_step {
  model_under_test model;
  samples batch;
  double loss; // mean over samples, or over the model's counts; the gradients are those of this mean

  explicit fixed_step(const subject& s) : model(s, reference_batch), batch(model.start()) {
    const rg_step_result result = model.step(batch, reference_batch, RG_BATCH_LAST);
    loss = result.loss_sum / static_cast<double>(model.info().count_kinds ? result.count : reference_batch);
  }
};

void against_reference(const subject& s) {
  fixed_step step(s);
  model_under_test& m = step.model;
  std::vector<std::pair<double, double>> found; // for each tensor: distance, and length of the reference
  double all = 0;
  for (const std::uint32_t t : m.trained()) {
    const floats gradient = m.canonical(t, m.gradients(t));
    dimensions shape;
    const auto expected = read_npy(file_of(s.reference, m.tensors()[t].name), shape);
    require(shape == shape_of(m, t), fmt::format("{} has shape [{}] in the reference, here [{}]", m.tensors()[t].name,
                                                 fmt::join(shape, ", "), fmt::join(shape_of(m, t), ", ")));
    double apart = 0, squares = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      apart += std::pow(gradient[i] - expected[i], 2);
      squares += expected[i] * expected[i];
    }
    all += squares;
    found.emplace_back(std::sqrt(apart), std::sqrt(squares));
  }
  // Some gradients are zero except for rounding, such as that of a bias before batch normalisation.
  for (std::size_t k = 0; k < found.size(); ++k)
    require(found[k].first <= reference_tolerance * found[k].second + 1e-6 * std::sqrt(all),
            fmt::format("the gradient of {} differs from the reference by {:.3g} (L2 norm), whose norm is {:.3g}",
                        m.tensors()[m.trained()[k]].name, found[k].first, found[k].second));
}

void write_reference(const subject& s) {
  const fs::path& folder = s.write_to;
  const auto inside = [&](const char* name) {
    std::error_code ec;
    fs::create_directories(folder / name, ec);
    if (ec) throw failure(exit_code::run, fmt::format("{}: {}", (folder / name).string(), ec.message()));
    return folder / name;
  };
  fixed_step step(s);
  model_under_test& m = step.model;
  for (std::size_t k = 0; k < m.inputs().size(); ++k) {
    const rg_input& in = m.inputs()[k];
    dimensions shape(in.shape, in.shape + in.ndim);
    shape.insert(shape.begin(), reference_batch);
    const char* type = in.type == RG_F32 ? "<f4" : in.type == RG_I32 ? "<i4" : in.type == RG_I64 ? "<i8" : "|u1";
    write_npy(file_of(inside("inputs"), in.name), type, shape, step.batch.inputs[k].data(),
              reference_batch * elements_of(in) * rg::size_of(in.type));
  }
  for (std::uint32_t t = 0; t < m.tensors().size(); ++t) {
    const std::string name = m.tensors()[t].name;
    // The step has changed the statistics of batch normalisation, so state is written with its initial values.
    const bool state = m.tensors()[t].kind == RG_TENSOR_STATE;
    write_floats(file_of(inside("weights"), name), shape_of(m, t),
                 m.canonical(t, state ? m.initial(t, s.seed) : m.weights(t)));
    if (state) continue;
    write_floats(file_of(inside("gradients"), name), shape_of(m, t), m.canonical(t, m.gradients(t)));
    if (m.tensors()[t].kind == RG_TENSOR_ROWS)
      write_npy(file_of(inside("rows"), name), "<i8", {m.rows(t).size()}, m.rows(t).data(),
                m.rows(t).size() * sizeof(std::uint64_t));
  }
  write_npy(folder / "loss.npy", "<f8", {}, &step.loss, sizeof step.loss);
}

} // namespace

test write_reference_test() {
  return {"write-reference", "files with the gradients of the suite's batch", write_reference};
}

std::vector<test> reference_tests() {
  return {
      {"reference", "gradients of the suite's batch equal those of --reference, to a thousandth of their norm",
       against_reference},
  };
}

} // namespace regatta::conformance
