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
  CHECK(nearest("vgg", names) == "vgg16");             // the beginning of a name
  CHECK(nearest("Step", {"steps", "step"}) == "step"); // equal but for its case
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

TEST_CASE("nothing of foreign text moves a terminal") {
  CHECK(cleaned("\x1b[2J\x1b]52;c;eA==\x07 a\x7f") == " [2J ]52;c;eA==  a ");
  CHECK(cleaned("a\xc2\x9b"
                "2Jb\xc2\x85") == "a 2Jb "); // C1: CSI, next line
  CHECK(cleaned("a\xe2\x80\xae"
                "b\xe2\x81\xa6"
                "c") == "a b c");                                           // bidi override, isolate
  CHECK(cleaned("\xe2\x80\x8e\xe2\x80\x8f\xd8\x9c\xe2\x80\xa8") == "    "); // marks; line separator
  CHECK(cleaned("a\x9b"
                "2Jb\xff\xc0\xaf\xed\xa0\x80") == "a 2Jb      "); // no UTF-8: one space a byte
  CHECK(cleaned("a\xef\xbf\xbe\xef\xbf\xbf") == "a  ");           // U+FFFE, U+FFFF
  const std::string fine =
      "d\xc3\xa9j\xc3\xa0 \xe6\x97\xa5\xe6\x9c\xac \xf0\x9f\x98\x80 \xe2\x80\x93 \xe2\x81\xa5 \xc2\xa0";
  CHECK(cleaned(fine) == fine);
  CHECK(one_line("  \x1b[31m two\n  ") == "[31m two");
}

TEST_CASE("the length of a UTF-8 sequence") {
  CHECK(utf8_sequence("a") == 1);
  CHECK(utf8_sequence("\xc3\xa9x") == 2);
  CHECK(utf8_sequence("\xe6\x97\xa5") == 3);
  CHECK(utf8_sequence("\xf0\x9f\x98\x80") == 4);
  for (const char* none :
       {"\xc0\xaf", "\xc3", "\xe0\x80\xaf", "\xed\xa0\x80", "\xf0\x80\x80\xaf", "\xf4\x90\x80\x80", "\x80"})
    CHECK(utf8_sequence(none) == 0);
}
