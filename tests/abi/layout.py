#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the layout of the plugin interface with the table in layout.txt.

layout.py            fails with the lines that changed, and names C and C++ where they disagree
layout.py --append   adds new lines to the table; refuses if any other line changed

The table has a line for each struct, member, constant, alias and macro of abi/*.h and ext/*.h. pycparser lists them from
the preprocessed headers, and a compiled program prints sizes, offsets and values. Numbers are those of 64-bit machines.
"""

import argparse
import pathlib
import re
import subprocess
import sys
import tempfile

from pycparser import CParser, c_ast, c_generator

ROOT = pathlib.Path(__file__).resolve().parents[2]
TABLE = ROOT / "tests" / "abi" / "layout.txt"
INCLUDE = ROOT / "sdk" / "include"
# Macros that a minor version may change: the minor version, the limit that no layout depends on, a compiler's attribute.
FREE_MACROS = {"RG_ABI_MINOR", "RG_MAX_DIMS", "RG_EXPORT"}
# Structs whose comment says that their size never changes. All other structs must say their size themselves.
FIXED = {"rg_value", "rg_buffer", "rg_completion", "rg_blob", "rg_op", "rg_gemm"}
COMMENT = """\
# SPDX-License-Identifier: Apache-2.0
#
# The layout of sdk/include/regatta/abi/*.h and ext/*.h, in bytes, on 64-bit machines. Written by tests/abi/layout.py.
"""


# --------------------------------------------------------------------------------- reading the headers

def includes(include):
    """The text that includes every C header of the interface."""
    headers = sorted(p for folder in ("abi", "ext") for p in (include / "regatta" / folder).glob("*.h"))
    return "".join(f"#include <{h.relative_to(include)}>\n" for h in headers)


def preprocess(cc, include, *options):
    command = [cc, "-std=c99", "-E", *options, "-I", str(include), "-x", "c", "-"]
    return subprocess.run(command, input=includes(include), capture_output=True, text=True, check=True).stdout


def without_names(node):
    """Removes the names of parameters, which no layout depends on. Returns the node."""
    for _, child in node.children():
        without_names(child)
    if isinstance(node, c_ast.TypeDecl):
        node.declname = None
    if isinstance(node, c_ast.Decl):
        node.name = None
    return node


def type_text(node):
    return " ".join(c_generator.CGenerator().visit(without_names(node)).split())


class Lines:
    """Collects C statements, each of which prints one line of the table."""

    def __init__(self):
        self.declarations = []
        self.statements = []

    def add(self, text, *values):
        text = text.replace("\\", "\\\\").replace('"', '\\"')
        arguments = "".join(f", (long long)({v})" for v in values)
        self.statements.append(f'  printf("{text}\\n"{arguments});\n')

    def constants(self, enum):
        for c in enum.values.enumerators:
            self.add(f"constant {c.name} = %lld", c.name)

    def struct(self, node):
        name = node.name
        first = node.decls[0]
        if name not in FIXED and first.name != "struct_size" and type_text_of(first) != "rg_op":
            sys.exit(f"{node.coord}: error: {name}: expected struct_size or an rg_op first, got {first.name}; "
                     "or add it to FIXED in tests/abi/layout.py")
        self.declarations.append(f"struct align_{name} {{ char c; {name} s; }};\n")
        self.add(f"struct {name} size %lld align %lld", f"sizeof({name})", f"offsetof(struct align_{name}, s)")
        for m in node.decls:
            self.add(f"member {name}.{m.name} at %lld size %lld type {type_text(m.type)}",
                     f"offsetof({name}, {m.name})", f"sizeof((({name}*)0)->{m.name})")

    def typedef(self, node):
        inner = node.type.type if isinstance(node.type, c_ast.TypeDecl) else None
        if isinstance(inner, c_ast.Struct):
            if inner.decls:
                self.struct(inner)
        elif isinstance(inner, c_ast.Enum):
            self.add(f"enum {node.name} size %lld", f"sizeof({node.name})")
            self.constants(inner)
        else:
            self.add(f"alias {node.name} size %lld type {type_text(node.type)}", f"sizeof({node.name})")


def type_text_of(declaration):
    inner = getattr(declaration.type, "type", None)
    return " ".join(inner.names) if isinstance(inner, c_ast.IdentifierType) else ""


def listed(cc, include):
    """Returns the statements that print all lines of the table."""
    lines = Lines()
    for macro in sorted(re.findall(r"^#define (RG_\w+ .+)$", preprocess(cc, include, "-dM"), re.MULTILINE)):
        name, value = macro.split(" ", 1)
        if name not in FREE_MACROS:
            lines.add(f"macro {name} = {value}")
    for node in CParser().parse(preprocess(cc, include), "abi.h").ext:
        if not str(node.coord.file).startswith(str(include)):
            continue
        if isinstance(node, c_ast.Typedef):
            lines.typedef(node)
        elif isinstance(node.type, c_ast.Enum):
            lines.constants(node.type)
        elif isinstance(node.type, c_ast.Struct) and node.type.decls:
            lines.struct(node.type)
    return lines


def printed(compiler, include, lines):
    """Compiles and runs the program that prints the table. Returns its output."""
    program = ("#include <stdio.h>\n" + includes(include) + "".join(lines.declarations) + "int main(void) {\n" +
               "".join(lines.statements) + "  return 0;\n}\n")
    with tempfile.TemporaryDirectory() as folder:
        binary = pathlib.Path(folder) / "layout"
        subprocess.run([*compiler, "-I", str(include), "-", "-o", str(binary)], input=program, text=True, check=True)
        return subprocess.run([str(binary)], capture_output=True, text=True, check=True).stdout


def table(cc, cxx, include=INCLUDE):
    """Returns the current table. Fails if C99 and C++ disagree."""
    lines = listed(cc, include)
    in_c = printed([cc, "-std=c99", "-pedantic-errors", "-x", "c"], include, lines)
    # Before C++17 offsetof was defined for fewer types; these are plain structs.
    in_cxx = printed([cxx, "-std=c++20", "-x", "c++"], include, lines)
    for c, cpp in zip(in_c.splitlines(), in_cxx.splitlines()):
        if c != cpp:
            sys.exit(f"error: C and C++ disagree: C has '{c}', C++ has '{cpp}'")
    return in_c


# --------------------------------------------------------------------------------- comparing two tables

LINE = re.compile(r"(?P<kind>\w+) (?P<name>\S+)(?: = (?P<value>.*))?(?: at (?P<at>\d+))?(?: size (?P<size>\d+))?"
                  r"(?: align (?P<align>\d+))?(?: type (?P<type>.*))?")


def parsed(text):
    """Returns {kind and name: (number of the line, its values)}."""
    entries = {}
    for number, line in enumerate(text.splitlines(), 1):
        if line and not line.startswith("#"):
            match = LINE.fullmatch(line)
            if match is None:
                sys.exit(f"{TABLE}:{number}: error: expected a line that layout.py wrote, got '{line}'")
            values = match.groupdict()
            entries[values.pop("kind"), values.pop("name")] = (number, values)
    return entries


WORDS = {"value": "changed from {} to {}", "at": "moved from {} to {}", "size": "changed its size from {} to {}",
         "align": "changed its alignment from {} to {}", "type": "changed its type from '{}' to '{}'"}


def difference(key, old, new):
    """Returns what changed in a line, or null if it may change so."""
    kind, name = key
    for what, words in WORDS.items():
        grows = kind == "struct" and what == "size" and name not in FIXED and int(new[what]) > int(old[what])
        if old[what] != new[what] and not grows:
            return f"{name} {words.format(old[what], new[what])}"
    return None


def compare(old_text, new_text):
    """Returns (number of the old line, what breaks old binaries) of each change, and the names that were appended."""
    old, new = parsed(old_text), parsed(new_text)
    broken, appended = [], []
    for key, (number, values) in old.items():
        change = difference(key, values, new[key][1]) if key in new else f"{key[1]} was removed"
        if change:
            broken.append((number, change))
    for key, (_, values) in new.items():
        if key in old:
            continue
        struct = old.get(("struct", key[1].split(".")[0])) if key[0] == "member" else None
        if struct and int(values["at"]) < int(struct[1]["size"]):
            broken.append((struct[0], f"{key[1]} was inserted at {values['at']}, within the former {struct[1]['size']} "
                                      "bytes of its struct: members are appended behind them, not into padding"))
        else:
            appended.append(key[1])
    return broken, appended


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--append", action="store_true")
    parser.add_argument("--cc", default="cc")
    parser.add_argument("--cxx", default="c++")
    options = parser.parse_args()
    now = COMMENT + table(options.cc, options.cxx)
    broken, appended = compare(TABLE.read_text(), now)
    for number, change in broken:
        print(f"{TABLE}:{number}: error: {change}")
    if broken:
        print("Plugins that were built with the former headers read or write the wrong bytes. Undo the change: "
              "the interface is frozen (docs/compatibility.md)")
        return 1
    if options.append:
        TABLE.write_text(now)
    elif appended:
        print(f"{TABLE}: error: expected lines for {', '.join(appended)}, which were appended to the interface; run "
              "tests/abi/layout.py --append")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
