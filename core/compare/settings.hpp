// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

namespace regatta {

// [any] Returns the settings of a case by key ("train.batch"): those of the experiment, with the case's own values. It
// leaves out the name and the file of the experiment, and parameters of a plugin that the sweep varies, which the
// result does not have for each case.
std::map<std::string, nlohmann::json> settings_of(const nlohmann::json& document, const nlohmann::json& entry);

// [any] Returns how two cases differ, one text for each difference: in settings ("train.batch: 32 -> 64"), in parts of
// the fingerprint that `a` has ("fingerprint: model differs", also where a setting shows the cause), in the machine,
// and in Regatta's git state and build.
std::vector<std::string> differences_of(const nlohmann::json& document_a, const nlohmann::json& a,
                                        const nlohmann::json& document_b, const nlohmann::json& b);

// [any] Returns those of comparable_parts() in which the fingerprints of two entries differ.
std::vector<std::string> parts_apart(const nlohmann::json& a, const nlohmann::json& b);

// [any] Returns the pairs of cases (positions under "results") of two results that have the same values of all keys
// that either sweeps. If each has one case only, these two are a pair.
std::vector<std::pair<std::size_t, std::size_t>> matching_cases(const nlohmann::json& a, const nlohmann::json& b);

} // namespace regatta
