// SPDX-License-Identifier: Apache-2.0
//
// Foreign text in HTML and XML, and the formats that a report's name says.
#include "check/report/report.hpp"
#include "files/markup.hpp"

#include <doctest/doctest.h>

using namespace regatta;
using namespace regatta::conformance;

TEST_CASE("markup in a text is escaped") {
  CHECK(markup_text("a < b && c > \"d\" 'e'") == "a &lt; b &amp;&amp; c &gt; &quot;d&quot; &#39;e&#39;");
  CHECK(markup_text("]]></pre>") == "]]&gt;&lt;/pre&gt;");
}

TEST_CASE("characters that XML forbids, and bytes that are no UTF-8, become spaces") {
  CHECK(markup_text(std::string("a\0b", 3)) == "a b");
  CHECK(markup_text("\x01\x1b[2J\x7f\r") == "  [2J  ");
  CHECK(markup_text("a\xff"
                    "b\xed\xa0\x80") == "a b   "); // the last three bytes are a surrogate
  CHECK(markup_text("\xef\xbf\xbe\xef\xbf\xbf.") == "  .");
}

TEST_CASE("other text is kept, lines too") {
  CHECK(markup_text("déjà 量 \xf0\x9f\x9a\xa4") == "déjà 量 \xf0\x9f\x9a\xa4");
  CHECK(markup_text("one\n\ntwo\n") == "one\n\ntwo");
  CHECK(markup_text("").empty());
}

TEST_CASE("the ending of a name says the format") {
  for (const char* name : {"a.html", "b.json", "dir.d/c.xml", "d.junit"}) CHECK(has_report_format(name));
  for (const char* name : {"a", "a.pdf", ".html", "html", "a.html.gz", ""}) CHECK_FALSE(has_report_format(name));
}
