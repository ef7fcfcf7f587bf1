// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/failure.hpp"

#include <map>
#include <memory>
#include <string>

namespace regatta {

// Where the keys of a case were written: for errors that are found after the file was read.
class places {
public:
  // By key: "f.toml:4:9", or an option's name such as "--set". Of a section: where it begins.
  using map = std::map<std::string, std::string>;

  places() = default;
  places(std::string file, std::shared_ptr<const map> written, map swept)
      : file_(std::move(file)), written_(std::move(written)), swept_(std::move(swept)) {}

  // `text` begins with the key that is wrong, "data.path: there is no such file": returns "f.toml:4:8: error: " and it;
  // of several lines, each with its own place. A text that begins with a plugin ("model mlp: ...") is about the key that
  // chose it. A key that is not written stands for its section; a text without a key is about the file. Unchanged where
  // nothing is known of a file. [any]
  std::string before(const std::string& text) const;
  // The failure's text; as before() gives it where the file is wrong (exit_code::usage). [any]
  std::string reason_of(const failure& f) const;
  // "f.toml:4:8: notice: KEY TEXT". [any]
  std::string notice(const std::string& key, const std::string& text) const;
  // Whether somebody wrote this key. [any]
  bool has(const std::string& key) const;

private:
  std::string before_line(const std::string& text) const;
  const std::string* find(const std::string& key) const;

  std::string file_;
  std::shared_ptr<const map> written_;
  map swept_; // these count first
};

} // namespace regatta
