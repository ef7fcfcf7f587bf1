// SPDX-License-Identifier: Apache-2.0
#include "base/text.hpp"

#include <doctest/doctest.h>

using namespace regatta;

TEST_CASE("edit distance") {
  CHECK(edit_distance("", "") == 0);
  CHECK(edit_distance("abc", "") == 3);
  CHECK(edit_distance("abc", "abd") == 1);
  CHECK(edit_distance("sync_ps", "snyc_ps") == 1);
  CHECK(edit_distance("kitten", "sitting") == 3);
}

TEST_CASE("a near name is found, a far one is not") {
  const std::vector<std::string> names{"allreduce", "none", "sync_ps", "vgg16"};
  CHECK(nearest("allreduse", names) == "allreduce");
  CHECK(nearest("Sync-PS", names) == "sync_ps");
  CHECK(nearest("vgg", names) == "vgg16"); // the beginning of a name
  CHECK(nearest("tcp", names).empty());
  CHECK(nearest("", names).empty());
  CHECK(nearest(std::string(100000, 'a'), names).empty());
  CHECK(did_you_mean("non", names) == ", did you mean \"none\"?");
  CHECK(did_you_mean("tcp", names).empty());
}

TEST_CASE("lines") {
  CHECK(join({"a", "", "b"}) == "a, , b");
  CHECK(join({}).empty());
  CHECK(one_line("  two\n lines\t ") == "two  lines");
  CHECK(one_line("\n\n").empty());
}
