// SPDX-License-Identifier: Apache-2.0
//
// Training on what another process sends: the example in Python, and producers that do it wrong.
#include "program.hpp"

#include <csignal>
#include <vector>

#include <sys/wait.h>

using namespace regatta::test;

namespace {

// A Python that lacks the module would leave every test to wait for batches that never come.
const bool has_zmq = std::system(PYTHON " -c 'import zmq'") == 0;

// Python, running until the end of the scope.
class producer {
public:
  explicit producer(std::vector<std::string> arguments) {
    REQUIRE_MESSAGE(has_zmq, PYTHON " has no module zmq any more: install python3-zmq, or configure again");
    arguments.insert(arguments.begin(), PYTHON);
    std::vector<char*> argv;
    for (std::string& a : arguments) argv.push_back(a.data());
    argv.push_back(nullptr);
    pid_ = fork();
    if (pid_ == 0) {
      execvp(PYTHON, argv.data());
      _exit(127);
    }
    REQUIRE(pid_ > 0);
  }
  ~producer() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  producer(const producer&) = delete;
  producer& operator=(const producer&) = delete;

private:
  pid_t pid_;
};

std::string toml(const temporary_folder& s, const std::string& timeout) {
  return R"(
[model]
plugin = "mlp"
hidden = [16]
[data]
source = "stream"
endpoint = "ipc://)" +
         (s.path / "socket").string() + "\"\ntimeout = \"" + timeout + R"("
[train]
batch = 8
kernels = "fixed"
[optimizer]
lr = 0.05
[measure]
warmup = 0
steps = 30
repeats = 1
baseline = false
)";
}

std::string complaint(const temporary_folder& s, const std::string& timeout = "20s", const std::string& options = "") {
  std::ofstream(s.path / "x.toml") << toml(s, timeout);
  fs::remove_all(s.path / "result");
  const outcome o = program(s, "run x.toml --out result --progress never --set cluster.workers=1 --set "
                               "strategy.plugin=none --set transport.plugin=null" +
                                   options);
  CHECK(o.code == 1);
  return o.out + o.err;
}

} // namespace

TEST_CASE("two workers learn from the example's producer") {
  const temporary_folder s;
  const producer p({REGATTA_SOURCE "/examples/stream_producer.py", "ipc://" + (s.path / "socket").string(), "8"});
  const json r = results(s, toml(s, "20s"), "--set cluster.workers=2");
  const auto curve = r.at(0).at("loss").at("curve").get<std::vector<double>>();
  REQUIRE(curve.size() == 30);
  CHECK(curve.back() < 0.5 * curve.front());
  CHECK(r.at(0).at("replicas_identical") == true);
  CHECK(r.at(0).at("time").at("input").get<double>() > 0);
}

TEST_CASE("data.producer is started for a run and ended with it") {
  const temporary_folder s;
  const std::string starts =
      " --set data.producer='\"" PYTHON " " REGATTA_SOURCE "/examples/stream_producer.py {endpoint} {batch}\"'";
  const json r = results(s, toml(s, "20s"), "--set cluster.workers=2" + starts);
  CHECK(r.at(0).at("status") == "ok");
  // Its argument names this test's own socket.
  CHECK(std::system(("! pgrep -f '[i]pc://" + (s.path / "socket").string() + "' >/dev/null").c_str()) == 0);
  const std::string text = complaint(s, "20s", " --set data.producer='\"false\"'");
  INFO(text);
  CHECK(text.find("data.producer exited with code 1: false") != std::string::npos);
  const std::string twice = complaint(s, "20s", " --set data.producer='\"expr {batch} + {batch}\"'");
  INFO(twice);
  CHECK(twice.find("data.producer exited with code 0: expr 8 + 8") != std::string::npos);
}

TEST_CASE("a producer of other shapes, and one that is silent, end the run with a reason") {
  const temporary_folder s;
  {
    const producer p({REGATTA_SOURCE "/examples/stream_producer.py", "ipc://" + (s.path / "socket").string(), "8",
                      "--shape", "1,28,28"});
    const std::string text = complaint(s);
    INFO(text);
    CHECK(text.find("\"image\" of shape [8,1,28,28] instead of [8,3,32,32]") != std::string::npos);
  }
  const std::string text = complaint(s, "500ms");
  INFO(text);
  CHECK(text.find("no batch came for 0.5 s") != std::string::npos);
}

TEST_CASE("a message that does not fit the model is refused with the reason") {
  // Sends one message again and again: the parts that the expression in its second argument gives.
  const std::string script = R"(
import json, sys, zmq
def head(*tensors):
    return json.dumps({"regatta": 1, "tensors": [dict(zip(("name", "type", "shape"), t)) for t in tensors]}).encode()
image, label = ("image", "f32", [8, 3, 32, 32]), ("label", "i32", [8])
pixels, zeros = bytes(8 * 3072 * 4), bytes(8 * 4)
parts = eval(sys.argv[2])
socket = zmq.Context.instance().socket(zmq.PUSH)
socket.set_hwm(2)
socket.bind(sys.argv[1])
while True:
    socket.send_multipart(parts)
)";
  struct one {
    const char *parts, *complaint;
  };
  const one cases[] = {
      {"[b'hello']", "has no head"},
      {"[b'{\"regatta\":1,\"tensors\":[{\"name\":' + b'[' * 200000 + b']' * 200000 + b'}]}']",
       "nested more than 64 deep"},
      {"[head(image, label), pixels]", "ends before the data of its tensors"},
      {"[head(image, label), pixels, zeros, b'more']", "more parts than tensors"},
      {"[head(image, ('lable', 'i32', [8])), pixels, zeros]", "a tensor \"lable\", which the model does not take"},
      {"[head(image), pixels]", "1 of the model's 2 inputs"},
      {"[head(image, image), pixels, pixels]", "\"image\" twice"},
      {"[head(image, ('label', 'i64', [8])), pixels, zeros]", "of type \"i64\" instead of \"i32\""},
      {"[head(image, label), pixels, zeros[:-1]]", "31 bytes of \"label\" instead of 32"},
      {"[head(label, image), b'\\xff' * 32, pixels]", "an index in \"label\" outside 0 to 9"}};
  for (const one& c : cases) {
    CAPTURE(c.parts);
    const temporary_folder s;
    const producer p({"-c", script, "ipc://" + (s.path / "socket").string(), c.parts});
    const std::string text = complaint(s);
    INFO(text);
    CHECK(text.find(c.complaint) != std::string::npos);
  }
}
