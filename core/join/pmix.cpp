// SPDX-License-Identifier: Apache-2.0
#include "join/pmix.hpp"

#include "base/failure.hpp"
#include "base/text.hpp"

#include <fmt/format.h>

#ifdef REGATTA_HAS_PMIX

#include <algorithm>
#include <cstring>
#include <iterator>
#include <string_view>
#include <type_traits>

#include <dlfcn.h>
#include <pmix.h>

namespace regatta {
namespace {

// The functions of libpmix that are used here.
struct pmix_library {
  decltype(&PMIx_Init) init;
  decltype(&PMIx_Finalize) finalize;
  decltype(&PMIx_Put) put;
  decltype(&PMIx_Commit) commit;
  decltype(&PMIx_Fence) fence;
  decltype(&PMIx_Get) get;
  decltype(&PMIx_Error_string) error_string;
};

// Loads the library once; it stays loaded, because its thread may run until the process ends.
const pmix_library& library() {
  static const pmix_library loaded = [] {
    void* const file = ::dlopen("libpmix.so.2", RTLD_NOW | RTLD_GLOBAL); // its components need its symbols
    if (!file)
      throw failure(exit_code::usage,
                    fmt::format("cannot load PMIx, by which the launcher's processes meet: {}. Install "
                                "libpmix2",
                                one_line(::dlerror())));
    pmix_library l{};
    const auto find = [&](auto& function, const char* name) {
      function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(file, name));
      if (!function)
        throw failure(exit_code::usage, fmt::format("libpmix.so.2 has no {}: expected PMIx 3 or later", name));
    };
    find(l.init, "PMIx_Init");
    find(l.finalize, "PMIx_Finalize");
    find(l.put, "PMIx_Put");
    find(l.commit, "PMIx_Commit");
    find(l.fence, "PMIx_Fence");
    find(l.get, "PMIx_Get");
    find(l.error_string, "PMIx_Error_string");
    return l;
  }();
  return loaded;
}

void expect(pmix_status_t status, const char* what) {
  if (status != PMIX_SUCCESS)
    throw failure(exit_code::run, fmt::format("PMIx, which the launcher serves: {}: {}", what,
                                              one_line(library().error_string(status))));
}

// Fills one of libpmix's arrays of characters; the rest stays zero.
template <std::size_t Size> void copy_name(char (&to)[Size], std::string_view from) {
  std::memcpy(to, from.data(), std::min(from.size(), Size - 1));
}

pmix_proc_t process_of(const std::string& space, pmix_rank_t rank) {
  pmix_proc_t p{};
  copy_name(p.nspace, space);
  p.rank = rank;
  return p;
}

// Returns an attribute without value.
pmix_info_t attribute(const char* key, pmix_data_type_t type) {
  pmix_info_t info{};
  copy_name(info.key, key);
  info.value.type = type;
  return info;
}

} // namespace

// Values that PMIx_Get() returns are not freed: which function frees them depends on PMIx's version, and they are few.

pmix_exchange::pmix_exchange() {
  const pmix_library& pmix = library();
  pmix_proc_t self{};
  expect(pmix.init(&self, nullptr, 0), "cannot reach its server");
  space_ = self.nspace;
  rank_ = self.rank;
  try {
    const pmix_proc_t job = process_of(space_, PMIX_RANK_WILDCARD);
    pmix_value_t* value = nullptr;
    expect(pmix.get(&job, PMIX_JOB_SIZE, nullptr, 0, &value), "no number of processes");
    size_ = value->type == PMIX_UINT32 ? value->data.uint32 : 0;
    if (rank_ >= size_)
      throw failure(exit_code::run, fmt::format("PMIx, which the launcher serves: process {} of {} in job {}", rank_,
                                                size_, one_line(space_)));
  } catch (...) {
    pmix.finalize(nullptr, 0);
    throw;
  }
}

pmix_exchange::~pmix_exchange() {
  library().finalize(nullptr, 0);
}

std::string pmix_exchange::broadcast(const std::string& text, int seconds) {
  const pmix_library& pmix = library();
  const std::string key = fmt::format("regatta.{}", broadcasts_++);
  if (rank_ == 0) {
    pmix_value_t value{};
    value.type = PMIX_STRING;
    value.data.string = const_cast<char*>(text.c_str()); // copied
    expect(pmix.put(PMIX_GLOBAL, key.c_str(), &value), "cannot publish");
    expect(pmix.commit(), "cannot publish");
  }
  pmix_info_t options[] = {attribute(PMIX_COLLECT_DATA, PMIX_BOOL), attribute(PMIX_TIMEOUT, PMIX_INT)};
  options[0].value.data.flag = true;
  options[1].value.data.integer = seconds;
  const pmix_proc_t all = process_of(space_, PMIX_RANK_WILDCARD), first = process_of(space_, 0);
  expect(pmix.fence(&all, 1, options, std::size(options)), "waiting for all processes");
  pmix_value_t* value = nullptr;
  expect(pmix.get(&first, key.c_str(), nullptr, 0, &value), "no answer from process 0");
  if (value->type != PMIX_STRING || !value->data.string)
    throw failure(exit_code::run, "PMIx, which the launcher serves: expected a text from process 0");
  return value->data.string;
}

} // namespace regatta

#else

namespace regatta {

pmix_exchange::pmix_exchange() {
  throw failure(exit_code::usage, "this build is without PMIx, by which the launcher's processes meet: install "
                                  "libpmix-dev and build again");
}

pmix_exchange::~pmix_exchange() = default;

std::string pmix_exchange::broadcast(const std::string& text, int) {
  return text;
}

} // namespace regatta

#endif
