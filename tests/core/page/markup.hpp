// SPDX-License-Identifier: Apache-2.0
//
// Reads the markup of pages and drawings, for tests. It knows what well-formed XML and the elements of these pages need,
// and no more.
#pragma once

#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

namespace regatta::test {

struct element {
  std::string name, text; // `text`: its own, with entities replaced, without that of its children
  std::map<std::string, std::string> attributes;
  std::vector<element> children;

  std::string attribute(const std::string& key) const {
    const auto found = attributes.find(key);
    return found == attributes.end() ? "" : found->second;
  }
  // Calls `visit` with this element and all in it, parents first.
  template <class Visit> void each(Visit visit) const {
    visit(*this);
    for (const element& child : children) child.each(visit);
  }
};

inline std::string without_entities(std::string text) {
  const std::pair<const char*, const char*> entities[] = {
      {"&lt;", "<"}, {"&gt;", ">"}, {"&quot;", "\""}, {"&#39;", "'"}, {"&amp;", "&"}};
  for (const auto& [from, to] : entities)
    for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; ++at)
      text.replace(at, std::string(from).size(), to);
  return text;
}

// Returns the root's children. A tag that is not closed, closes another element, or is no tag fails the test.
inline element parsed_markup(const std::string& markup) {
  element root;
  std::vector<element*> open{&root};
  for (std::size_t at = 0; at < markup.size();) {
    if (markup[at] != '<') {
      const std::size_t end = std::min(markup.find('<', at), markup.size());
      open.back()->text += without_entities(markup.substr(at, end - at));
      at = end;
      continue;
    }
    const std::size_t end = markup.find('>', at);
    REQUIRE(end != std::string::npos);
    std::string tag = markup.substr(at + 1, end - at - 1);
    at = end + 1;
    if (tag.starts_with("!DOCTYPE")) continue;
    if (tag.starts_with("/")) {
      REQUIRE_MESSAGE(open.back()->name == tag.substr(1), "</", tag.substr(1), "> closes <", open.back()->name, ">");
      open.pop_back();
      REQUIRE_FALSE(open.empty());
      continue;
    }
    const bool empty = tag.ends_with("/");
    if (empty) tag.pop_back();
    element e;
    std::size_t next = tag.find(' ');
    e.name = tag.substr(0, next);
    REQUIRE_MESSAGE(e.name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789") == std::string::npos, e.name);
    while (next != std::string::npos && (next = tag.find_first_not_of(' ', next)) != std::string::npos) {
      const std::size_t equals = tag.find('=', next);
      REQUIRE_MESSAGE((equals != std::string::npos && equals + 1 < tag.size()), tag);
      const bool quoted = tag[equals + 1] == '"';
      const std::size_t begin = equals + (quoted ? 2 : 1);
      const std::size_t close = quoted ? tag.find('"', begin) : std::min(tag.find(' ', begin), tag.size());
      REQUIRE_MESSAGE(close != std::string::npos, tag);
      e.attributes[tag.substr(next, equals - next)] = without_entities(tag.substr(begin, close - begin));
      next = close + 1;
    }
    open.back()->children.push_back(e);
    if (!empty && e.name != "meta") open.push_back(&open.back()->children.back());
  }
  REQUIRE_MESSAGE(open.size() == 1, "<", open.back()->name, "> is not closed");
  return root;
}

} // namespace regatta::test
