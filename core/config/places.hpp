// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/failure.hpp"

#include <map>
#include <memory>
#include <string>

namespace regatta {

// Where the keys of a case were written, for errors that are found after the file was read.
class places {
public:
  // From a key to "f.toml:4:9", or to the name of an option such as "--set"; from a section to where it begins.
  using map = std::map<std::string, std::string>;

  places() = default;
  places(std::string file, std::shared_ptr<const map> written, map swept)
      : file_(std::move(file)), written_(std::move(written)), swept_(std::move(swept)) {}

  // [any] Returns `text` with its position in front: for "data.path: no such file", "f.toml:4:8: error: data.path: no
  // such file". A text of several lines gets a position for each line. A line that begins with a plugin ("model mlp:
  // ...") is about the key that chose it. If the key is not written, the position is that of its section; a line without
  // a key is about the file. Returns `text` unchanged if no file is known.
  std::string before(const std::string& text) const;
  // [any] Returns the failure's text, with before() if the file is wrong (exit_code::usage).
  std::string reason_of(const failure& f) const;
  // [any] Returns "f.toml:4:8: notice: KEY TEXT".
  std::string notice(const std::string& key, const std::string& text) const;
  // Returns true if the file or the command line gives this key. [any]
  bool has(const std::string& key) const;

private:
  std::string before_line(const std::string& text) const;
  const std::string* find(const std::string& key) const;

  std::string file_;
  std::shared_ptr<const map> written_;
  map swept_; // take precedence over written_
};

} // namespace regatta
