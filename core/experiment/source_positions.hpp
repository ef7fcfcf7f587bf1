// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "base/failure.hpp"

#include <map>
#include <memory>
#include <string>

namespace regatta {

// Where the keys of a case were written, for errors that are found after the file was read.
class source_positions {
public:
  // Maps a key to the position of its value, "f.toml:4:9", or to the name of an option, "--set"; and a section to the
  // position of its table.
  using map = std::map<std::string, std::string>;

  source_positions() = default; // no file: before() changes nothing
  // `file` is the file's name in messages. `written` has the keys and sections that the file and --set give (null:
  // none), `swept` the keys with a sweep; for a key in both, `swept` counts.
  source_positions(std::string file, std::shared_ptr<const map> written, map swept)
      : file_(std::move(file)), written_(std::move(written)), swept_(std::move(swept)) {}

  // [any] Returns `text` with a position before each line: "data.path: no such file" becomes "f.toml:4:8: error:
  // data.path: no such file", or "--set data.path: no such file" if the option gives the key. A line that begins with a
  // plugin ("model mlp: ...") gets the position of model.plugin. If the key is not given, the position is that of its
  // section, else 1:1. A line without a key gets "f.toml: error: ". Returns `text` unchanged if no file is known.
  std::string before(const std::string& text) const;
  // [any] Returns the failure's text; through before() if its exit code is usage.
  std::string reason_of(const failure& f) const;
  // [any] Returns "f.toml:4:8: notice: KEY TEXT"; "notice: --set KEY TEXT" for a key from an option; "f.toml: notice:
  // KEY TEXT" if the key is not given. Requires a file.
  std::string notice(const std::string& key, const std::string& text) const;
  // [any] Returns true if the file or the command line gives this key, with or without a sweep, or if the file has
  // this section.
  bool has(const std::string& key) const { return find(key) != nullptr; }

private:
  std::string before_line(const std::string& text) const;
  const std::string* find(const std::string& key) const;

  std::string file_;
  std::shared_ptr<const map> written_;
  map swept_; // take precedence over written_
};

} // namespace regatta
