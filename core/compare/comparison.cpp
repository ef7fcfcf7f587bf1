// SPDX-License-Identifier: Apache-2.0
#include "compare/comparison.hpp"

#include "base/text.hpp"
#include "compare/compression.hpp"
#include "compare/ratio_samples.hpp"
#include "compare/samples.hpp"
#include "compare/settings.hpp"
#include "report/fields.hpp"
#include "report/result_checks.hpp"
#include "results/statistics.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace regatta {
namespace {

using nlohmann::json;
using values = std::vector<double>;

constexpr double level = 1 - usual_confidence;

std::string name_of_case(const json& entry) {
  std::string name;
  for (const auto& [key, value] : entry.at("case").items())
    name += (name.empty() ? "" : ", ") + short_name(key) + " " + plain_text(value);
  return name.empty() ? "its only case" : name;
}

// Tests b against a. `paired`: repeat i of both ran in the same round.
compared_figure test(const std::string& path, const values& a, const values& b, bool paired) {
  const ratio_samples samples(a, b, paired);
  compared_figure f;
  f.path = path;
  f.a = *median(a);
  f.b = *median(b);
  f.repeats = samples.repeats();
  f.paired = samples.paired();
  f.ratio = samples.ratio();
  if (!samples.exact()) f.p = samples.p(1);
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

void decide(compared_figure& f, std::size_t tests) {
  const figure_kind& kind = kind_of(f.path);
  const auto side = [&] { return (f.ratio.estimate > 1) == kind.more_is_better; };
  if (!f.p) {
    f.outcome = f.ratio.estimate == 1 ? outcome_of_test::equal
                : side()              ? outcome_of_test::better
                                      : outcome_of_test::worse;
    f.verdict = f.ratio.estimate == 1 ? "equal in every repeat" : difference_text(kind, f.ratio);
    return;
  }
  const std::size_t fewest = f.paired ? fewest_pairs(tests) : fewest_unpaired(tests);
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

void restrict_compression(compared_case& c, const json& document_a, const json& a, const json& document_b,
                          const json& b, bool paired) {
  const auto rules = rules_of_compression(document_a, a, document_b, b);
  if (!rules) return;
  if (rules->loss) {
    c.figures.push_back(
        test("seconds_to_loss", seconds_to_loss(a, *rules->loss), seconds_to_loss(b, *rules->loss), paired));
    c.notes.push_back(fmt::format("seconds_to_loss: until the loss was {:.4g}, which both reach", *rules->loss));
  }
  if (rules->missing.empty()) return;
  c.notes.push_back(rules->missing);
  std::erase_if(c.figures, [](const compared_figure& f) { return is_speed(f.path); });
}

// Times to a target are compared only if both have the same one and all repeats reached it: how long the others would
// have taken is unknown.
void restrict_targets(compared_case& c, const json& a, const json& b) {
  const auto drop = [&](const std::string& why) {
    c.notes.push_back(why);
    std::erase_if(c.figures, [](const compared_figure& f) { return f.path.ends_with("_to_target"); });
  };
  const json of_a = a.value("target", json()), of_b = b.value("target", json());
  if (!of_a.is_object() || !of_b.is_object()) return;
  for (const char* member : {"metric", "value", "side"})
    if (of_a.at(member) != of_b.at(member)) return drop("the targets differ, so the times to them are not compared");
  const std::size_t in_a = of_a.at("reached"), in_b = of_b.at("reached"), n_a = a.at("repeats").size(),
                    n_b = b.at("repeats").size();
  if (in_a == n_a && in_b == n_b) return;
  drop(fmt::format("{} of {} repeats of A and {} of {} of B reached the target: the time to it is compared if all do",
                   in_a, n_a, in_b, n_b));
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
  if (a.value("simulated", false) != b.value("simulated", false)) {
    c.refused = fmt::format("{} is simulated, {} is measured: set them side by side, as docs/simulation.md does",
                            a.value("simulated", false) ? "A" : "B", a.value("simulated", false) ? "B" : "A");
    return c;
  }
  std::vector<std::string> apart;
  for (const std::string& part : parts_apart(a, b))
    if (std::find(across.begin(), across.end(), part) != across.end())
      c.notes.push_back(fmt::format("{} differs, as --across admits", part));
    else
      apart.push_back(part);
  if (!apart.empty()) {
    c.refused = fmt::format("they do different work: {} differ{}; --across {} compares them all the same",
                            join(apart, " and "), apart.size() == 1 ? "s" : "", join(apart, ","));
    return c;
  }
  const bool paired = &result_a == &result_b && in_the_same_rounds(a, b);
  for (const figure_kind& kind : compared_figures()) {
    const samples_of_two of = samples_of_both(a, b, kind.path);
    if (of.a.empty() || of.b.empty()) continue;
    if (!of.note.empty()) c.notes.push_back(of.note);
    c.figures.push_back(test(kind.path, of.a, of.b, paired));
  }
  restrict_targets(c, a, b);
  restrict_compression(c, result_a.document, a, result_b.document, b, paired);
  return c;
}

} // namespace

comparison compare(const std::vector<compared_result>& results, const std::vector<std::string>& across) {
  comparison all;
  const compared_result& first = results.front();
  if (results.size() == 1) {
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
    for (compared_figure& f : c.figures) decide(f, std::max<std::size_t>(all.tests, 1));
  return all;
}

} // namespace regatta
