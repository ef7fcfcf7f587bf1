// SPDX-License-Identifier: Apache-2.0
//
// The suite finds a model's writes outside of its arrays. The tests themselves write there, in place of a plugin.
#include "check/model/model_under_test.hpp"

#include <doctest/doctest.h>

using namespace regatta;
using namespace regatta::conformance;

namespace {

subject model_in(const registry& plugins, const std::string& id,
                 const std::map<std::string, nlohmann::json>& set = {}) {
  subject s;
  s.plugins = &plugins;
  s.tested = &plugins.find(kind::model, id);
  s.file = s.tested->file;
  s.parameters = set;
  return s;
}

void write_behind(floats& array) {
  array.data()[array.size()] = 1;
}

} // namespace

TEST_CASE("a step's write behind the rows of a sparse table is found after a batch with more rows") {
  const auto plugins = registry::of_files({REGATTA_BUILD "/lib/regatta/word2vec.so"});
  const subject s = model_in(plugins, "word2vec", {{"vocabulary", 300}, {"dim", 13}});
  model_under_test m(s, 4);
  m.bind();
  const samples first = m.make_samples(0, 4), second = m.make_samples(4, 4);
  std::uint32_t table = 0;
  while (m.tensors()[table].kind != RG_TENSOR_ROWS) ++table;
  m.prepare({&first, &second});
  const std::size_t more = m.rows(table).size();
  m.prepare({&first});
  REQUIRE(m.rows(table).size() < more);
  m.step(first);
  SUBCASE("gradients") {
    write_behind(m.gradients(table));
  }
  SUBCASE("weights") {
    write_behind(m.weights(table));
  }
  CHECK_THROWS_AS(m.step(first), failed);
}

TEST_CASE("a write behind the weights is found after an evaluation, too") {
  const auto plugins = registry::of_files({BROKEN_PLUGINS "/broken_models.so"});
  const subject s = model_in(plugins, "sound_regression");
  model_under_test m(s, 4);
  const samples x = m.start();
  std::vector<double> sums(m.info().metric_sums);
  m.evaluate(x, 4, sums);
  write_behind(m.weights(0));
  CHECK_THROWS_AS(m.evaluate(x, 4, sums), failed);
}
