// SPDX-License-Identifier: Apache-2.0
//
// The rows of sparse tables that simulated workers touch: drawn from Zipf's law, since no data is read. A sample draws
// as many rows as the model says; row k has a probability proportional to (k + 1)^-exponent.
#pragma once

#include "campaign/plugin_facts.hpp"
#include "simulate/machine_file.hpp"
#include "simulator/simulation.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace regatta {

// A sparse table of a model.
struct simulated_table {
  std::string name;
  std::uint64_t rows = 0, row = 0; // elements of a row
  std::uint64_t draws = 0;         // rows that a sample names, at most
};
struct simulated_tables {
  std::vector<simulated_table> all;
  bool in_place = false; // the model reads rows where they lie
};

inline const simulated_tables no_tables;

// [main] Returns the sparse tables of the case's model, which a child process describes. Throws failure as
// plugin_facts_cache::of() does.
simulated_tables tables_of(const registry& plugins, const case_config& c);

// [any] Returns the number of different rows of `rows` that `draws` draws with this exponent name, in the mean.
double different_rows(double exponent, std::uint64_t rows, double draws);
// [any] Returns the exponent from 0 to 10 with which `draws` draws name `different` different rows in the mean.
double exponent_of(double different, std::uint64_t rows, double draws);

// How the rows of a table are drawn.
struct row_draws {
  double exponent = 1;
  std::uint64_t draws = 0; // of a sample
  bool assumed = false;    // nothing says how often the rows of this data occur: the exponent is 1
};
// [any] Returns how the rows of a table are drawn: as the machine file says, else as the data is generated. Throws
// failure (usage) if the machine file measured more rows than can be.
row_draws draws_of(const machine_file& m, const simulated_table& t, const case_config& c);

// [any] Returns the mean bytes of the values of all rows that a worker touches in a step.
double row_bytes_of_step(const machine_file& m, const simulated_tables& tables, const case_config& c, double batch);

// [any] Sets the tables of a simulation, and the function that draws their rows: other ones for each worker and step,
// except that with data.source = "constant" a worker's are the same in every step.
void set_tables(const machine_file& m, const simulated_tables& tables, const case_config& c, std::uint64_t batch,
                simulation_setup& s);

} // namespace regatta
