// SPDX-License-Identifier: Apache-2.0
//
// A link between two Ethernet interfaces that delays, loses, slows down or cuts what passes, as tc-netem does in
// kernels that have it. It makes both interfaces (TAP) in its network namespace and forwards frames between them.
//
//   forwarder SWITCH_SIDE HOST_SIDE
//
// Prints "ready" once both exist. Then it reads commands from standard input, a line each, and answers each with a
// line: "ok", "error: ..." or the counters. A command is a list of these words; nothing changes if one is wrong:
//
//   delay=200ms   one way, on each direction: ping shows twice that. Units: us, ms, s
//   jitter=5ms    adds a uniform random delay of up to that; frames keep their order
//   loss=1%       of frames, independent of each other
//   rate=1mbit    units: bit, kbit, mbit, gbit; none ends it
//   queue=100ms   a frame that would wait longer than this for the rate is dropped; the default is 100ms
//   cut=in        nothing passes towards the host; out: from it; both; none
//   in.KEY=...    delay, jitter, loss, rate and queue of one direction only; out.KEY=...
//   seed=7        restarts both directions' random numbers
//   clear         ends all of the above
//   show          answers with the frames of each direction: passed, lost at random, dropped at the queue, cut
//
// It ends when one of the interfaces is removed. One thread.
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <optional>
#include <random>
#include <sstream>
#include <string>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using Nanoseconds = std::chrono::nanoseconds;

constexpr std::size_t largest_frame = 65536 + 18;
constexpr std::size_t most_bytes_on_the_way = 64 << 20; // of a direction: a long delay at a high rate

struct Impairment {
  Nanoseconds delay{0};
  Nanoseconds jitter{0};
  double loss = 0;            // probability
  double bits_per_second = 0; // 0: no limit
  Nanoseconds queue = std::chrono::milliseconds(100);
  bool cut = false;
};

/// One direction of the link, from one interface to the other.
class Direction {
public:
  Direction(int from, int to, std::uint64_t number) : from_(from), to_(to), number_(number) { seed(1); }

  Impairment impairment;

  void seed(std::uint64_t value) { random_.seed(value * 2 + number_); }

  int from() const { return from_; }

  /// Takes the frames that wait at the interface. Returns false if it is gone.
  bool receive() {
    static std::array<char, largest_frame> buffer;
    for (int frames = 0; frames < 64; ++frames) { // then the other direction has its turn
      const ssize_t size = ::read(from_, buffer.data(), buffer.size());
      if (size < 0) return errno == EAGAIN || errno == EINTR || errno == EIO; // EIO: it is down
      accept(buffer.data(), static_cast<std::size_t>(size), Clock::now());
    }
    return true;
  }

  /// Sends the frames whose time has come. Returns when the next one is due.
  std::optional<Clock::time_point> send_due() {
    while (!on_the_way_.empty() && on_the_way_.front().due <= Clock::now()) {
      const Frame& frame = on_the_way_.front();
      // An interface that is down refuses the frame; it is lost, as in a cable without an end.
      if (::write(to_, frame.bytes.data(), frame.bytes.size()) > 0) ++passed_;
      bytes_on_the_way_ -= frame.bytes.size();
      on_the_way_.pop_front();
    }
    if (on_the_way_.empty()) return std::nullopt;
    return on_the_way_.front().due;
  }

  std::string counters() const {
    std::ostringstream text;
    text << "passed=" << passed_ << " lost=" << lost_ << " dropped=" << dropped_ << " cut=" << cut_;
    return text.str();
  }

private:
  struct Frame {
    Clock::time_point due;
    std::vector<char> bytes;
  };

  void accept(const char* bytes, std::size_t size, Clock::time_point now) {
    std::uniform_real_distribution<double> uniform(0, 1);
    if (impairment.cut) {
      ++cut_;
      return;
    }
    if (impairment.loss > 0 && uniform(random_) < impairment.loss) {
      ++lost_;
      return;
    }
    Clock::time_point due = now;
    if (impairment.bits_per_second > 0) {
      const Clock::time_point begin = std::max(now, line_free_);
      if (begin - now > impairment.queue) {
        ++dropped_;
        return;
      }
      line_free_ =
          begin +
          Nanoseconds(static_cast<std::int64_t>(1e9 * 8 * static_cast<double>(size) / impairment.bits_per_second));
      due = line_free_;
    }
    due += impairment.delay;
    if (impairment.jitter > Nanoseconds(0))
      due += Nanoseconds(static_cast<std::int64_t>(uniform(random_) * static_cast<double>(impairment.jitter.count())));
    if (!on_the_way_.empty()) due = std::max(due, on_the_way_.back().due);
    if (bytes_on_the_way_ + size > most_bytes_on_the_way) {
      ++dropped_;
      return;
    }
    bytes_on_the_way_ += size;
    on_the_way_.push_back({due, std::vector<char>(bytes, bytes + size)});
  }

  int from_, to_;
  std::uint64_t number_;
  std::mt19937_64 random_;
  std::deque<Frame> on_the_way_;
  std::size_t bytes_on_the_way_ = 0;
  Clock::time_point line_free_{}; // when the last frame has left at the rate
  std::uint64_t passed_ = 0, lost_ = 0, dropped_ = 0, cut_ = 0;
};

struct Link {
  Direction in, out; // towards the host, from it
};

/// Returns the number before the unit, times the unit's factor, or nothing.
std::optional<double> quantity(const std::string& text, std::initializer_list<std::pair<const char*, double>> units) {
  double value = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || value < 0) return std::nullopt;
  for (const auto& [unit, factor] : units)
    if (std::strcmp(rest, unit) == 0) return value * factor;
  return std::nullopt;
}

std::optional<Nanoseconds> duration(const std::string& text) {
  const auto value = quantity(text, {{"us", 1e3}, {"ms", 1e6}, {"s", 1e9}});
  if (!value || *value > 3600e9) return std::nullopt;
  return Nanoseconds(static_cast<std::int64_t>(*value));
}

/// Sets one key of one direction. Returns false if key or value is wrong.
bool set(Impairment& impairment, const std::string& key, const std::string& value) {
  if (key == "delay" || key == "jitter" || key == "queue") {
    const auto given = duration(value);
    if (given) (key == "delay" ? impairment.delay : key == "jitter" ? impairment.jitter : impairment.queue) = *given;
    return given.has_value();
  }
  if (key == "loss") {
    const auto given = quantity(value, {{"%", 0.01}});
    if (!given || *given > 1) return false;
    impairment.loss = *given;
    return true;
  }
  if (key == "rate") {
    const auto given =
        value == "none" ? 0.0 : quantity(value, {{"bit", 1}, {"kbit", 1e3}, {"mbit", 1e6}, {"gbit", 1e9}});
    if (!given || (*given <= 0 && value != "none")) return false;
    impairment.bits_per_second = *given;
    return true;
  }
  return false;
}

/// Carries a command line out. Returns the answer.
std::string command(Link& link, const std::string& line) {
  Impairment in = link.in.impairment, out = link.out.impairment;
  std::optional<std::uint64_t> seed;
  bool show = false;
  std::istringstream words(line);
  for (std::string word; words >> word;) {
    const std::size_t equals = std::min(word.find('='), word.size());
    const std::string key = word.substr(0, equals), value = word.substr(std::min(equals + 1, word.size()));
    bool right = true;
    if (word == "clear") {
      in = out = {};
    } else if (word == "show") {
      show = true;
    } else if (key == "cut") {
      right = value == "in" || value == "out" || value == "both" || value == "none";
      in.cut = value == "in" || value == "both";
      out.cut = value == "out" || value == "both";
    } else if (key == "seed") {
      std::uint64_t number = 0;
      right = std::from_chars(value.data(), value.data() + value.size(), number).ptr == value.data() + value.size() &&
              !value.empty();
      seed = number;
    } else if (key.starts_with("in.")) {
      right = set(in, key.substr(3), value);
    } else if (key.starts_with("out.")) {
      right = set(out, key.substr(4), value);
    } else {
      right = set(in, key, value) && set(out, key, value);
    }
    if (!right)
      return "error: expected clear, show, [in.|out.](delay|jitter|queue)=200ms, loss=1%, rate=1mbit, "
             "cut=in|out|both|none or seed=7; got \"" +
             word + "\"";
  }
  link.in.impairment = in;
  link.out.impairment = out;
  if (seed) {
    link.in.seed(*seed);
    link.out.seed(*seed);
  }
  if (show) return "in: " + link.in.counters() + "; out: " + link.out.counters();
  return "ok";
}

/// Carries out the lines that have come. Returns false at the end of the input.
bool read_commands(Link& link) {
  static std::string unfinished;
  std::array<char, 4096> buffer;
  const ssize_t size = ::read(STDIN_FILENO, buffer.data(), buffer.size());
  if (size <= 0) return size < 0 && errno == EINTR;
  unfinished.append(buffer.data(), static_cast<std::size_t>(size));
  for (std::size_t end; (end = unfinished.find('\n')) != std::string::npos;) {
    std::puts(command(link, unfinished.substr(0, end)).c_str());
    std::fflush(stdout);
    unfinished.erase(0, end + 1);
  }
  return true;
}

/// Makes a TAP interface. Returns its file descriptor, or -1 after a message.
int make_interface(const char* name) {
  const int file = ::open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
  ifreq request{};
  request.ifr_flags = IFF_TAP | IFF_NO_PI;
  std::strncpy(request.ifr_name, name, IFNAMSIZ - 1);
  if (file >= 0 && ::ioctl(file, TUNSETIFF, &request) == 0) return file;
  std::fprintf(stderr, "forwarder: interface %s: %s\n", name, std::strerror(errno));
  return -1;
}

void forward(Link& link) {
  std::array<pollfd, 3> files{{{link.in.from(), POLLIN, 0}, {link.out.from(), POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}}};
  while (true) {
    const auto due_in = link.in.send_due(), due_out = link.out.send_due();
    const auto due = std::min(due_in.value_or(Clock::time_point::max()), due_out.value_or(Clock::time_point::max()));
    timespec wait{};
    if (due != Clock::time_point::max()) {
      const std::int64_t left = std::max<std::int64_t>(0, Nanoseconds(due - Clock::now()).count());
      wait = {left / 1'000'000'000, left % 1'000'000'000};
    }
    if (::ppoll(files.data(), files.size(), due == Clock::time_point::max() ? nullptr : &wait, nullptr) < 0) continue;
    if (files[0].revents != 0 && !link.in.receive()) return;
    if (files[1].revents != 0 && !link.out.receive()) return;
    if (files[2].revents != 0 && !read_commands(link)) files[2].fd = -1;
  }
}

} // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: forwarder SWITCH_SIDE HOST_SIDE < COMMANDS\n");
    return 2;
  }
  ::prctl(PR_SET_TIMERSLACK, 1000); // ns; the default of 50 us would be seen in short delays
  const int switch_side = make_interface(argv[1]);
  const int host_side = switch_side < 0 ? -1 : make_interface(argv[2]);
  if (host_side < 0) return 1;
  Link link{{switch_side, host_side, 0}, {host_side, switch_side, 1}};
  std::puts("ready");
  std::fflush(stdout);
  forward(link);
  return 0;
}
