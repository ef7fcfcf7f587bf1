// SPDX-License-Identifier: Apache-2.0
//
// Frames of the control channel one at a time, for a connection that is used in turn by both ends.
#pragma once

#include <chrono>
#include <optional>

#include "base/descriptor.hpp"
#include "control/channel.hpp"

namespace regatta {

// Sends one frame, and returns once it was passed to the kernel, or can no longer be sent: that the connection has
// ended only a later receive_frame() tells. Throws failure (run) if `socket` is none, or the frame exceeds the limits
// of control/channel.hpp.
void send_frame(const unique_fd& socket, const nlohmann::json& header, blob payload = {});
// Receives one frame; std::nullopt if none began within `limit`. Throws failure (run) if the connection has ended or
// the bytes are no frame.
std::optional<message> receive_frame(const unique_fd& socket,
                                     std::chrono::milliseconds limit = std::chrono::milliseconds::max());

} // namespace regatta
