# SPDX-License-Identifier: Apache-2.0
#
# Doxygen's filter for the headers of the SDK. Turns a plain comment directly before a declaration, or behind it on the
# same line, into a Doxygen comment, and the comment at the top of a file into the file's. Comments inside function
# bodies stay as they are: Doxygen would add them to the function's page. A file gets one line more, for @file.

# Returns a line of a comment as Markdown. Indented lines after an empty one (a table or code) become a code block,
# unless they belong to a list. In other lines, characters that Doxygen would read as commands or tags are escaped.
function prose(text,   parts, n, i, out) {
  if (text ~ /^ ?[-*] /) list = 1
  else if (text !~ /^ /) list = 0
  verbatim = !list && text ~ /^  / && (verbatim || empty)
  empty = text ~ /^ *$/
  if (verbatim) return "    " text
  n = split(text, parts, "`")
  for (i = 1; i <= n; ++i) {
    if (i % 2 == 1) {
      gsub(/[\\@]/, "\\\\&", parts[i])
      gsub(/[<#%]/, "\\\\&", parts[i])
    }
    out = out (i > 1 ? "`" : "") parts[i]
  }
  return out
}

# Counts the braces of a line of code, to know whether the next line lies in a function body.
function braces(code,   i, c) {
  gsub(/"([^"\\]|\\.)*"/, "", code)
  gsub(/'([^'\\]|\\.)'/, "", code)
  for (i = 1; i <= length(code); ++i) {
    c = substr(code, i, 1)
    if (c == "{") {
      ++depth
      if (!body && statement !~ /(^|[^a-z_])(namespace|struct|class|union|enum|concept|extern)([^a-z_]|$)/) body = depth
      if (!body) statement = ""
    } else if (c == "}") {
      if (body == depth) { body = 0; statement = "" }
      --depth
    } else if (c == ";" && !body) {
      statement = ""
    } else if (!body) {
      statement = statement c
    }
  }
  statement = statement " "
}

# Writes the comment that was collected, as a Doxygen comment if it documents the next line.
function flush(documents,   i, text) {
  list = verbatim = empty = 0
  for (i = 1; i <= count; ++i) {
    text = block[i]
    if (!documents) { print raw[i]; continue }
    if (kind == "//") {
      sub(/^[ \t]*\/\/ ?/, "", text)
      print (i == 1 && file_comment ? "/// @file\n" : "") "/// " prose(text)
    } else {
      closes = sub(/ *\*\/[ \t]*$/, "", text)
      if (i == 1) sub(/^[ \t]*\/\* ?/, "", text)
      else sub(/^[ \t]*\*? ?/, "", text)
      print (i == 1 ? "/** " (file_comment ? "@file\n" : "") : " * ") prose(text) (closes ? " */" : "")
    }
  }
  count = 0
}

# A line of a comment that has a line of its own.
{
  if (kind == "/*" && !ended) {
    raw[++count] = block[count] = $0
    if ($0 ~ /\*\//) ended = 1
    next
  }
}
!body && !directive && /^[ \t]*\/\// {
  if (count && kind != "//") flush(0)
  kind = "//"; ended = 1
  if ($0 ~ /SPDX|NOLINT/ || (count == 0 && $0 ~ /^[ \t]*\/\/[ \t]*$/) || $0 ~ /----/) { print; next }
  if (!seen_code && !top_done) file_comment = 1
  raw[++count] = block[count] = $0
  next
}
!body && !directive && /^[ \t]*\/\*/ {
  if (count) flush(0)
  kind = "/*"
  if (!seen_code && !top_done) file_comment = 1
  line = $0
  if (line ~ /SPDX/) { sub(/SPDX-License-Identifier: Apache-2.0/, "", line) }
  raw[++count] = $0; block[count] = line
  ended = $0 ~ /\*\//
  next
}
{
  if (count) {
    # Another line than a declaration follows: the comment belongs to nothing, unless it is the file's.
    documents = file_comment || ($0 !~ /^[ \t]*$/ && $0 !~ /^[ \t]*[#}]/ && $0 !~ /^[ \t]*(public|private|protected):/)
    if ($0 ~ /^[ \t]*#[ \t]*define/) documents = 1
    flush(documents)
    if (file_comment) { top_done = 1; file_comment = 0 }
  }
  kind = ""
  line = $0
  code = line
  if (line ~ /^[ \t]*#/ || directive) {
    directive = line ~ /\\$/
    seen_code = seen_code || line !~ /^[ \t]*$/
    print line
    next
  }
  if (line !~ /^[ \t]*$/) seen_code = 1
  if (!body && line !~ /^[ \t]*}|NOLINT/ && match(line, /[;,}][ \t]*\/\/ /)) {
    code = substr(line, 1, RSTART)
    line = code " ///< " prose(substr(line, RSTART + RLENGTH))
  } else if (!body && match(line, /[A-Za-z0-9_;,}][ \t]*\/\* .*\*\/[ \t]*$/)) {
    code = substr(line, 1, RSTART)
    text = substr(line, RSTART + 1)
    sub(/^[ \t]*\/\* /, "", text); sub(/ *\*\/[ \t]*$/, "", text)
    line = code " /**< " prose(text) " */"
  } else {
    sub(/\/\/.*/, "", code)
    gsub(/\/\*.*\*\//, "", code)
  }
  braces(code)
  print line
}
END { if (count) flush(0) }
