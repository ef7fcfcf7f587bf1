// SPDX-License-Identifier: Apache-2.0
#include "control/handshake.hpp"

#include <algorithm>
#include <array>

#include "base/failure.hpp"
#include "control/crypto.hpp"

namespace regatta {

namespace {

constexpr std::array<std::uint8_t, 4> challenge_magic{'R', 'G', 'T', '1'};
constexpr std::size_t nonce_bytes = 32;
constexpr const char* role_of_rank = "regatta control 1: rank to coordinator";
constexpr const char* role_of_coordinator = "regatta control 1: coordinator to rank";

using rank_bytes = std::array<std::uint8_t, 4>;

rank_bytes encode(std::uint32_t rank) {
  return {static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(rank >> 8), static_cast<std::uint8_t>(rank >> 16),
          static_cast<std::uint8_t>(rank >> 24)};
}

digest proof(const blob& secret, const char* role, bytes_view nonce_c, bytes_view nonce_r, const rank_bytes& rank) {
  return hmac_sha256(secret, {bytes_of(role), nonce_c, nonce_r, rank});
}

} // namespace

asio::awaitable<proven_rank> admit_rank(tcp::socket& socket, std::span<const blob> secrets, bool& proven) {
  const blob nonce_c = random_bytes(nonce_bytes);
  const std::array<asio::const_buffer, 2> challenge{asio::buffer(challenge_magic), asio::buffer(nonce_c)};
  co_await asio::async_write(socket, challenge, asio::use_awaitable);

  rank_bytes rank{};
  digest nonce_r{}, answer{};
  const std::array<asio::mutable_buffer, 3> parts{asio::buffer(rank), asio::buffer(nonce_r), asio::buffer(answer)};
  co_await asio::async_read(socket, parts, asio::use_awaitable);
  std::size_t known = secrets.size();
  for (std::size_t i = 0; i < secrets.size(); ++i)
    if (equal_in_constant_time(answer, proof(secrets[i], role_of_rank, nonce_c, nonce_r, rank))) known = i;
  if (known == secrets.size())
    throw failure(exit_code::run, "expected proof of this run's secret, got none: it is no rank of this run");
  proven = true;

  const digest ours = proof(secrets[known], role_of_coordinator, nonce_c, nonce_r, rank);
  co_await asio::async_write(socket, asio::buffer(ours), asio::use_awaitable);
  const std::uint32_t number = std::uint32_t{rank[0]} | std::uint32_t{rank[1]} << 8 | std::uint32_t{rank[2]} << 16 |
                               std::uint32_t{rank[3]} << 24;
  co_return proven_rank{number, known};
}

asio::awaitable<void> prove_rank(tcp::socket& socket, const blob& secret, std::uint32_t rank) {
  std::array<std::uint8_t, challenge_magic.size() + nonce_bytes> challenge{};
  co_await asio::async_read(socket, asio::buffer(challenge), asio::use_awaitable);
  if (!std::equal(challenge_magic.begin(), challenge_magic.end(), challenge.begin()))
    throw failure(exit_code::run, "expected a coordinator of this version of regatta, got another protocol");

  const auto nonce_c = bytes_view(challenge).subspan(challenge_magic.size());
  const blob nonce_r = random_bytes(nonce_bytes);
  const rank_bytes number = encode(rank);
  const digest answer = proof(secret, role_of_rank, nonce_c, nonce_r, number);
  const std::array<asio::const_buffer, 3> parts{asio::buffer(number), asio::buffer(nonce_r), asio::buffer(answer)};
  co_await asio::async_write(socket, parts, asio::use_awaitable);

  digest theirs{};
  boost::system::error_code ended;
  co_await asio::async_read(socket, asio::buffer(theirs), asio::redirect_error(asio::use_awaitable, ended));
  if (ended == asio::error::eof || ended == asio::error::connection_reset)
    throw proof_refused(exit_code::run, "the coordinator has not accepted this process's proof of the secret");
  if (ended) throw boost::system::system_error(ended);
  if (!equal_in_constant_time(theirs, proof(secret, role_of_coordinator, nonce_c, nonce_r, number)))
    throw failure(exit_code::run, "expected proof of this run's secret, got none: it is another run's coordinator");
}

} // namespace regatta
