// SPDX-License-Identifier: Apache-2.0
//
// Compares stored results (schema regatta.result/1) case by case. Pure functions of the documents.
//
// A comparison takes the values of single repeats and their natural logarithms, so that twice and half are equally far
// from "no difference". Repeats of two results are independent samples; cases of one result ran in the same rounds, so
// their repeats are pairs. The estimate is Hodges and Lehmann's shift with its exact interval, the test the rank-sum or
// the signed-rank test, adjusted by Holm over everything that is compared at once (results/inference.hpp).
#pragma once

#include "results/compared.hpp"
#include "results/inference.hpp"

#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

struct compared_result {
  std::string name; // as the user gave it
  nlohmann::json document;
};

enum class outcome_of_test {
  equal,     // neither side varies between its repeats, and both have the same value
  better,    // B is better: the difference is significant, or neither side varies and their values differ
  worse,     // B is worse, in the same sense
  alike,     // no significant difference; the interval bounds it
  undecided, // too few repeats for any difference to be significant
};

// One figure of a case in A and B.
struct compared_figure {
  std::string path;        // "samples_per_second"
  double a = 0, b = 0;     // medians over the repeats
  std::size_t repeats = 0; // of the side that has fewer
  bool paired = false;     // tested by pairs of repeats of one round
  std::size_t needed = 0;  // if undecided: repeats of each side with which a difference can be significant
  interval ratio;          // B / A
  std::optional<double> p; // adjusted; std::nullopt: not tested, because neither side varies
  outcome_of_test outcome = outcome_of_test::undecided;
  std::string verdict; // in words
};

struct compared_case {
  std::string a, b;                     // names of result and case
  std::vector<std::string> differences; // of settings and fingerprints: "train.batch: 32 -> 64"
  std::string refused;                  // why the case is not compared; empty: it is
  std::vector<std::string> notes;       // what restricts the verdicts
  std::vector<compared_figure> figures;
};

struct comparison {
  std::vector<compared_case> cases;
  std::vector<std::string> unmatched; // cases that only one result has
  std::size_t tests = 0;              // how many p-values were adjusted together
};

// Compares the first result (at least one) with each other one; with one result, its first case with its other cases.
// `across` names the parts of the fingerprint that may differ, of comparable_parts(). Throws nlohmann::json::exception
// if a document is no result.
comparison compare(const std::vector<compared_result>& results, const std::vector<std::string>& across);

} // namespace regatta
