#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""examples/generate.py without a GPU: generate_test.py GENERATE UNFRAG.

What it accepts and refuses, that its switches are those of `unfrag plan`, and what it draws. That
it makes images is seen by tests/gpu/torch/images.py.
"""

import importlib.util
import os
import re
import subprocess
import sys
import tempfile
import unittest

GENERATE, UNFRAG = sys.argv[1:3]
SPEC = importlib.util.spec_from_file_location("generate", GENERATE)
sys.dont_write_bytecode = True
generate = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(generate)


def run(*words):
    """Runs the program where PyTorch cannot be imported."""
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "torch.py"), "w", encoding="utf-8") as file:
            file.write("raise ImportError('no torch here')\n")
        environment = dict(os.environ, PYTHONPATH=folder, PYTHONDONTWRITEBYTECODE="1")
        return subprocess.run([sys.executable, GENERATE, *words], env=environment, text=True,
                              capture_output=True, stdin=subprocess.DEVNULL, check=False)


class Options(unittest.TestCase):
    def test_every_switch_of_plan_that_says_what_is_run_is_there(self):
        plan = subprocess.run([UNFRAG, "plan", "--help"], capture_output=True, text=True,
                              check=True).stdout
        section = plan.split("What is run:")[1].split("Where it must run:")[0]
        own = run("--help").stdout
        names = re.findall(r"--[a-z-]+", section)
        self.assertGreaterEqual(len(set(names)), 7)
        for name in names:
            self.assertIn(name, own)

    def test_without_pytorch_it_says_what_to_install_and_ends_with_4(self):
        done = run("sdxl", "--random-weights")
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stdout, "")
        self.assertIn("no torch here: install torch, diffusers", done.stderr)

    def test_usage_errors_end_with_2(self):
        for words in (["sdxl"], ["sdxl", "--random-weights", "--weights", "x"],
                      ["sdxl", "--random-weights", "--mixed", "--batch", "2"],
                      ["sdxl", "--random-weights", "--size", "1000x1000"],
                      ["sdxl", "--random-weights", "--size", "64"],
                      ["sdxl", "--random-weights", "--images", "0"],
                      ["sdxl", "--random-weights", "--limit", "6 parsecs"], ["flux"]):
            done = run(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)

    def test_sizes_are_binary_and_may_have_a_fraction(self):
        self.assertEqual(generate.size_bytes("9.5GiB"), 10200547328)
        self.assertEqual(generate.size_bytes("512MiB"), 536870912)
        self.assertEqual(generate.size_bytes("1000"), 1000)


class Rounds(unittest.TestCase):
    def options(self, **more):
        values = {"seed": 0, "mixed": False, "images": 3, "size": None, "batch": 1, **more}
        return generate.SimpleNamespace(**values)

    def test_sizes_are_taken_in_turn(self):
        sizes = [(512, 768), (1024, 1024)]
        self.assertEqual(generate.rounds(self.options(size=sizes, batch=2)),
                         [(512, 768, 2), (1024, 1024, 2), (512, 768, 2)])

    def test_mixed_rounds_depend_on_the_seed_alone(self):
        first = generate.rounds(self.options(mixed=True, images=8))
        self.assertEqual(first, generate.rounds(self.options(mixed=True, images=8)))
        self.assertNotEqual(first, generate.rounds(self.options(mixed=True, images=8, seed=1)))
        self.assertEqual(len(first), 8)
        for width, height, batch in first:
            self.assertIn((width, height), generate.MIXED_SIZES)
            self.assertIn(batch, (1, 2))


if __name__ == "__main__":
    result = unittest.TextTestRunner(verbosity=0).run(
        unittest.defaultTestLoader.loadTestsFromModule(sys.modules["__main__"]))
    bad = len(result.failures) + len(result.errors)
    print(f"{result.testsRun - bad} passed, {bad} failed")
    sys.exit(1 if bad else 0)
