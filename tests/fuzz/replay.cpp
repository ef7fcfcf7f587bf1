// SPDX-License-Identifier: Apache-2.0
//
// Feeds each file of the given folders to a fuzz target once, for builds without libFuzzer: so `./dev test` compiles
// the targets, and an input that once failed stays a test.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <vector>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

int main(int argc, char** argv) {
  int inputs = 0;
  for (int i = 1; i < argc; ++i)
    for (const auto& file : std::filesystem::directory_iterator(argv[i])) {
      std::printf("%s\n", file.path().c_str()); // before it runs: the last line names the input that ends the process
      std::fflush(stdout);
      std::ifstream in(file.path(), std::ios::binary);
      const std::vector<char> bytes{std::istreambuf_iterator<char>(in), {}};
      LLVMFuzzerTestOneInput(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
      ++inputs;
    }
  if (inputs == 0) std::fprintf(stderr, "no input in the folders given\n");
  return inputs == 0;
}
