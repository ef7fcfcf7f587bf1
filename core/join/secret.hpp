// SPDX-License-Identifier: Apache-2.0
//
// The secret of a launch, by which its processes prove to each other that they belong together.
#pragma once

#include "control/crypto.hpp"

#include <string>

namespace regatta {

// Returns the secret of a launch from the file that REGATTA_SECRET_FILE names: a hash of its bytes without the newlines
// at its end. The file is followed if it is a link, as files of Kubernetes' secrets are. Throws failure (usage), which
// names the file but never shows any of it, if
// - it is missing, cannot be read, or is no regular file;
// - it belongs to another user than this process's or root;
// - others than its owner may read or change it (mode & 077). A file on a tmpfs, or on a file system that is mounted
//   read-only, may be readable by its group: Kubernetes mounts secrets so for pods with an fsGroup. Then it must still
//   be closed to all others (mode & 037);
// - it has fewer than 32 bytes or more than 4096, without the newlines at its end. [any]
digest read_secret(const std::string& file);

} // namespace regatta
