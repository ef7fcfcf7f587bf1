// SPDX-License-Identifier: Apache-2.0
//
// Serves RG_EXT_AUTHENTICATE to one instance of a transport, with a right or a wrong secret.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <regatta/ext/authenticate.h>

namespace regatta::conformance {

// How the host of one rank computes MACs.
struct mac_plan {
  std::string secret = "secret of the run";
  std::size_t right_calls = SIZE_MAX; // number of calls of mac() that return right bytes; later ones return others
};

class authenticator {
public:
  explicit authenticator(mac_plan plan);
  authenticator(const authenticator&) = delete; // the table points to it
  authenticator& operator=(const authenticator&) = delete;

  const rg_authenticate& table() const { return table_; } // valid as long as this object
  // Returns the data of each call of mac() so far, in order. [any]
  std::vector<std::string> calls() const;

private:
  const mac_plan plan_;
  rg_authenticate table_;
  mutable std::mutex mutex_; // guards calls_: a transport may connect in several threads
  std::vector<std::string> calls_;
};

} // namespace regatta::conformance
