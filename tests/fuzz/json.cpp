// SPDX-License-Identifier: Apache-2.0
//
// JSON and CBOR of others, the record of a rank, and a whole records.jsonl.
#include "base/json.hpp"
#include "base/failure.hpp"
#include "input.hpp"
#include "measure/rank_record.hpp"
#include "report/record_file.hpp"
#include "results/run_figures.hpp"

#include "../core/config/config_catalogue.hpp"

using namespace regatta;

namespace {

void read_record(const nlohmann::json& j) {
  const rank_record r = record_from_json(j);
  const nlohmann::json again = to_json(r);
  (void)again.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

} // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::input in(data, size);
  const auto kind = in.number<std::uint8_t>() % 3;
  const std::string text = in.text();
  try {
    if (kind == 0) read_record(parse_json(text));
    if (kind == 1) read_record(parse_cbor({reinterpret_cast<const std::uint8_t*>(text.data()), text.size()}));
    if (kind == 2) {
      static const scratch_folder folder;
      record_file(folder.write("records.jsonl", text)).read([](nlohmann::json&& j) {
        read_record(j.at("ranks").at(0));
      });
    }
  } catch (const failure&) {
  } catch (const nlohmann::json::exception&) { // of a member that is missing, as the contract has it
  }
  return 0;
}
