// SPDX-License-Identifier: Apache-2.0
#include "report/data_fingerprint.hpp"

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <stdexcept>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "registry/sha256.hpp"

namespace regatta {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr std::uint64_t most_read = 64ull << 20, excerpt = 64ull << 10, most_files = 256,
                        excerpts_a_file = most_read / most_files / excerpt;

// Returns whether a file of a folder belongs to the data in this format (docs/data.md). Other files, such as
// vocabularies and results that runs write there, are not read.
bool is_data(const fs::path& file, const std::string& format) {
  const std::string name = file.filename().string(), extension = file.extension().string();
  if (format == "npy") return extension == ".npy";
  if (format == "cifar10") return extension == ".bin";
  return name[0] != '.' && extension != ".vocabulary" && extension != ".subwords" && extension != ".tmp";
}

// Returns size by path. Only imagenet has folders inside the folder: one per class.
std::map<fs::path, std::uint64_t> files_of(const fs::path& path, const std::string& format) {
  if (!fs::is_directory(path)) return {{path, fs::file_size(path)}};
  std::map<fs::path, std::uint64_t> files;
  for (const auto& entry : fs::directory_iterator(path)) {
    if (format != "imagenet") {
      if (entry.is_regular_file() && is_data(entry.path(), format)) files[entry.path()] = entry.file_size();
    } else if (entry.is_directory()) {
      for (const auto& image : fs::directory_iterator(entry.path()))
        if (image.is_regular_file()) files[image.path()] = image.file_size();
    }
  }
  return files;
}

void add_bytes(sha256& sum, std::ifstream& in, std::uint64_t at, std::uint64_t bytes) {
  std::vector<char> buffer(std::min(bytes, excerpt));
  in.seekg(static_cast<std::streamoff>(at));
  while (bytes > 0) {
    const std::uint64_t wanted = std::min<std::uint64_t>(bytes, buffer.size());
    in.read(buffer.data(), static_cast<std::streamsize>(wanted));
    if (static_cast<std::uint64_t>(in.gcount()) != wanted) throw std::runtime_error("it ends early");
    sum.add({buffer.data(), wanted});
    bytes -= wanted;
  }
}

void add_content(sha256& sum, const fs::path& file, std::uint64_t size, bool all) {
  std::ifstream in(file, std::ios::binary);
  if (!in) throw std::runtime_error("it cannot be opened");
  if (all || size <= excerpt * excerpts_a_file) return add_bytes(sum, in, 0, size);
  for (std::uint64_t i = 0; i < excerpts_a_file; ++i)
    add_bytes(sum, in, (size - excerpt) / (excerpts_a_file - 1) * i, excerpt);
}

} // namespace

json fingerprint_of_data(const std::string& path, const std::string& format) {
  json j = {{"path", path}, {"format", format}, {"files", nullptr}, {"bytes", nullptr}, {"sha256", nullptr}};
  try {
    const std::map<fs::path, std::uint64_t> files = files_of(path, format);
    sha256 sum;
    std::uint64_t bytes = 0;
    std::vector<const std::pair<const fs::path, std::uint64_t>*> list;
    for (const auto& file : files) {
      list.push_back(&file);
      bytes += file.second;
      const std::string name = fs::is_directory(path) ? file.first.lexically_relative(path).string() : "";
      sum.add(fmt::format("{} {} {}\n", name.size(), name, file.second));
    }
    const bool all = bytes <= most_read;
    const std::size_t picked = all ? list.size() : std::min<std::size_t>(list.size(), most_files);
    for (std::size_t i = 0; i < picked; ++i) {
      const auto& [file, size] = *list[picked > 1 ? i * (list.size() - 1) / (picked - 1) : 0];
      add_content(sum, file, size, all);
    }
    j["files"] = list.size();
    j["bytes"] = bytes;
    j["sha256"] = sum.hex();
  } catch (const std::exception&) { // the case itself reports why the data cannot be read
  }
  return j;
}

json fingerprints_of_data(const experiment& e) {
  std::set<std::pair<std::string, std::string>> sets;
  for (const case_config& c : e.cases) {
    const data_config& d = c.data;
    if (d.source == "dataset" || (d.source == "queue" && d.queue_source == "dataset")) sets.emplace(d.path, d.format);
    if (!d.evaluation_path.empty()) sets.emplace(d.evaluation_path, d.format);
    if (!d.vocabulary.empty()) sets.emplace(d.vocabulary, "");
  }
  json list = json::array();
  for (const auto& [path, format] : sets) list.push_back(fingerprint_of_data(path, format));
  return list;
}

} // namespace regatta
