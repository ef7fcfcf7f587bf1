// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.hpp"

#include "base/text.hpp"
#include "compare/samples.hpp"
#include "compare/settings.hpp"
#include "measure/statistics.hpp"
#include "report/fields.hpp"
#include "report/result_checks.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;
using values = std::vector<double>;

constexpr double level = 1 - usual_confidence;

values logarithms(const values& samples) {
  values logs;
  for (const double x : samples) logs.push_back(std::log(x));
  return logs;
}

bool constant(const values& samples) {
  return std::all_of(samples.begin(), samples.end(), [&](double x) { return x == samples.front(); });
}

std::string name_of_case(const json& entry) {
  std::string name;
  for (const auto& [key, value] : entry.at("case").items())
    name += (name.empty() ? "" : ", ") + short_name(key) + " " + plain_text(value);
  return name.empty() ? "its only case" : name;
}

// Tests b against a. `paired`: repeat i of both ran in the same round.
compared_figure test(const std::string& path, const values& a, const values& b, bool paired) {
  compared_figure f;
  f.path = path;
  f.a = *median(a);
  f.b = *median(b);
  f.repeats = std::min(a.size(), b.size());
  const bool repeated = a.size() > 1 && b.size() > 1; // else it is unknown whether the value varies
  if (constant(a) && constant(b) && (repeated || f.a == f.b)) {
    const double ratio = f.b / f.a;
    f.ratio = {ratio, ratio, ratio, 1};
    return f;
  }
  const values of_a = logarithms(a), of_b = logarithms(b);
  interval shift;
  if (paired && a.size() == b.size()) {
    values differences;
    for (std::size_t i = 0; i < a.size(); ++i) differences.push_back(of_b[i] - of_a[i]);
    shift = *paired_shift(differences);
    f.p = paired_p(differences);
  } else {
    shift = *unpaired_shift(of_b, of_a);
    f.p = unpaired_p(of_b, of_a);
  }
  f.ratio = {std::exp(shift.estimate), std::exp(shift.low), std::exp(shift.high), shift.coverage};
  return f;
}

const figure_kind& kind_of(const std::string& path) {
  const auto& all = compared_figures();
  return *std::find_if(all.begin(), all.end(), [&](const figure_kind& k) { return path == k.path; });
}

// Says how far B is from A, as a share of A: "4.1 to 6.3 %"; from twice or half on, as a factor: "2.10 to 2.32 times".
std::string amount(const interval& ratio) {
  const bool more = ratio.estimate > 1;
  const double low = more ? ratio.low : 1 / ratio.high, high = more ? ratio.high : 1 / ratio.low;
  const bool exact = ratio.low == ratio.high;
  if (high >= 2) return exact ? fmt::format("{:.2f} times", high) : fmt::format("{:.2f} to {:.2f} times", low, high);
  const double from = 100 * (more ? ratio.low - 1 : 1 - ratio.high), to = 100 * (more ? ratio.high - 1 : 1 - ratio.low);
  return exact ? fmt::format("{:.2g} %", to) : fmt::format("{:.1f} to {:.1f} %", from, to);
}

// Says what the interval of a significant difference means: "B is 4.1 to 6.3 % faster".
std::string difference_text(const figure_kind& kind, const interval& ratio) {
  const bool better = (ratio.estimate > 1) == kind.more_is_better;
  return fmt::format("B is {} {}", amount(ratio), better ? kind.better : kind.worse);
}

void decide(compared_figure& f, std::size_t tests, bool paired) {
  const figure_kind& kind = kind_of(f.path);
  const auto side = [&] { return (f.ratio.estimate > 1) == kind.more_is_better; };
  if (!f.p) {
    f.outcome = f.ratio.estimate == 1 ? outcome_of_test::equal
                : side()              ? outcome_of_test::better
                                      : outcome_of_test::worse;
    f.verdict = f.ratio.estimate == 1 ? "equal in every repeat" : difference_text(kind, f.ratio);
    return;
  }
  const std::size_t fewest = paired ? fewest_pairs(tests) : fewest_unpaired(tests);
  if (*f.p <= level) {
    f.outcome = side() ? outcome_of_test::better : outcome_of_test::worse;
    f.verdict = difference_text(kind, f.ratio);
  } else if (f.repeats < fewest) {
    f.outcome = outcome_of_test::undecided;
    f.needed = fewest;
    f.verdict =
        fmt::format("cannot be decided with {} repeat{}: {} would do", f.repeats, f.repeats == 1 ? "" : "s", fewest);
  } else {
    f.outcome = outcome_of_test::alike;
    const double bound = std::max(f.ratio.high, 1 / f.ratio.low) - 1;
    f.verdict = fmt::format("no difference above {:.1f} %", 100 * bound);
  }
}

bool has_16_bit_gradients(const json& document, const json& entry) {
  const auto settings = settings_of(document, entry);
  const auto setting = [&](const std::string& key) {
    const auto found = settings.find(key);
    return found == settings.end() ? json() : found->second;
  };
  const auto is_16_bit = [](const json& type) { return type == "bf16" || type == "fp16"; };
  // Where the sweep varies the strategy, its parameters stand under its id.
  const json id = setting("strategy.plugin");
  const json given = document.at("context").value("given", json::object()).value("strategy", json::object());
  const json own = id.is_string() ? given.value(id.get<std::string>(), json::object()) : json::object();
  return is_16_bit(setting("train.precision")) || is_16_bit(setting("strategy.wire")) ||
         is_16_bit(own.value("wire", json()));
}

// A strategy that compresses trains differently, so its samples/s alone are no speed-up: the comparison must be with
// 16-bit gradients, which any strategy can send, and must end at the same loss.
void restrict_compression(compared_case& c, const json& document_a, const json& a, const json& document_b,
                          const json& b) {
  const auto lossy = [](const json& entry) { return entry.value("lossy", json()) == true; };
  if (lossy(a) == lossy(b)) return;
  const json of_a = a.value("loss", json()), of_b = b.value("loss", json());
  std::vector<std::string> missing;
  if (!(lossy(b) ? has_16_bit_gradients(document_a, a) : has_16_bit_gradients(document_b, b)))
    missing.push_back("a baseline that sends gradients in 16 bits (train.precision, or the strategy's wire)");
  const bool losses =
      of_a.is_object() && of_b.is_object() && of_a.at("last").is_number() && of_b.at("last").is_number();
  bool reached = false;
  if (losses) {
    const double target = std::max(of_a["last"].get<double>(), of_b["last"].get<double>());
    const values x = seconds_to_loss(a, target), y = seconds_to_loss(b, target);
    if ((reached = !x.empty() && !y.empty())) {
      c.figures.push_back(test("seconds_to_loss", x, y, false));
      c.notes.push_back(fmt::format("seconds_to_loss: until the loss was {:.4g}, which both reach", target));
    }
  }
  if (!reached) missing.push_back("a loss that both reach within the timed region");
  if (missing.empty()) return;
  c.notes.push_back("one side compresses gradients, so samples/s are no speed-up without " + join(missing, " and "));
  std::erase_if(c.figures, [](const compared_figure& f) {
    return f.path == "samples_per_second" || f.path == "efficiency" || f.path == "step_seconds";
  });
}

compared_case compare_cases(const compared_result& result_a, const json& a, const compared_result& result_b,
                            const json& b, const std::vector<std::string>& across) {
  compared_case c;
  c.a = fmt::format("{} ({})", result_a.name, name_of_case(a));
  c.b = fmt::format("{} ({})", result_b.name, name_of_case(b));
  c.differences = differences_of(result_a.document, a, result_b.document, b);
  if (!has_figures(a) || !has_figures(b)) {
    c.refused = fmt::format("{} has no figures", has_figures(a) ? "B" : "A");
    return c;
  }
  std::vector<std::string> apart;
  const json of_a = a.value("fingerprint", json::object()), of_b = b.value("fingerprint", json::object());
  for (const std::string& part : comparable_parts())
    if (of_a.value(part, json()) != of_b.value(part, json())) {
      const bool admitted = std::find(across.begin(), across.end(), part) != across.end();
      if (admitted)
        c.notes.push_back(fmt::format("{} differs, as --across admits", part));
      else
        apart.push_back(part);
    }
  if (!apart.empty()) {
    c.refused = fmt::format("they do different work: {} differ{}; --across {} compares them all the same",
                            join(apart, " and "), apart.size() == 1 ? "s" : "", join(apart, ","));
    return c;
  }
  const bool paired = &result_a == &result_b;
  for (const figure_kind& kind : compared_figures()) {
    values x, y;
    if (std::string(kind.path) == "loss") {
      if (const auto step = last_common_step(a, b)) {
        x = losses_at(a, *step);
        y = losses_at(b, *step);
        if (!x.empty() && !y.empty()) c.notes.push_back(fmt::format("loss: of step {}, counted from 0", *step));
      }
    } else {
      x = samples_of(a, kind.path);
      y = samples_of(b, kind.path);
    }
    if (!x.empty() && !y.empty()) c.figures.push_back(test(kind.path, x, y, paired));
  }
  restrict_compression(c, result_a.document, a, result_b.document, b);
  return c;
}

} // namespace

const std::vector<figure_kind>& compared_figures() {
  static const std::vector<figure_kind> kinds = {
      {"samples_per_second", true, "faster", "slower"}, {"efficiency", true, "more efficient", "less efficient"},
      {"step_seconds", false, "shorter", "longer"},     {"bytes.sent_per_step", false, "less", "more"},
      {"memory_peak_bytes", false, "less", "more"},     {"loss", false, "lower", "higher"},
      {"seconds_to_loss", false, "faster", "slower"}};
  return kinds;
}

const std::vector<std::string>& comparable_parts() {
  static const std::vector<std::string> parts = {"model", "data", "optimizer", "precision", "synchrony"};
  return parts;
}

comparison compare(const std::vector<compared_result>& results, const std::vector<std::string>& across) {
  comparison all;
  const compared_result& first = results.front();
  const bool within = all.paired = results.size() == 1;
  if (within) {
    const json& entries = first.document.at("results");
    for (std::size_t i = 1; i < entries.size(); ++i)
      all.cases.push_back(compare_cases(first, entries.front(), first, entries[i], across));
  }
  for (std::size_t r = 1; r < results.size(); ++r) {
    const json &of_a = first.document.at("results"), &of_b = results[r].document.at("results");
    const auto pairs = matching_cases(first.document, results[r].document);
    for (const auto& [i, k] : pairs) all.cases.push_back(compare_cases(first, of_a[i], results[r], of_b[k], across));
    const auto unmatched = [&](const compared_result& result, const json& entries, auto position) {
      for (std::size_t i = 0; i < entries.size(); ++i)
        if (std::none_of(pairs.begin(), pairs.end(), [&](const auto& pair) { return position(pair) == i; }))
          all.unmatched.push_back(fmt::format("{} ({})", result.name, name_of_case(entries[i])));
    };
    unmatched(first, of_a, [](const auto& pair) { return pair.first; });
    unmatched(results[r], of_b, [](const auto& pair) { return pair.second; });
  }
  std::vector<compared_figure*> tested;
  for (compared_case& c : all.cases)
    for (compared_figure& f : c.figures)
      if (f.p) tested.push_back(&f);
  values p;
  for (const compared_figure* f : tested) p.push_back(*f->p);
  const values adjusted = holm(p);
  for (std::size_t i = 0; i < tested.size(); ++i) tested[i]->p = adjusted[i];
  all.tests = tested.size();
  for (compared_case& c : all.cases)
    for (compared_figure& f : c.figures) decide(f, std::max<std::size_t>(all.tests, 1), within);
  return all;
}

} // namespace regatta
