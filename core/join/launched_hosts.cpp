// SPDX-License-Identifier: Apache-2.0
#include "join/launched_hosts.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <set>
#include <utility>

#include "control/asio.hpp" // before any other of Asio's

#include <boost/asio/posix/stream_descriptor.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/console.hpp"
#include "base/failure.hpp"
#include "base/instruction_set.hpp"
#include "base/text.hpp"
#include "control/crypto.hpp"
#include "control/proven_acceptor.hpp"
#include "control/rank_arguments.hpp"
#include "join/codes.hpp"
#include "join/frames.hpp"
#include "join/identity.hpp"
#include "join/packets.hpp"
#include "join/placement.hpp"
#include "join/sockets.hpp"
#include "network/interfaces.hpp"
#include "registry/registry.hpp"
#include "text/values.hpp"

namespace regatta {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

constexpr auto join_limit = 60s;         // for all processes: a pod's name may be unknown for a while
constexpr auto notice_pause = 5s;        // between two lines that say who is missing
constexpr std::size_t most_refused = 16; // addresses that are shown
constexpr const char* same_on_all =
    "\ninstall the same one on all hosts, or allow the difference with --allow-different-binaries";
constexpr auto answer_limit = 60s; // for a request, such as to read files

// The agents and processes that join, until all have.
class gathering {
public:
  struct host {
    unique_fd socket;
    std::shared_ptr<channel> wire;
    json hello;
    std::vector<std::uint32_t> slots;
    std::map<std::uint32_t, json> programs; // by slot; as hello's "who"
  };

  gathering(launch_meeting& at, const launcher_environment& self)
      : self_(self), size_(self.size * self.slots), secret_(at.secret), code_used_(at.codes.size()),
        secrets_(secrets_of(at)),
        acceptor_(io_,
                  {secrets_, size_, [this](const proven_rank& who, tcp::socket& s) { return admit(who.secret, s); },
                   [this](asio::awaitable<void> c) { spawn(std::move(c)); },
                   [](const std::string& text) { print_error(fmt::format("regatta: {}\n", text)); },
                   [this](const std::string& address) {
                     if (refused_.size() < most_refused) refused_.insert(address);
                   }}) {
    acceptor_.adopt(std::move(at.port));
    local_.assign(at.local.release());
  }

  std::vector<std::unique_ptr<host>> wait() {
    acceptor_.begin();
    spawn(tell_local_agents());
    spawn(keep_time());
    io_.run();
    if (broken_) std::rethrow_exception(broken_);
    for (const auto& h : hosts_) h->wire.reset();
    return std::move(hosts_);
  }

private:
  void spawn(asio::awaitable<void> coroutine) {
    asio::co_spawn(io_, std::move(coroutine), [this](const std::exception_ptr& e) {
      if (!e) return;
      if (!broken_) broken_ = e;
      io_.stop();
    });
  }

  static std::vector<blob> secrets_of(const launch_meeting& from) {
    std::vector<blob> secrets{from.secret};
    for (const std::string& code : from.codes) secrets.push_back(secret_of_code(code));
    return secrets;
  }

  std::string admit(std::size_t secret, tcp::socket& socket) {
    if (secret > 0 && code_used_[secret - 1]) return "its code was used already, by another host";
    refused_.erase(peer_address(socket));
    auto& h = hosts_.emplace_back(std::make_unique<host>());
    h->socket = unique_fd(::fcntl(socket.native_handle(), F_DUPFD_CLOEXEC, 3));
    notice_lost_host(h->socket);
    h->wire = std::make_shared<channel>(std::move(socket));
    if (secret > 0) { // a host without a launcher learns its number and the secret
      code_used_[secret - 1] = true;
      const blob nonce = random_bytes(secret_bytes);
      h->wire->send({{"t", "welcome"},
                     {"job", self_.job},
                     {"slot", secret},
                     {"size", size_},
                     {"nonce", nonce},
                     {"secret", under_code(secrets_[secret], nonce, secret_)}});
    }
    spawn(serve(*h));
    return "";
  }

  asio::awaitable<void> serve(host& h) {
    try {
      for (;;) {
        message f = co_await h.wire->receive();
        const std::string type = f.header.at("t");
        if (type == "hello") h.hello = std::move(f.header);
        if (type != "joined") continue;
        h.slots.push_back(f.header.at("slot"));
        h.programs[h.slots.back()] = f.header.value("who", h.hello.at("who"));
        if (++joined_ < size_) continue;
        io_.stop();
        co_return; // another receive() could take the first bytes of an answer
      }
    } catch (const boost::system::system_error& e) {
      throw failure(exit_code::run, fmt::format("host {} left the launch while it began: {}",
                                                h.hello.value("host", "unknown"), e.code().message()));
    } catch (const json::exception& e) {
      throw failure(exit_code::run, fmt::format("host {}: its agent sent a frame with a missing or wrong member: {}",
                                                h.hello.value("host", "unknown"), e.what()));
    }
  }

  // Tells processes of this user on this host the port and the secret.
  asio::awaitable<void> tell_local_agents() {
    for (;;) {
      co_await local_.async_wait(asio::posix::stream_descriptor::wait_read, asio::use_awaitable);
      pid_t pid = -1;
      const unique_fd socket = accept_at(local_.native_handle(), pid);
      if (socket.get() < 0) continue;
      try {
        put(socket.get(), {{"port", acceptor_.port()}, {"secret", json::binary(secret_)}});
      } catch (const failure&) { // it is gone, and asks again if it lives
      }
    }
  }

  asio::awaitable<void> keep_time() {
    asio::steady_timer timer(io_);
    const bool by_hand = !code_used_.empty(); // people take their time
    for (auto waited = 0s; by_hand || waited < join_limit; waited += notice_pause) {
      timer.expires_after(notice_pause);
      co_await timer.async_wait(asio::use_awaitable);
      if (!by_hand) print_error(fmt::format("regatta: waiting for processes of {}: {}\n", self_.launcher, state()));
    }
    throw failure(exit_code::run, fmt::format("waited {} s for the processes of {}: {}{}{}", join_limit / 1s,
                                              self_.launcher, state(), self_.advice.empty() ? "" : "; ", self_.advice));
  }

  // Returns "2 of 4 have joined (n0: 0, 1); missing: 2, 3".
  std::string state() const {
    std::vector<bool> there(size_);
    std::map<std::vector<std::uint32_t>, std::string> hosts; // by their processes, to show them in order
    for (const auto& h : hosts_) {
      std::vector<std::uint32_t> slots = h->slots;
      std::ranges::sort(slots);
      for (const std::uint32_t s : slots)
        if (s < size_) there[s] = true;
      if (!slots.empty()) hosts[slots] = h->hello.value("host", "unknown");
    }
    std::string joined;
    for (const auto& [slots, name] : hosts)
      joined += fmt::format("{}{}: {}", joined.empty() ? "" : "; ", name, ranges_of(slots));
    std::vector<std::uint32_t> missing;
    for (std::uint32_t s = 0; s < size_; ++s)
      if (!there[s]) missing.push_back(s);
    // A stranger may be among them, so this does not end the wait.
    const std::string refused = refused_.empty()
                                    ? ""
                                    : fmt::format("; refused, because they did not prove the secret of this launch: {}",
                                                  fmt::join(refused_, ", "));
    return fmt::format("{} of {} have joined{}; missing: {}{}", joined_, size_,
                       joined.empty() ? "" : fmt::format(" ({})", joined), ranges_of(missing), refused);
  }

  const launcher_environment& self_;
  const std::uint32_t size_;
  const blob secret_;
  std::vector<bool> code_used_;
  const std::vector<blob> secrets_; // of the launch, then of each code
  asio::io_context io_{1};
  proven_acceptor acceptor_;
  asio::posix::stream_descriptor local_{io_};
  std::vector<std::unique_ptr<host>> hosts_;
  std::uint32_t joined_ = 0;
  std::set<std::string> refused_; // addresses of which no connection was accepted yet
  std::exception_ptr broken_;
};

// Adds a column for each program that runs on the host: first that of its agent, then those of other processes.
void add_programs(const gathering::host& h, const std::string& name, std::vector<std::string>& names,
                  std::vector<json>& programs) {
  struct group {
    json program;
    std::vector<std::uint32_t> slots;
  };
  std::vector<group> groups;
  groups.push_back({h.hello.at("who"), {}});
  for (const auto& [slot, program] : h.programs) {
    auto known = std::ranges::find(groups, program, &group::program);
    if (known == groups.end()) known = groups.insert(known, group{program, {}});
    known->slots.push_back(slot);
  }
  for (const group& g : groups) {
    const char* const many = g.slots.size() == 1 ? "" : "es";
    names.push_back(groups.size() == 1 ? name : fmt::format("{} (process{} {})", name, many, ranges_of(g.slots)));
    programs.push_back(g.program);
  }
}

} // namespace

launched_hosts::launched_hosts(launch_meeting meeting, const launcher_environment& self, bool allow_different)
    : launcher_(self.launcher), allow_different_(allow_different) {
  const blob secret = meeting.secret;
  auto hosts = gathering(meeting, self).wait();
  for (auto& h : hosts) std::ranges::sort(h->slots);
  std::erase_if(hosts, [](const auto& h) { return h->slots.empty(); });
  std::ranges::sort(hosts, {}, [](const auto& h) { return h->slots.front(); });
  std::vector<std::string> names; // of the columns of `programs`: hosts, or some of their processes
  std::vector<json> programs;
  for (auto& h : hosts) {
    agent_link& link = *links_.emplace_back(std::make_unique<agent_link>());
    hosts_.push_back(&link);
    link.name = h->hello.at("host");
    const auto same_name = [&](const auto& o) { return o != h && o->hello.at("host") == link.name; };
    if (std::ranges::any_of(hosts, same_name))
      link.name += fmt::format(" ({})", h->hello.at("address").get<std::string>());
    link.socket = std::move(h->socket);
    link.secret = secret;
    link.slots = h->slots;
    const json& limit = h->hello.at("limit");
    link.cpus = {h->hello.at("cpus"), limit.is_null() ? std::numeric_limits<double>::infinity() : limit.get<double>()};
    link.free_bytes = h->hello.at("free_bytes");
    json& description = descriptions_.emplace_back(h->hello.at("description"));
    description["address"] = h->hello.at("address");
    description["name"] = link.name;
    programs_.push_back(h->hello.at("who"));
    add_programs(*h, link.name, names, programs);
  }
  // The first host's agent may have reached the campaign by the loopback interface; the others used its real address,
  // or several: then the one of most counts, as a host that takes a wrong way must not make the first one look wrong.
  std::map<std::string, std::size_t> used;
  for (std::size_t h = 1; h < hosts.size(); ++h) ++used[hosts[h]->hello.at("peer").get<std::string>()];
  if (!used.empty())
    descriptions_[0]["address"] = std::ranges::max_element(used, {}, [](const auto& u) { return u.second; })->first;
  if (const std::string table = differences_of_hosts(names, programs); !table.empty()) {
    const std::string text =
        fmt::format("the {} run different programs:{}", names.size() == hosts.size() ? "hosts" : "processes", table);
    if (!allow_different) {
      dismiss();
      throw failure(exit_code::usage, text + same_on_all);
    }
    warnings_.push_back(text);
  }
  for (std::string& warning : unequal_machines(names_of_hosts(), descriptions_))
    warnings_.push_back(std::move(warning));
}

launched_hosts::~launched_hosts() {
  dismiss();
}

void launched_hosts::dismiss() noexcept {
  for (const auto& link : links_) {
    try {
      if (link->socket.get() >= 0) send_frame(link->socket, {{"t", "leave"}});
    } catch (const failure&) { // it is gone already
    }
  }
}

std::vector<std::string> launched_hosts::names_of_hosts() const {
  std::vector<std::string> names;
  for (const auto& link : links_) names.push_back(link->name);
  return names;
}

placed_layout launched_hosts::place(const cluster_layout& layout, const cluster_config& c, bool own_processes) const {
  std::vector<std::vector<std::uint32_t>> slots;
  for (const host_link* h : hosts_) slots.push_back(h->slots);
  return place_layout(launcher_, slots, layout, c, own_processes);
}

std::vector<json> launched_hosts::ask_all(const std::vector<json>& requests) {
  std::vector<json> answers;
  const auto named = [](const agent_link& link, const std::string& what) {
    return fmt::format("host {}: {}", link.name, what);
  };
  for (const auto& link : links_)
    if (link->socket.get() < 0) throw failure(exit_code::run, named(*link, "it has left this launch: " + link->lost));
  const auto lost = [&](agent_link& link, const std::string& why) {
    link.socket = {};
    link.lost = why;
    return failure(exit_code::run, named(link, why));
  };
  for (std::size_t i = 0; i < links_.size(); ++i) try {
      send_frame(links_[i]->socket, requests[i]);
    } catch (const failure& e) {
      throw lost(*links_[i], e.what());
    }
  std::string wrong; // read all answers, so that none is taken for the answer to a later request
  for (const auto& member : links_) {
    agent_link& link = *member;
    std::optional<message> f;
    try {
      f = receive_frame(link.socket, answer_limit);
    } catch (const failure& e) {
      throw lost(link, e.what());
    }
    if (!f) throw lost(link, fmt::format("no answer within {} s", answer_limit / 1s));
    if (f->header.contains("error") && wrong.empty()) wrong = named(link, f->header.at("error"));
    answers.push_back(std::move(f->header));
  }
  if (!wrong.empty()) throw failure(exit_code::usage, wrong);
  return answers;
}

void launched_hosts::join(const std::string& file, const std::string& transport) {
  if (std::ranges::find(joined_, std::pair(file, transport)) != joined_.end()) return;
  const json request{{"t", "join"}, {"file", file}, {"transport", transport}, {"built_in", built_in_folder().string()}};
  try {
    ask_all(std::vector<json>(links_.size(), request));
  } catch (const failure& e) {
    throw failure(exit_code::run, e.what());
  }
  joined_.emplace_back(file, transport);
}

const std::vector<std::vector<std::string>>& launched_hosts::addresses(const std::string& interface) {
  if (const auto known = addresses_.find(interface); known != addresses_.end()) return known->second;
  if (const auto known = unusable_.find(interface); known != unusable_.end()) throw known->second;
  try {
    return addresses_[interface] = find_addresses(interface);
  } catch (const failure& f) {
    // Every case of a sweep asks for the addresses, and a probe that gets no answer takes 4 s.
    if (f.code() == exit_code::usage) unusable_.emplace(interface, f);
    throw;
  }
}

std::vector<std::vector<std::string>> launched_hosts::find_addresses(const std::string& interface) {
  std::vector<json> requests;
  for (const json& d : descriptions_)
    requests.push_back({{"t", "address"}, {"interface", interface == "auto" ? d.at("address") : json(interface)}});
  const std::vector<json> answers = ask_all(requests);
  std::vector<std::vector<std::string>> all(answers.size());
  for (std::size_t h = 0; h < answers.size(); ++h)
    for (const json& link : answers[h].at("links")) all[h].push_back(link.at("address"));
  if (links_.size() > 1) check_reachability(all);
  for (std::size_t h = 0; h < answers.size(); ++h) add_links(descriptions_[h], interface, answers[h].at("links"));
  return all;
}

void launched_hosts::check_reachability(const std::vector<std::vector<std::string>>& addresses) {
  std::vector<json> listens, probes;
  for (const auto& mine : addresses) listens.push_back({{"t", "listen"}, {"addresses", mine}});
  const std::vector<json> listening = ask_all(listens);
  std::vector<std::vector<std::pair<std::size_t, std::string>>> targets(links_.size()); // host and address, by host
  for (std::size_t from = 0; from < links_.size(); ++from) {
    json mine = json::array();
    for (std::size_t to = 0; to < links_.size(); ++to)
      for (std::size_t a = 0; to != from && a < addresses[to].size(); ++a) {
        mine.push_back({addresses[to][a], listening[to].at("ports").at(a)});
        targets[from].emplace_back(to, addresses[to][a]);
      }
    probes.push_back({{"t", "probe"}, {"targets", mine}});
  }
  const std::vector<json> probed = ask_all(probes);
  ask_all(std::vector<json>(links_.size(), {{"t", "listen"}, {"addresses", json::array()}}));
  std::string wrong;
  for (std::size_t from = 0; from < links_.size(); ++from)
    for (std::size_t i = 0; i < targets[from].size(); ++i) {
      const std::string why = probed[from].at("failed").at(i);
      if (why.empty()) continue;
      const auto& [to, address] = targets[from][i];
      wrong += fmt::format("\n  {} ({}) cannot connect to {} ({}): {}", links_[from]->name,
                           fmt::join(addresses[from], ", "), links_[to]->name, address, why);
    }
  if (!wrong.empty())
    throw failure(exit_code::usage,
                  "hosts cannot reach each other by the addresses of cluster.interface; choose another "
                  "interface or subnet, or open the firewall between them:" +
                      wrong);
}

void launched_hosts::require_equal_isa(const std::string& choice) const {
  std::vector<json> isas;
  for (const json& d : descriptions_) isas.push_back({{"isa", capped(d.at("isa"), choice)}});
  const std::string table = differences_of_hosts(names_of_hosts(), isas);
  if (table.empty()) return;
  std::string common = isas.front().at("isa");
  for (const json& has : isas) common = capped(common, has.at("isa"));
  throw failure(exit_code::usage,
                fmt::format("train.isa: expected the same instruction set on all hosts under \"{}\"; set train.isa = "
                            "\"{}\", which all hosts have; got{}",
                            choice, common, table));
}

std::vector<json> launched_hosts::file_sums(const std::vector<std::string>& paths,
                                            const std::vector<std::string>& read) {
  std::vector<json> sums;
  const json request{{"t", "files"}, {"paths", paths}, {"read", read}, {"built_in", built_in_folder().string()}};
  for (json& answer : ask_all(std::vector<json>(links_.size(), request))) sums.push_back(std::move(answer.at("sums")));
  return sums;
}

void launched_hosts::require_files(const std::vector<std::string>& paths, const std::vector<std::string>& read) {
  std::vector<std::string> unknown;
  for (const std::string& path : paths)
    if (checked_.insert(path).second) unknown.push_back(path);
  if (unknown.empty()) return;
  const auto sums = file_sums(unknown, read);
  std::string missing;
  for (const std::string& path : unknown)
    for (std::size_t i = 0; i < sums.size(); ++i)
      if (sums[i].at(path).is_null()) missing += fmt::format("\n  {} is missing on host {}", path, links_[i]->name);
  std::string wrong;
  if (!missing.empty()) {
    wrong = "these files must lie at the same paths on all hosts:" + missing;
  } else if (const std::string table = differences_of_hosts(names_of_hosts(), sums); !table.empty()) {
    wrong = "the hosts have different plugins, by SHA-256:" + table;
    if (allow_different_)
      warnings_.push_back(std::exchange(wrong, ""));
    else
      wrong += same_on_all;
  }
  if (wrong.empty()) return;
  for (const std::string& path : unknown) checked_.erase(path);
  throw failure(exit_code::usage, wrong);
}

void launched_hosts::compare_libraries(const std::vector<std::string>& plugins) {
  std::vector<json> loaded;
  const json request{{"t", "libraries"}, {"files", plugins}, {"built_in", built_in_folder().string()}};
  for (json& answer : ask_all(std::vector<json>(links_.size(), request)))
    loaded.push_back(std::move(answer.at("libraries")));
  for (std::size_t h = 0; h < loaded.size(); ++h) descriptions_[h]["libraries"]["of_plugins"] = loaded[h];
  if (std::string warning = unequal_libraries(names_of_hosts(), loaded); !warning.empty())
    warnings_.push_back(std::move(warning));
}

} // namespace regatta
