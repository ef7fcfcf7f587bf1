// SPDX-License-Identifier: Apache-2.0
#include "simulate/touched_rows.hpp"

#include "base/failure.hpp"
#include "data/zipf.hpp"
#include "simulate/ask_model.hpp"

#include <algorithm>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <regatta/plugin.hpp>
#include <regatta/random.hpp>

namespace regatta {
namespace {

using nlohmann::json;

constexpr double largest_exponent = 10;       // of data.zipf
constexpr std::uint64_t uniform_below = 4096; // generated indices of smaller ranges are uniform (data/source.hpp)

// Calls f(k, count) for rows of about equal probability: `count` rows around number k, from 1 on. The first ones come
// one by one.
template <class F> void for_each_block(std::uint64_t rows, F&& f) {
  constexpr std::uint64_t one_by_one = 4096;
  for (std::uint64_t k = 1; k <= rows;) {
    const std::uint64_t count = k < one_by_one ? 1 : std::min(rows - k + 1, k / 128);
    f(static_cast<double>(k) + static_cast<double>(count - 1) / 2, static_cast<double>(count));
    k += count;
  }
}

// The data of the case is generated, and so has known frequencies.
bool generated(const case_config& c) {
  return c.data.sample_source() == "constant" || c.data.sample_source() == "random";
}

const touched_table* measured(const machine_file& m, const std::string& name) {
  const auto found = std::ranges::find(m.tables, name, &touched_table::name);
  return found == m.tables.end() ? nullptr : &*found;
}

} // namespace

simulated_tables tables_of(const registry& plugins, const case_config& c) {
  // With one sample, the most rows of a batch are those of a sample.
  const json described = ask_model(plugins, c, [](const model_instance& model) {
    json all = json::array();
    for (const rg_tensor& t : model.tensors()) {
      if (t.kind != RG_TENSOR_ROWS) continue;
      const auto rows = static_cast<std::uint64_t>(t.shape[0]);
      all.push_back({{"name", t.name}, {"rows", rows}, {"row", rg::storage_of(t) / rows}, {"draws", t.max_rows}});
    }
    return json{{"tables", all}, {"in_place", (model.info().flags & RG_MODEL_ROWS_IN_PLACE) != 0}};
  });
  simulated_tables tables;
  tables.in_place = described.at("in_place");
  for (const json& t : described.at("tables"))
    tables.all.push_back({t.at("name"), t.at("rows"), t.at("row"), t.at("draws")});
  return tables;
}

double different_rows(double exponent, std::uint64_t rows, double draws) {
  double sum = 0, different = 0;
  for_each_block(rows, [&](double k, double count) { sum += count * std::pow(k, -exponent); });
  for_each_block(rows, [&](double k, double count) {
    const double p = std::min(std::pow(k, -exponent) / sum, 1.0);
    different += count * -std::expm1(draws * std::log1p(-std::min(p, 1 - 1e-15)));
  });
  return different;
}

double exponent_of(double different, std::uint64_t rows, double draws) {
  double low = 0, high = largest_exponent; // more draws name the same row with a larger one
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (different_rows(middle, rows, draws) > different ? low : high) = middle;
  }
  return (low + high) / 2;
}

row_draws draws_of(const machine_file& m, const simulated_table& t, const case_config& c) {
  row_draws out;
  out.draws = t.draws;
  if (const touched_table* const known = measured(m, t.name)) {
    if (known->draws > 0) out.draws = static_cast<std::uint64_t>(known->draws);
    if (known->zipf) {
      out.exponent = *known->zipf;
      return out;
    }
    const double all = static_cast<double>(out.draws) * known->batch, most = std::min(all, static_cast<double>(t.rows));
    if (known->rows > most)
      throw failure(exit_code::usage,
                    fmt::format("model.plugin: the machine file has {:g} rows of table {} in a step of "
                                "{:g} samples: expected at most {:g}",
                                known->rows, t.name, known->batch, most));
    out.exponent = exponent_of(known->rows, t.rows, all);
  } else if (generated(c)) {
    out.exponent = t.rows < uniform_below ? 0 : c.data.zipf;
  } else {
    out.assumed = true;
  }
  return out;
}

double row_bytes_of_step(const machine_file& m, const simulated_tables& tables, const case_config& c, double batch) {
  double bytes = 0;
  for (const simulated_table& t : tables.all) {
    const row_draws d = draws_of(m, t, c);
    bytes += different_rows(d.exponent, t.rows, static_cast<double>(d.draws) * batch) * static_cast<double>(t.row) *
             sizeof(float);
  }
  return bytes;
}

void set_tables(const machine_file& m, const simulated_tables& tables, const case_config& c, std::uint64_t batch,
                simulation_setup& s) {
  struct drawn {
    zipf law;
    std::uint64_t draws; // of a step
  };
  std::vector<drawn> laws;
  for (const simulated_table& t : tables.all) {
    const row_draws d = draws_of(m, t, c);
    laws.push_back({zipf(t.rows, d.exponent), d.draws * batch});
    s.tables.push_back({static_cast<std::int64_t>(t.rows), static_cast<std::int64_t>(t.row),
                        std::min(t.rows, std::max<std::uint64_t>(d.draws * batch, 1))});
  }
  s.rows_in_place = tables.in_place;
  s.touches = [laws, seed = static_cast<std::uint64_t>(c.seed), constant = c.data.sample_source() == "constant"](
                  std::uint32_t worker, std::uint64_t step, std::uint32_t table, std::vector<std::uint64_t>& out) {
    const std::uint64_t of_step = rg::derive_seed(seed, constant ? 0 : step, table, rg::stream_data);
    const drawn& d = laws[table];
    out.resize(d.draws);
    for (std::uint64_t i = 0; i < d.draws; ++i) out[i] = d.law.at(of_step, worker * d.draws + i);
    std::ranges::sort(out);
    out.erase(std::unique(out.begin(), out.end()), out.end());
  };
}

} // namespace regatta
