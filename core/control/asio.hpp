// SPDX-License-Identifier: Apache-2.0
//
// Includes the parts of Boost.Asio that the control channel uses.
#pragma once

#include <utility> // Boost 1.74's coroutine support uses std::exchange without including it

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>

namespace regatta {

namespace asio = boost::asio;
using tcp = asio::ip::tcp;

} // namespace regatta
