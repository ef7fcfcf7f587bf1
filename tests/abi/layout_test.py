#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""layout_test.py CC CXX: edits copies of the headers as a developer might, and expects what layout.py says."""

import pathlib
import shutil
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True  # the tree stays as it is

import layout  # noqa: E402: after the line above

CC, CXX = sys.argv[1:3]


class Changes(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.before = layout.table(CC, CXX)

    def changed(self, header, old, new):
        """Returns what breaks and what is appended if `old` becomes `new` in a header."""
        with tempfile.TemporaryDirectory() as folder:
            include = pathlib.Path(folder) / "include"
            shutil.copytree(layout.INCLUDE, include)
            path = include / "regatta" / header
            text = path.read_text()
            self.assertIn(old, text)
            path.write_text(text.replace(old, new, 1))
            broken, appended = layout.compare(self.before, layout.table(CC, CXX, include))
            return [text for _, text in broken], appended

    def test_nothing_changed(self):
        self.assertEqual(self.changed("abi/base.h", "uint64_t time_ns;", "uint64_t time_ns;"), ([], []))

    def test_a_comment_and_the_name_of_a_parameter_may_change(self):
        self.assertEqual(self.changed("abi/transport.h", "rg_status (*cancel)(void* self, uint32_t peer);",
                                      "rg_status (*cancel)(void* self, uint32_t rank); /* the peer */"), ([], []))

    def test_a_member_may_be_appended(self):
        self.assertEqual(self.changed("abi/transport.h", "} rg_world;", "  uint64_t more;\n} rg_world;"),
                         ([], ["rg_world.more"]))

    def test_an_operation_may_grow(self):
        self.assertEqual(self.changed("abi/operations.h", "} rg_op_timer;", "  uint64_t more;\n} rg_op_timer;"),
                         ([], ["rg_op_timer.more"]))

    def test_a_constant_a_struct_and_an_extension_may_be_added(self):
        self.assertEqual(self.changed("abi/base.h", "enum { RG_MEMORY_HOST = 1, RG_MEMORY_DEVICE = 2 };",
                                      '#define RG_EXT_MORE "regatta.more/1"\n'
                                      "enum { RG_MEMORY_HOST = 1, RG_MEMORY_DEVICE = 2, RG_MEMORY_MORE = 4 };\n"
                                      "typedef struct rg_more { uint32_t struct_size; } rg_more;"),
                         ([], ["RG_EXT_MORE", "RG_MEMORY_MORE", "rg_more", "rg_more.struct_size"]))

    def test_an_inserted_member_moves_the_others(self):
        broken, _ = self.changed("abi/model.h", "  uint32_t ndim;\n", "  uint32_t ndim;\n  uint64_t more;\n")
        self.assertIn("rg_tensor.shape moved from 32 to 40", broken)

    def test_a_member_is_not_put_into_padding(self):
        broken, appended = self.changed("abi/operations.h", "  uint64_t step;\n  uint64_t first;",
                                        "  uint32_t more;\n  uint64_t step;\n  uint64_t first;")
        self.assertEqual(broken, ["rg_op_apply.more was inserted at 28, within the former 72 bytes of its struct: members "
                                  "are appended behind them, not into padding"])
        self.assertEqual(appended, [])

    def test_a_member_is_not_appended_into_padding_at_the_end(self):
        broken, _ = self.changed("abi/base.h", "} rg_plugin;", "  uint32_t more;\n} rg_plugin;")
        self.assertEqual(len(broken), 1)
        self.assertIn("rg_plugin.more was inserted at 36", broken[0])

    def test_a_member_is_not_removed(self):
        broken, _ = self.changed("abi/transport.h", "  rg_status (*close)(void* self, uint64_t timeout_ns);\n", "")
        self.assertIn("rg_transport.close was removed", broken)

    def test_a_function_keeps_its_type(self):
        broken, _ = self.changed("abi/transport.h", "rg_status (*cancel)(void* self, uint32_t peer);",
                                 "rg_status (*cancel)(void* self, uint64_t peer);")
        self.assertEqual(broken, ["rg_transport.cancel changed its type from 'rg_status (*)(void *, uint32_t)' to "
                                  "'rg_status (*)(void *, uint64_t)'"])

    def test_a_struct_of_fixed_size_does_not_grow(self):
        broken, _ = self.changed("abi/transport.h", "} rg_blob;", "  uint64_t more;\n} rg_blob;")
        self.assertEqual(broken, ["rg_blob changed its size from 16 to 24"])

    def test_a_constant_keeps_its_value(self):
        broken, _ = self.changed("abi/base.h", "RG_AGAIN = 2,", "RG_AGAIN = 5,")
        self.assertEqual(broken, ["RG_AGAIN changed from 2 to 5"])

    def test_a_type_keeps_its_size(self):
        broken, _ = self.changed("abi/base.h", "typedef uint64_t rg_fence;", "typedef uint32_t rg_fence;")
        self.assertIn("rg_fence changed its size from 8 to 4", broken)

    def test_the_id_of_an_extension_stays(self):
        broken, _ = self.changed("ext/graph.h", '"regatta.graph/1"', '"regatta.graph/2"')
        self.assertEqual(broken, ['RG_EXT_GRAPH changed from "regatta.graph/1" to "regatta.graph/2"'])

    def test_c_and_cxx_must_agree(self):
        with self.assertRaisesRegex(SystemExit, "C and C\\+\\+ disagree: C has 'struct rg_blob size 16"):
            self.changed("abi/transport.h", "} rg_blob;", "#ifdef __cplusplus\n  int more;\n#endif\n} rg_blob;")

    def test_a_struct_must_say_its_size(self):
        with self.assertRaisesRegex(SystemExit, "rg_more: expected struct_size"):
            self.changed("abi/transport.h", "} rg_blob;", "} rg_blob;\ntypedef struct rg_more { int a; } rg_more;")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
