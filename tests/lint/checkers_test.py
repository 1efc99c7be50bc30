#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The checkers find what they claim to find: each rule is broken once, in a tree made for it."""

import importlib.machinery
import importlib.util
import os
import sys
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(ROOT, "tests", "cli"))

import expect  # noqa: E402


def load(name):
    path = os.path.join(ROOT, "scripts", name)
    loader = importlib.machinery.SourceFileLoader(name, path)
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


check_layers = load("check_layers")
check_docs = load("check_docs")
import page_rules  # noqa: E402  (check_docs made it known)
HEAD = "/* SPDX-License-Identifier: MIT */\n"


def findings_of(files):
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as stream:
                stream.write(text)
        return check_layers.Checker(root).run()


class Layers(unittest.TestCase):
    def assert_finds(self, part, files):
        found = findings_of(files)
        self.assertEqual(len(found), 1, found)
        self.assertIn(part, found[0])

    def test_a_clean_tree_has_no_findings(self):
        text = HEAD + '#include "base/size.h"\n#include <stdint.h>\n#include <unfrag/status.h>\n'
        self.assertEqual(findings_of({"src/alloc/block.c": text, "src/base/size.h": HEAD}), [])

    def test_an_upward_include_is_found(self):
        text = HEAD + '#include "replay/engine.h"\n'
        self.assert_finds("src/trace must not know replay/engine.h",
                          {"src/trace/reader.c": text, "src/replay/engine.h": HEAD})

    def test_siblings_do_not_know_each_other(self):
        self.assert_finds("src/alloc must not know unfrag/trace.h",
                          {"src/alloc/core.c": HEAD + "#include <unfrag/trace.h>\n"})

    def test_the_library_includes_no_third_party_header(self):
        self.assert_finds("libc alone", {"src/alloc/core.c": HEAD + "#include <jansson.h>\n"})

    def test_a_public_header_without_an_owner_is_found(self):
        self.assert_finds("whose is it", {"cli/main.c": HEAD + "#include <unfrag/new.h>\n"})

    def test_a_source_file_is_not_included(self):
        self.assert_finds("source file", {"cli/main.c": HEAD + '#include "other.c"\n'})

    def test_a_file_of_901_lines_is_too_long(self):
        self.assert_finds("901 lines", {"cli/main.c": HEAD + "\n" * 900})

    def test_a_function_of_71_lines_is_too_long(self):
        body = "    call();\n" * 69
        self.assert_finds("71 lines", {"cli/main.c": HEAD + "void f(void)\n{\n" + body + "}\n"})

    def test_a_function_nested_5_deep_is_found(self):
        text = "void f(void)\n{\n" + "    if (a) {\n" * 5 + "    }\n" * 5 + "}\n"
        self.assert_finds("nested 5 deep", {"cli/main.c": HEAD + text})

    def test_a_missing_license_line_is_found(self):
        self.assert_finds("SPDX", {"cli/main.c": "int a;\n"})

    def test_a_file_named_after_nothing_is_found(self):
        self.assert_finds("named after a noun", {"cli/utils.c": HEAD})

    def test_a_macro_that_returns_is_found(self):
        text = "#define TRY(x) \\\n    if (x) \\\n    return 1\n"
        self.assert_finds("a macro contains return", {"cli/main.c": HEAD + text})

    def test_bare_used_and_free_are_no_names(self):
        self.assert_finds("'used' alone", {"cli/main.c": HEAD + "int used;\n"})
        self.assert_finds("'free' alone", {"cli/main.c": HEAD + "int free;\n"})

    def test_free_as_a_call_or_in_words_is_fine(self):
        text = HEAD + '/* is free */\nvoid f(void)\n{\n    free(a);\n    puts("used");\n}\n'
        self.assertEqual(findings_of({"cli/main.c": text}), [])


class Expect(unittest.TestCase):
    def test_wildcards_match_lines_and_parts(self):
        self.assertTrue(expect.matches(["a", "...", "b[..]d"], ["a", "x", "y", "b--d"]))
        self.assertTrue(expect.matches(["...", "b"], ["b"]))
        self.assertFalse(expect.matches(["a", "...", "b"], ["a", "x"]))
        self.assertFalse(expect.matches(["a"], ["a", "b"]))
        self.assertFalse(expect.matches([], ["a"]))
        self.assertFalse(expect.matches(["a.c"], ["abc"]))


class Docs(unittest.TestCase):
    def test_a_broken_link_is_found(self):
        with tempfile.TemporaryDirectory() as root:
            with open(os.path.join(root, "README.md"), "w", encoding="utf-8") as stream:
                stream.write("# A heading\n[x](missing.md) [y](#a-heading) [z](#nowhere)\n")
            found = check_docs.link_findings(root, ["README.md"])
        self.assertEqual(len(found), 2, found)

    def test_options_are_read_from_help(self):
        text = "  -t, --to=FORM    x\n      --verify     y\n  -?, --help       z\n"
        self.assertEqual(check_docs.options_in_help(text), {"--to", "--verify"})

    def test_an_example_that_differs_is_found(self):
        good = "```console tested\n$ echo one\none\n```\n"
        bad = "```console tested\n$ echo one\ntwo\n```\n"
        self.assertEqual(check_docs.example_findings(ROOT, "x.md", good, dict(os.environ)), [])
        self.assertEqual(len(check_docs.example_findings(ROOT, "x.md", bad, dict(os.environ))), 1)

    def test_a_command_may_go_on_over_several_lines(self):
        text = "```console tested\n$ cat <<'END'\n> one\n> two\n> END\none\n%s\n```\n"
        environment = dict(os.environ)
        self.assertEqual(check_docs.example_findings(ROOT, "x.md", text % "two", environment), [])
        found = check_docs.example_findings(ROOT, "x.md", text % "three", environment)
        self.assertEqual(len(found), 1, found)

    def test_an_undocumented_status_is_found(self):
        listed = {"UF_ERROR_IO": 81, "UF_ERROR_CONF": 20}
        found = check_docs.status_findings(listed, "| `UF_ERROR_IO` | 80 |\n| `UF_ERROR_X` | 1 |\n")
        self.assertEqual(len(found), 3, found)


class Pages(unittest.TestCase):
    ADVICE = ("| [A](#a) | false | [B](#b) | inert |\n\n"
              "### A\n\n> It is so.\n\n**False.** No.\n\n| `x-b1` | 1.50 GiB |\n\n"
              "### B\n\n> It helps.\n\n**Inert.** Not measured here.\n\n## End\n")
    PEAKS = "# origin\nscenario\tbytes\nx-b1\t1610612736\n"

    def assert_advice(self, count, old="", new="", peaks=PEAKS):
        found = page_rules.advice_findings(self.ADVICE.replace(old, new), peaks)
        self.assertEqual(len(found), count, found)

    def test_a_whole_page_of_advice_has_no_findings(self):
        self.assert_advice(0)

    def test_a_verdict_that_differs_from_the_table_is_found(self):
        self.assert_advice(1, "**Inert.**", "**Partly.**")

    def test_a_claim_that_the_table_lacks_is_found(self):
        self.assert_advice(1, " [B](#b) | inert |", "")

    def test_a_claim_without_a_verdict_is_found(self):
        self.assert_advice(2, "**Inert.** ", "")  # and the table has one that is not told

    def test_a_word_that_is_no_verdict_is_found(self):
        self.assert_advice(2, "**Inert.**", "**Maybe.**")

    def test_a_claim_that_nothing_shows_is_found(self):
        self.assert_advice(1, " Not measured here.", "")

    def test_an_example_that_is_not_run_is_found(self):
        self.assert_advice(1, "## End\n", "```console\n$ unfrag\n```\n## End\n")

    def test_a_figure_that_was_not_measured_is_found(self):
        self.assert_advice(1, "1.50 GiB", "1.51 GiB")
        self.assert_advice(1, peaks=self.PEAKS + "y-b1\t5\n")

    def test_twins_may_differ_in_words_only(self):
        ours = "# a\n[b](B.md)\n\n```console\n$ make # it\n```\nSee [x](x.md) and `y`.\n"
        theirs = "# b\n[a](A.md)\n\n```console\n$ make   # das\n```\nSiehe [z](x.md), `y`.\n"

        def twins(old, new):
            return page_rules.twin_findings("A.md", ours, "B.md", theirs.replace(old, new))
        self.assertEqual(twins("", ""), [])
        for old, new in (("make", "male"), ("x.md", "y.md"), ("# b", "## b"), ("`y`", "`z`"),
                         ("(A.md)", "(x.md)")):
            self.assertTrue(twins(old, new), old)

    def test_an_id_or_a_cause_without_an_example_is_found(self):
        found = page_rules.check_example_findings("no-program", "### a\n\nError. Words.\n",
                                                  {"a": "error", "b": "error"})
        self.assertEqual(len(found), 2, found)
        found = page_rules.explain_example_findings(
            "no-program", "\n## Causes\n\n### a\n\nWords.\n\n### c\n\nWords.\n", ["a", "b"])
        self.assertEqual(len(found), 3, found)


if __name__ == "__main__":
    program = unittest.main(exit=False, verbosity=1)
    result = program.result
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
