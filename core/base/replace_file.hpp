// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <string_view>

namespace regatta {

// Writes `bytes` to a new file beside `path` and renames it to `path`: readers see the old file, the new one, or none.
// The new file's name is random and is never opened through a link, so that nobody who may write the folder can redirect
// it. Returns whether it worked; errno says why not, and nothing stays behind. [any]
bool replace_file(const std::filesystem::path& path, std::string_view bytes);

} // namespace regatta
