// SPDX-License-Identifier: Apache-2.0
//
// Frames of the control channel one at a time, for a connection that is used in turn by both ends.
#pragma once

#include <chrono>
#include <optional>

#include "base/descriptor.hpp"
#include "control/channel.hpp"

namespace regatta {

// Sends one frame, and returns once it was passed to the kernel. Throws failure (run) if the connection has ended.
void send_frame(const unique_fd& socket, const nlohmann::json& header, blob payload = {});
// Receives one frame; std::nullopt if none began within `limit`. Throws failure (run) if the connection has ended.
std::optional<message> receive_frame(const unique_fd& socket,
                                     std::chrono::milliseconds limit = std::chrono::milliseconds::max());

} // namespace regatta
