#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""unfrag under a fake torch: the four ways to switch it on, record, trial, and what happens where it
cannot be active. The glue is real, compiled against the stub of PyTorch's interface; the GPU is the
fake driver library. python_test.py PROGRAM LIBUNFRAG FAKECUDA_DIR [unittest options]."""

import json
import os
import pickle
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

PROGRAM, LIBRARY, FAKECUDA = sys.argv[1:4]
HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))
SITE = CACHE = FOLDER = None
MIB = 1 << 20


def setUpModule():
    """A site folder with the fake torch, built once; the glue is built into one cache by the first
    test that needs it."""
    global SITE, CACHE, FOLDER
    FOLDER = tempfile.mkdtemp(prefix="unfrag-python-test-")
    SITE, CACHE = os.path.join(FOLDER, "site"), os.path.join(FOLDER, "cache")
    torch = os.path.join(SITE, "torch")
    shutil.copytree(os.path.join(HERE, "fake", "torch"), torch,
                    ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(os.path.join(HERE, "stub"), os.path.join(torch, "include"))
    os.mkdir(os.path.join(torch, "lib"))
    for name, sources in {"libc10.so": [os.path.join(HERE, "fake", "check.cpp")],
                          "libc10_cuda.so": [os.path.join(HERE, "stub", "stub.cpp"),
                                             os.path.join(HERE, "fake", "native.cpp")]}.items():
        path = os.path.join(torch, "lib", name)
        subprocess.run(["c++", "-std=c++17", "-shared", "-fPIC", "-O1", f"-Wl,-soname,{name}",
                        "-I", os.path.join(HERE, "stub"), "-x", "c++", *(sources or ["/dev/null"]),
                        "-o", path], check=True)


def tearDownModule():
    subprocess.run(["chmod", "-R", "u+rwX", FOLDER], check=False)
    shutil.rmtree(FOLDER, ignore_errors=True)


def environment(**changes):
    """Nothing of the caller's but what processes need. CUDA's headers are the stub's."""
    found = {"PATH": os.environ["PATH"], "HOME": FOLDER, "LC_ALL": "C.UTF-8",
             "PYTHONPATH": SITE, "XDG_CACHE_HOME": CACHE, "TMPDIR": FOLDER,
             "CUDA_HOME": os.path.join(FOLDER, "toolkit"), "UNFRAG_LIBRARY": LIBRARY,
             "LD_LIBRARY_PATH": FAKECUDA, "UNFRAG_FAKE_GPU": f"card=Fake|{8 << 30}|{8 << 30}", "PYTHONDONTWRITEBYTECODE": "1", "UNFRAG_HOME": ROOT, "CXXFLAGS": "-O0"}
    for name in ("ASAN_OPTIONS", "LSAN_OPTIONS", "LD_PRELOAD"):
        if name in os.environ:
            found[name] = os.environ[name]
    for name, value in changes.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = value
    return found


def make_toolkit():
    """cuda_runtime_api.h of the stub where a toolkit would have it."""
    include = os.path.join(FOLDER, "toolkit", "include", "crt")
    if not os.path.exists(include):
        os.makedirs(include)
        shutil.copy(os.path.join(HERE, "stub", "cuda_runtime_api.h"), os.path.dirname(include))
        open(os.path.join(include, "host_defines.h"), "w").close()


def run(words, cwd=None, timeout=120, **changes):
    make_toolkit()
    return subprocess.run(words, capture_output=True, text=True, check=False, cwd=cwd or FOLDER,
                          env=environment(**changes), timeout=timeout, stdin=subprocess.DEVNULL)


def unfrag(*words, **options):
    return run([PROGRAM, *words], **options)


def python(code, *before, **options):
    """Runs code, under `unfrag run BEFORE --` if there is a before."""
    words = [sys.executable, "-c", textwrap.dedent(code)]
    return run([PROGRAM, *before, "--", *words] if before else words, **options)


BACKEND = "import torch; torch.empty(1000); print(torch.cuda.get_allocator_backend())"


class SwitchingOn(unittest.TestCase):
    def test_run_puts_it_in_front_of_a_command(self):
        done = python(BACKEND, "run", "-v")
        self.assertEqual(done.stdout, "unfrag\n", done.stderr)
        self.assertRegex(done.stderr, r"unfrag: active: policy unfrag, no limit, torch 2\.11\.0"
                                      r"\+cu130, process \d+\n")

    def test_two_lines_in_a_script_before_and_after_torch(self):
        before = python("import unfrag; print(unfrag.enable())\nimport torch; "
                        "print(unfrag.is_enabled())", PYTHONPATH=f"{SITE}:{ROOT}/python")
        self.assertEqual(before.stdout, "None\nTrue\n", before.stderr)
        after = python("import torch, unfrag; print(unfrag.enable(limit='1GiB'), "
                       "unfrag.is_enabled()); print(unfrag.describe())",
                       PYTHONPATH=f"{SITE}:{ROOT}/python")
        self.assertTrue(after.stdout.startswith("True True\nactive: policy unfrag, limit 1.00 GiB"),
                        after.stdout + after.stderr)

    def test_env_prints_lines_for_a_shell(self):
        done = run(["sh", "-c", f'eval "$({PROGRAM} env --policy torch -v)"; '
                                f'{sys.executable} -c "{BACKEND}"; eval "$({PROGRAM} env --off)"; '
                                f'{sys.executable} -c "{BACKEND}"; echo $PYTHONPATH; '
                                'env | grep -c UNFRAG_POLICY'])
        self.assertEqual(done.stdout, f"unfrag\nnative\n{SITE}\n0\n", done.stderr)
        self.assertIn("active: policy torch", done.stderr)

    def test_children_and_their_children_have_it_and_nohup_too(self):
        code = f"import subprocess, sys; subprocess.run(['nohup', sys.executable, '-c', {BACKEND!r}])"
        done = python(code, "run")
        self.assertEqual(done.stdout, "unfrag\n", done.stderr)

    def test_the_limit_counts_and_the_message_names_the_cause(self):
        code = """
            import torch
            keep = torch.empty(600 << 20)
            try:
                torch.empty(600 << 20)
            except torch.OutOfMemoryError as error:
                print(error)
            """
        done = python(code, "run", "--limit", "1GiB")
        self.assertIn("CUDA out of memory. Tried to allocate 600.00 MiB. GPU 0 has", done.stdout)
        self.assertIn("1024.00 MiB allowed; Of the allocated memory 600.00 MiB is allocated by "
                      "PyTorch", done.stdout)
        self.assertIn("\nunfrag: ", done.stdout)
        explained = subprocess.run([PROGRAM, "explain", "-"], input=done.stdout, text=True,
                                   capture_output=True, check=False)
        self.assertEqual(explained.returncode, 0, explained.stderr)
        self.assertIn("600.00 MiB", explained.stdout)

    def test_disable_switches_everything_off(self):
        done = python(BACKEND, "run", "-v", UNFRAG_DISABLE="1")
        self.assertEqual((done.stdout, done.stderr), ("native\n", ""))

    def test_stock_leaves_pytorchs_own_with_the_limit(self):
        code = BACKEND + "\ntry:\n    torch.empty(2 << 30)\nexcept torch.OutOfMemoryError: print('full')"
        done = python(code, "run", "--policy", "stock", "--limit", "1GiB")
        self.assertEqual(done.stdout, "native\nfull\n", done.stderr)


class Launchers(unittest.TestCase):
    """What stands between `unfrag run` and the programs that use a GPU, as far as it can be played
    without it: processes, their environment and their order."""

    RANK = ("import os, torch; torch.empty(1000); "
            "line = os.environ['LOCAL_RANK'] + ' ' + torch.cuda.get_allocator_backend(); "
            "os.write(1, (line + chr(10)).encode())")  # in one piece: several ranks write

    def launcher(self, name, code):
        path = os.path.join(tempfile.mkdtemp(dir=FOLDER), name)
        with open(path, "w", encoding="utf-8") as stream:
            stream.write(f"#!{sys.executable}\n" + textwrap.dedent(code))
        os.chmod(path, 0o755)
        return path

    def torchrun(self):
        """As torch.distributed.run: a process for each rank, with its variables; it ends as the
        first one that fails."""
        return self.launcher("torchrun", f"""
            import os, subprocess, sys
            ranks = []
            for rank in range(3):
                variables = dict(os.environ, RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="3",
                                 TORCHELASTIC_RUN_ID="none")
                ranks.append(subprocess.Popen([sys.executable, "-u", "-c", {self.RANK!r}],
                                              env=variables))
            sys.exit(max(rank.wait() for rank in ranks))
            """)

    def test_every_rank_of_torchrun_has_it_and_the_glue_is_built_once(self):
        cache = os.path.join(FOLDER, "ranks")
        done = unfrag("run", "--", self.torchrun(), XDG_CACHE_HOME=cache)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), [f"{rank} unfrag" for rank in range(3)])
        self.assertEqual(done.stderr.count("building the glue"), 1, done.stderr)
        self.assertRegex(done.stderr, r"unfrag \[rank \d\]: building")
        left = [name for name in os.listdir(os.path.join(cache, "unfrag")) if ".tmp" in name]
        self.assertEqual(left, [])

    def test_a_rank_that_cannot_have_it_ends_torchrun(self):
        done = unfrag("run", "--", self.torchrun(), PYTORCH_NO_CUDA_MEMORY_CACHING="1")
        self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)
        for rank in range(3):
            self.assertIn(f"unfrag [rank {rank}]: unfrag's allocator is required", done.stderr)
        done = unfrag("run", "--optional", "--", self.torchrun(),
                      PYTORCH_NO_CUDA_MEMORY_CACHING="1")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.count("native"), 3, done.stderr)

    def test_accelerate_launch_of_one_process_has_it(self):
        """It imports torch itself, without CUDA, and starts the program as another Python."""
        accelerate = self.launcher("accelerate", f"""
            import os, subprocess, sys
            import torch
            variables = dict(os.environ, LOCAL_RANK="0", ACCELERATE_MIXED_PRECISION="no")
            done = subprocess.run([sys.executable, "-c", {self.RANK!r}], env=variables)
            sys.exit(done.returncode)
            """)
        done = unfrag("run", "--limit", "1GiB", "-v", "--", accelerate, "launch", "main.py")
        self.assertEqual((done.returncode, done.stdout), (0, "0 unfrag\n"), done.stderr)
        self.assertEqual(done.stderr.count("active: policy unfrag, limit 1.00 GiB"), 2, done.stderr)

    def test_a_kernel_of_jupyter_has_it_after_each_restart(self):
        """A kernel is a Python in a session of its own that reads cells from a pipe."""
        kernel = ("import sys; names = {}\n"
                  "for cell in sys.stdin: exec(cell, names)")
        jupyter = self.launcher("jupyter", f"""
            import subprocess, sys
            for _ in range(2):
                kernel = subprocess.Popen([sys.executable, "-c", {kernel!r}], text=True,
                                          stdin=subprocess.PIPE, start_new_session=True)
                kernel.communicate("import torch\\nx = torch.empty(1000)\\n"
                                   "print(torch.cuda.get_allocator_backend(), flush=True)\\n")
            """)
        done = unfrag("run", "--", jupyter, "lab")
        self.assertEqual((done.returncode, done.stdout), (0, "unfrag\nunfrag\n"), done.stderr)

    def test_the_first_cell_of_a_notebook_switches_it_on_and_a_later_one_says_why_not(self):
        cells = ["import unfrag\nprint(unfrag.enable(limit='1GiB'))", "import torch",
                 "x = torch.empty(1000)\nprint(torch.cuda.get_allocator_backend())",
                 "print(unfrag.describe().split(',')[0])"]
        code = f"names = {{}}\nfor cell in {cells!r}: exec(cell, names)"
        done = python(code, PYTHONPATH=f"{SITE}:{ROOT}/python")
        self.assertEqual(done.stdout, "None\nunfrag\nactive: policy unfrag\n", done.stderr)
        code = f"names = {{}}\nfor cell in {cells[1:3] + cells[:1]!r}: exec(cell, names)"
        done = python(code, PYTHONPATH=f"{SITE}:{ROOT}/python")
        self.assertEqual(done.stdout, "native\nFalse\n", done.stderr)
        self.assertIn("CUDA is in use already", done.stderr)


class Watching(unittest.TestCase):
    CODE = """
        import os, struct, time, torch
        keep = torch.empty(5 << 20)
        folder = os.environ["UNFRAG_MONITOR_DIR"]
        for _ in range(200):
            names = os.listdir(folder) if os.path.isdir(folder) else []
            if names: break
            time.sleep(0.05)
        time.sleep(0.3)
        with open(os.path.join(folder, names[0]), "rb") as stream: page = stream.read()
        print(names[0] == f"{os.getpid()}-0", len(page), page[:8].decode(), *struct.unpack_from("=II", page, 8),
              struct.unpack_from("=I", page, 24)[0] == os.getpid(), page[64:80].rstrip(bytes(1)).decode(),
              struct.unpack_from("=Q", page, 672)[0], struct.unpack_from("=q", page, 832 + 8 * 48)[0],
              struct.unpack_from("=Q", page, 16)[0] % 2)
        """

    def look(self, *words):
        """allocated_bytes.all.current is group 4: at 832 + 8 * 12 * 4."""
        pages = os.path.join(FOLDER, "pages")
        done = python(self.CODE, *words, UNFRAG_MONITOR_DIR=pages)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(os.listdir(pages), [])
        return done.stdout

    def test_stock_and_monitor_publish_pytorchs_own_statistics(self):
        self.assertEqual(self.look("run", "--policy", "stock", "--limit", "1GiB"),
                         f"True 12288 unfragPG 1 12288 True stock {1 << 30} {5 * MIB} 0\n")

    def test_unfrags_own_are_published_too(self):
        self.assertEqual(self.look("run", "--policy", "torch"),
                         f"True 12288 unfragPG 1 12288 True torch 0 {5 * MIB} 0\n")


class Hook(unittest.TestCase):
    def test_a_python_without_torch_pays_nothing_and_sees_nothing(self):
        code = ("import sys, os; print([p for p in sys.path if 'hook' in p], "
                "[m for m in sys.modules if m.startswith('unfrag')], 'ctypes' in sys.modules)")
        done = python(code, "run")
        self.assertEqual(done.stdout, "[] [] False\n", done.stderr)

    def test_the_users_own_sitecustomize_still_runs(self):
        own = os.path.join(FOLDER, "own")
        os.makedirs(own, exist_ok=True)
        with open(os.path.join(own, "sitecustomize.py"), "w", encoding="utf-8") as stream:
            stream.write("import builtins; builtins.ran = __file__\n")
        done = python("import sitecustomize; print(ran, sitecustomize.__file__)\n" + BACKEND, "run",
                      PYTHONPATH=f"{own}:{SITE}")
        path = os.path.join(own, "sitecustomize.py")
        self.assertEqual(done.stdout, f"{path} {path}\nunfrag\n", done.stderr)

    def test_a_sitecustomize_that_fails_is_reported_as_python_does(self):
        own = os.path.join(FOLDER, "broken")
        os.makedirs(own, exist_ok=True)
        with open(os.path.join(own, "sitecustomize.py"), "w", encoding="utf-8") as stream:
            stream.write("import no_such_module\n")
        done = python(BACKEND, "run", PYTHONPATH=f"{own}:{SITE}")
        self.assertEqual(done.stdout, "unfrag\n", done.stderr)
        self.assertIn("no_such_module", done.stderr)

    def test_torch_looks_as_if_nobody_was_there(self):
        code = ("import sys, torch; print(type(torch.__spec__.loader).__name__, "
                "type(torch.__loader__).__name__, len([f for f in sys.meta_path if "
                "type(f).__name__ == '_Finder']))")
        done = python(code, "run")
        self.assertEqual(done.stdout, "SourceFileLoader SourceFileLoader 0\n", done.stderr)

    def test_one_run_inside_another_adds_the_hook_once(self):
        done = unfrag("run", "--", PROGRAM, "run", "--", "sh", "-c", "echo $PYTHONPATH")
        self.assertEqual(done.stdout, f"{ROOT}/python/hook:{SITE}\n", done.stderr)

    def test_a_missing_torch_is_the_programs_own_error(self):
        done = python("import torch", "run", PYTHONPATH=None)
        if "ModuleNotFoundError" not in done.stderr:
            self.skipTest("this Python has a torch of its own")
        self.assertNotIn("unfrag", done.stderr)


class Plain(unittest.TestCase):
    """Without a compiler: plain functions, and one line that says what is missing."""

    def run_plain(self, code, *words, **changes):
        tools = os.path.join(FOLDER, "tools")
        os.makedirs(tools, exist_ok=True)
        for name in ("sh", "env"):
            if not os.path.exists(os.path.join(tools, name)):
                os.symlink(shutil.which(name), os.path.join(tools, name))
        return python(code, "run", *words, PATH=tools,
                      XDG_CACHE_HOME=os.path.join(FOLDER, "none"), TMPDIR=tools, **changes)

    def test_a_missing_compiler_leaves_plain_functions(self):
        done = self.run_plain(BACKEND + "\nimport unfrag; print(unfrag.is_enabled())",
                              PYTHONPATH=f"{SITE}:{ROOT}/python")
        self.assertEqual((done.returncode, done.stdout), (0, "pluggable\nTrue\n"), done.stderr)
        self.assertEqual(done.stderr.count("unfrag: "), 1, done.stderr)
        for part in ("active by plain functions", "apt install g++", "CUDA graphs"):
            self.assertIn(part, done.stderr)

    def test_missing_headers_do_too(self):
        done = python(BACKEND, "run", CUDA_HOME=None, XDG_CACHE_HOME=os.path.join(FOLDER, "headers"))
        if "unfrag: building" in done.stderr:
            self.skipTest("this machine has CUDA's headers")
        self.assertEqual(done.stdout, "pluggable\n", done.stderr)
        self.assertIn("pip install nvidia-cuda-runtime", done.stderr)

    def test_require_demands_the_glue(self):
        done = self.run_plain(BACKEND, "--require")
        self.assertEqual((done.returncode, done.stdout), (4, ""), done.stderr)
        self.assertIn("apt install g++", done.stderr)

    def test_without_plain_functions_pytorchs_own_stays(self):
        alone = tempfile.mkdtemp(dir=FOLDER)
        shutil.copy(os.path.realpath(LIBRARY), os.path.join(alone, "libunfrag.so.0"))
        done = self.run_plain(BACKEND, UNFRAG_LIBRARY=os.path.join(alone, "libunfrag.so.0"))
        self.assertEqual((done.returncode, done.stdout), (0, "native\n"), done.stderr)
        self.assertIn("NOT active", done.stderr)

    def test_numbers_limits_and_refusals(self):
        done = self.run_plain("""
            import ctypes, torch, unfrag
            mib = 1 << 20
            keep = torch.empty(100 * mib)
            assert torch.cuda.memory_allocated() == 100 * mib
            assert len(torch.cuda.memory_stats()) == 122, len(torch.cuda.memory_stats())
            drop = torch.empty(50 * mib)
            del drop
            blocks = [block for segment in torch.cuda.memory_snapshot()
                      for block in segment["blocks"] if block["state"] == "active_allocated"]
            assert [block["requested_size"] for block in blocks] == [100 * mib], blocks
            assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == 150 * mib
            torch.cuda.reset_peak_memory_stats()
            assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == 100 * mib
            torch.cuda.empty_cache()
            assert torch.cuda.memory_reserved() == 100 * mib
            unfrag.reserve(64 * mib)
            assert torch.cuda.memory_reserved() >= 164 * mib and unfrag.trim() >= 64 * mib
            try:
                torch.empty(2 << 30)
                raise SystemExit("no limit")
            except RuntimeError as error:
                assert str(error).startswith("CUDA out of memory. Tried to allocate 2048.00 MiB"), error
                assert "\\nunfrag: " in str(error), error
            torch.cuda.set_per_process_memory_fraction(0.5)
            assert torch.cuda.get_per_process_memory_fraction() == 0.5
            more = torch.empty(2 << 30)
            text = ctypes.create_string_buffer(300)
            begin = ctypes.c_void_p(torch.pluggable.begin_pool)
            assert torch._lib.fake_begin_pool(begin, text, 300) == 1 and b"CUDA graphs" in text.value
            ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p)(torch.pluggable.record_stream)(
                keep._pointer, 64)
            """, "--limit", "1GiB", PYTHONPATH=f"{SITE}:{ROOT}/python")
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_fork_and_tensors_alive_at_the_end_are_no_trouble(self):
        done = self.run_plain("""
            import os, torch
            keep = torch.empty(1000)
            child = os.fork()
            if child == 0:
                del keep
                try:
                    torch.cuda.memory._x = torch.empty(1 << 30)
                except RuntimeError:
                    pass
                os._exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
                  torch.cuda.memory_stats()["allocated_bytes.all.current"])
            """)
        self.assertEqual(done.stdout, "0 1024\n", done.stderr)


class NotActive(unittest.TestCase):
    """One warning and PyTorch's own allocator; with --require it stops."""

    def check(self, part, **changes):
        done = python(BACKEND, "run", **changes)
        self.assertEqual((done.returncode, done.stdout), (0, "native\n"), done.stderr)
        lines = [line for line in done.stderr.splitlines() if line.startswith("unfrag")]
        self.assertEqual(len([line for line in lines if "NOT active" in line]), 1, done.stderr)
        self.assertIn(part, done.stderr)
        must = python(BACKEND, "run", "--require", **changes)
        self.assertEqual((must.returncode, must.stdout), (4, ""), must.stderr)
        self.assertIn(part, must.stderr)

    def fresh(self, name):
        folder = os.path.join(FOLDER, name)
        os.makedirs(folder, exist_ok=True)
        return folder

    def other_torch(self, name, version, cuda="'13.0'"):
        site = os.path.join(FOLDER, name)
        if not os.path.exists(site):
            shutil.copytree(SITE, site)
        with open(os.path.join(site, "torch", "version.py"), "w", encoding="utf-8") as stream:
            stream.write(f"__version__ = '{version}'\ncuda = {cuda}\n")
        return site

    def test_with_a_torch_that_is_too_old(self):
        self.check("older than 2.9", PYTHONPATH=self.other_torch("old", "2.4.1+cu121"))

    def test_with_a_torch_without_cuda(self):
        self.check("built without CUDA", PYTHONPATH=self.other_torch("cpu", "2.11.0+cpu", "None"))

    def test_with_a_torch_whose_interface_differs(self):
        site = self.other_torch("later", "2.13.0+cu130")
        header = os.path.join(site, "torch", "include", "c10", "cuda", "CUDACachingAllocator.h")
        with open(header, encoding="utf-8") as stream:
            text = stream.read()
        with open(header, "w", encoding="utf-8") as stream:
            stream.write(text.replace("virtual std::string name() = 0;",
                                      "virtual std::string name() = 0;\n"
                                      "    virtual void something_new() = 0;\n"
                                      "    using OomRejectionObserver_ = int;"))
        self.check("does not compile against torch 2.13.0", PYTHONPATH=site)

    def test_after_cuda_has_started(self):
        done = python("import torch; torch.empty(10)\nimport unfrag; print(unfrag.enable())\n"
                      "print(torch.cuda.get_allocator_backend())",
                      PYTHONPATH=f"{SITE}:{ROOT}/python")
        self.assertEqual(done.stdout, "False\nnative\n", done.stderr)
        self.assertIn("CUDA is in use already", done.stderr)

    def test_torchrun_requires_it_unless_told(self):
        site = self.other_torch("cpu", "2.11.0+cpu", "None")
        ranks = {"TORCHELASTIC_RUN_ID": "7", "RANK": "3", "PYTHONPATH": site}
        done = python(BACKEND, "run", **ranks)
        self.assertEqual((done.returncode, done.stdout), (4, ""))
        self.assertIn("unfrag [rank 3]: ", done.stderr)
        done = python(BACKEND, "run", "--optional", **ranks)
        self.assertEqual((done.returncode, done.stdout), (0, "native\n"))

    def test_settings_that_ask_for_another_allocator(self):
        self.check("backend:cudaMallocAsync", PYTORCH_CUDA_ALLOC_CONF="backend:cudaMallocAsync")
        self.check("PYTORCH_NO_CUDA_MEMORY_CACHING", PYTORCH_NO_CUDA_MEMORY_CACHING="1")


class Build(unittest.TestCase):
    def test_it_is_built_once_and_kept_by_release_python_and_sources(self):
        cache = os.path.join(FOLDER, "once")
        first = unfrag("torch", "build", "--interpreter", sys.executable, "--json", XDG_CACHE_HOME=cache)
        self.assertEqual(first.returncode, 0, first.stderr)
        facts = json.loads(first.stdout)
        self.assertTrue(facts["built"])
        name = os.path.basename(facts["glue"])
        self.assertRegex(name, rf"^torch-2\.11\.0_cu130-{sys.implementation.cache_tag}-[0-9a-f]{{12}}"
                               r"\.so$")
        second = unfrag("torch", "build", "--interpreter", sys.executable, XDG_CACHE_HOME=cache)
        self.assertTrue(second.stdout.endswith(": was there\n"), second.stdout + second.stderr)
        left = os.listdir(os.path.join(cache, "unfrag"))
        self.assertEqual([n for n in left if n.endswith(".tmp")], [])

    def test_two_builders_at_once_leave_one_whole_file(self):
        make_toolkit()
        cache = os.path.join(FOLDER, "two")
        builders = [subprocess.Popen([PROGRAM, "torch", "build", "--interpreter", sys.executable],
                                     env=environment(XDG_CACHE_HOME=cache), text=True,
                                     stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    for _ in range(2)]
        outputs = [builder.communicate(timeout=120) for builder in builders]
        self.assertEqual([builder.returncode for builder in builders], [0, 0], outputs)
        files = [n for n in os.listdir(os.path.join(cache, "unfrag")) if not n.startswith(".")]
        self.assertEqual(len(files), 1)
        done = python(BACKEND, "run", XDG_CACHE_HOME=cache)
        self.assertEqual(done.stdout, "unfrag\n", done.stderr)

    def test_a_read_only_cache_folder_is_gone_around(self):
        cache = os.path.join(FOLDER, "file-in-the-way")
        with open(cache, "w", encoding="utf-8"):
            pass  # not even root makes a folder inside a file
        done = python(BACKEND, "run", XDG_CACHE_HOME=cache)
        self.assertEqual(done.stdout, "unfrag\n", done.stderr)
        self.assertIn("cannot be written: the glue goes to", done.stderr)
        private = os.path.join(FOLDER, f"unfrag-{os.getuid()}")
        self.assertEqual(stat.S_IMODE(os.stat(private).st_mode), 0o700)
        shutil.rmtree(private)

    def test_no_torch_says_which_python_was_asked(self):
        done = unfrag("torch", "build", "--interpreter", sys.executable, PYTHONPATH=None)
        if done.returncode == 0:
            self.skipTest("this Python has a torch of its own")
        self.assertEqual(done.returncode, 4)
        self.assertIn(f"{sys.executable} has no torch", done.stderr)


class Package(unittest.TestCase):
    def test_what_pip_installs_is_whole_without_the_checkout(self):
        try:
            import setuptools  # noqa: F401
        except ImportError:
            self.skipTest("setuptools is not there")
        site = os.path.join(FOLDER, "installed")
        done = subprocess.run([sys.executable, "setup.py", "-q", "build_py", "--build-lib", site],
                              cwd=ROOT, env=dict(environment(PYTHONPATH=None), CFLAGS="-O0"),
                              capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, done.stderr)
        done = python("import unfrag, torch; print(unfrag.enable(), unfrag.__file__); "
                      "torch.empty(10); print(torch.cuda.get_allocator_backend())",
                      PYTHONPATH=f"{SITE}:{site}", UNFRAG_HOME=None, UNFRAG_LIBRARY=None)
        self.assertEqual(done.stdout, f"True {site}/unfrag/__init__.py\nunfrag\n", done.stderr)


class Ends(unittest.TestCase):
    def test_a_signals_meaning_is_told_and_the_code_kept(self):
        for number, part in ((signal.SIGKILL, "host's memory ran out"),
                             (signal.SIGABRT, "unfrag check --env"),
                             (signal.SIGSEGV, "UNFRAG_DISABLE=1")):
            done = unfrag("run", "--", "sh", "-c", f"kill -{int(number)} $$")
            self.assertEqual(done.returncode, 128 + number)
            self.assertIn(part, done.stderr)
            through = unfrag("run", "--", "sh", "-c", f"sh -c 'kill -{int(number)} $$'; exit $?")
            self.assertEqual(through.returncode, 128 + number)
            self.assertEqual(part in through.stderr, number != signal.SIGSEGV, through.stderr)

    def test_other_codes_pass_in_silence(self):
        done = unfrag("run", "--", "sh", "-c", "exit 7")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "", ""))

    def test_a_command_that_is_not_there(self):
        done = unfrag("run", "--", "no-such-program")
        self.assertEqual(done.returncode, 3)
        self.assertEqual(done.stderr, "unfrag run: no-such-program cannot be started: No such file "
                                      "or directory\n")

    def test_sigterm_reaches_the_program(self):
        make_toolkit()
        child = subprocess.Popen([PROGRAM, "run", "--", "sh", "-c",
                                  "trap 'echo ended; exit 3' TERM; echo ready; "
                                  "while :; do sleep 0.05; done"],
                                 stdout=subprocess.PIPE, text=True, env=environment())
        self.addCleanup(child.kill)
        self.assertEqual(child.stdout.readline(), "ready\n")
        child.terminate()
        self.assertEqual(child.stdout.read(), "ended\n")
        self.assertEqual(child.wait(timeout=20), 3)
        child.stdout.close()

    def test_tensors_that_are_alive_at_the_end_are_no_trouble(self):
        done = python("import torch, builtins; builtins.keep = [torch.empty(1000) for _ in "
                      "range(50)]", "run")
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_forked_child_may_end_with_the_parents_tensors(self):
        code = """
            import os, torch
            keep = torch.empty(1000)
            child = os.fork()
            if child == 0:
                del keep
                os._exit(0)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]),
                  torch.cuda.memory_stats()['allocated_bytes.all.current'])
            """
        done = python(code, "run")
        self.assertEqual(done.stdout, "0 1024\n", done.stderr)


class Module(unittest.TestCase):
    def check(self, code, **changes):
        done = python(code, PYTHONPATH=f"{SITE}:{ROOT}/python", **changes)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_numbers_limits_and_cleaning(self):
        self.check("""
            import unfrag
            unfrag.enable(policy="unfrag", require=True)
            import torch
            assert unfrag.stats() == {}
            unfrag.reserve("64MiB")
            assert torch.cuda.memory_reserved() >= 64 << 20
            unfrag.reserve(1 << 20)  # there is enough
            numbers = unfrag.fragmentation()
            assert numbers["cached_bytes"] == numbers["reserved_bytes"] >= 64 << 20
            assert numbers["largest_request_bytes"] >= 64 << 20 and not numbers["is_alarm"]
            given_back = unfrag.trim()
            assert given_back >= 64 << 20 and torch.cuda.memory_reserved() == 0
            unfrag.limit("1GiB")
            try:
                torch.empty(2 << 30)
                raise SystemExit("no limit")
            except torch.OutOfMemoryError as error:
                assert "1024.00 MiB allowed" in str(error), error
            unfrag.limit(None)
            keep = torch.empty(2 << 30)
            with unfrag.section("block", quiet=True) as s:
                torch.empty(100 << 20)
            assert s.peak_bytes == (2 << 30) + (100 << 20) and s.kept_bytes == 0, s.text
            assert s.text.startswith("block: 0.0"), s.text
            assert torch.cuda.memory_reserved() < (2 << 30) + (40 << 20)
            torch.cuda.memory._set_allocator_settings("roundup_power2_divisions:4")
            try:
                torch.cuda.memory._set_allocator_settings("nonsense:4")
                raise SystemExit("accepted")
            except ValueError as error:
                assert "nonsense" in str(error)
            """)

    def test_reserving_and_trimming_are_the_librarys(self):
        self.check("""
            import unfrag
            unfrag.enable(limit="1GiB", require=True)
            import torch
            assert unfrag.trim() == 0
            keep = torch.empty(100 << 20)
            unfrag.reserve("200MiB")
            stats = torch.cuda.memory_stats()
            assert stats["reserved_bytes.all.current"] >= 300 << 20, stats
            assert stats["allocated_bytes.all.peak"] == 100 << 20, stats  # no tensor of 200 MiB was
            given_back = unfrag.trim("50MiB")
            left = torch.cuda.memory_reserved() - (100 << 20)
            assert 0 < left <= 50 << 20 and given_back >= 150 << 20, (left, given_back)
            assert unfrag.trim(50 << 20) == 0 and unfrag.trim() == left
            for call in (unfrag.reserve, unfrag.trim):
                for value in (-1, 0.5, "50%", "much"):
                    try:
                        call(value)
                        raise SystemExit(f"{call.__name__}({value})")
                    except ValueError:
                        pass
            try:
                unfrag.reserve("2GiB")
                raise SystemExit("no limit")
            except torch.OutOfMemoryError as error:
                assert str(error).startswith("CUDA out of memory. Tried to reserve 2147483648"), error
                assert "\\nunfrag: " in str(error), error
            """)

    def test_it_works_on_pytorchs_own_allocator_too(self):
        self.check("""
            import unfrag, torch
            keep = torch.empty(1 << 20)
            assert not unfrag.is_enabled() and unfrag.stats()["allocated_bytes.all.current"] == 1 << 20
            assert unfrag.fragmentation()["cached_bytes"] == 0
            unfrag.limit("50%")
            try:
                torch.empty(5 << 30)
                raise SystemExit("no limit")
            except torch.OutOfMemoryError:
                pass
            unfrag.snapshot("now.pickle")
            """)
        with open(os.path.join(FOLDER, "now.pickle"), "rb") as stream:
            self.assertIn("segments", pickle.load(stream))

    def test_arguments_that_are_none_are_refused(self):
        self.check("""
            import unfrag
            for options in ({"policy": "stock"}, {"limit": "many"}, {"limit": 1.5}, {"limit": "0"}):
                try:
                    unfrag.enable(**options)
                    raise SystemExit(f"accepted: {options}")
                except ValueError:
                    pass
            """)


class Record(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(dir=FOLDER)

    def record(self, code, *options):
        return python(code, "record", *options, cwd=self.folder)

    def load(self, name):
        with open(os.path.join(self.folder, name), "rb") as stream:
            return pickle.load(stream)

    def test_an_unchanged_program_leaves_a_snapshot_at_its_end(self):
        done = self.record("import torch; keep = torch.empty(5 << 20)", "-o", "run.pickle")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("run.pickle written (the program ended)", done.stderr)
        found = self.load("run.pickle")
        self.assertEqual(found["stats"]["allocated_bytes.all.current"], 5 * MIB)
        self.assertEqual(found["history"][0]["max_entries"], 5000000)
        self.assertEqual(os.listdir(self.folder), ["run.pickle"])

    def test_recording_begins_only_when_cuda_starts(self):
        done = self.record("import torch; print(torch.cuda.memory.history, "
                           "torch.cuda.is_initialized())")
        self.assertEqual(done.stdout, "[] False\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("nothing was written: the program did not use the GPU", done.stderr)

    def test_each_process_has_a_file(self):
        child = "import torch, os; torch.empty(10); print(os.getpid())"
        code = f"""
            import subprocess, sys, torch, os
            keep = torch.empty(20)
            subprocess.run([sys.executable, "-c", {child!r}])
            """
        done = self.record(code, "-o", "all.pickle")
        pid = done.stdout.strip()
        names = sorted(os.listdir(self.folder))  # the child ends first and takes the plain name
        self.assertEqual(len(names), 2, names)
        self.assertIn("all.pickle", names)
        self.assertNotIn(f"all.{pid}.pickle", names)
        self.assertRegex(" ".join(names), r"all\.[0-9]+\.pickle")

    def test_at_the_first_out_of_memory_and_only_then(self):
        code = """
            import torch
            for size in (100, 9 << 30, 100, 9 << 30):
                try: torch.empty(size)
                except torch.OutOfMemoryError: pass
            """
        done = self.record(code, "--on-oom", "-o", "oom.pickle")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stderr.count("written (out of memory)"), 1)
        self.assertEqual(self.load("oom.pickle")["stats"]["num_ooms"], 1)
        done = self.record("import torch; torch.empty(10)", "--on-oom", "-o", "none.pickle")
        self.assertEqual(done.returncode, 0)
        self.assertIn("no out-of-memory came", done.stderr)

    def test_on_a_signal_and_before_a_kill(self):
        code = """
            import os, signal, torch
            keep = torch.empty(1 << 20)
            os.kill(os.getpid(), signal.SIGUSR1)
            more = torch.empty(1 << 20)
            os.kill(os.getpid(), signal.SIGTERM)
            """
        done = self.record(code, "-o", "s.pickle")
        self.assertEqual(done.returncode, 128 + signal.SIGTERM)
        self.assertIn("written (SIGUSR1)", done.stderr)
        self.assertEqual(self.load("s.pickle")["stats"]["allocated_bytes.all.current"], MIB)

    def test_a_file_that_exists_is_left_alone(self):
        with open(os.path.join(self.folder, "unfrag.pickle"), "w", encoding="utf-8") as stream:
            stream.write("mine")
        done = self.record("import torch; torch.empty(10)")
        self.assertEqual(done.returncode, 2)
        self.assertIn("unfrag.pickle exists", done.stderr)
        done = self.record("import torch; torch.empty(10)", "--force")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("segments", self.load("unfrag.pickle"))


class Trial(unittest.TestCase):
    PROGRAM_TEXT = """
        import os, sys, torch
        conf = os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
        print("image 1 done"); keep = torch.empty(100 << 20)
        if conf == "max_split_size_mb:128": torch.empty(9 << 30)
        print("image 2 done")
        print(torch.cuda.get_allocator_backend())
        """

    def trial(self, *options, **changes):
        return python(self.PROGRAM_TEXT, "trial", *options, **changes)

    def test_settings_are_compared(self):
        done = self.trial("--runs", "2", "--conf", "max_split_size_mb:128", "--policy", "unfrag",
                          "--unit", "^image", "--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        rows = {row["setting"]: row for row in json.loads(done.stdout)["settings"]}
        self.assertEqual(list(rows), ["default", "max_split_size_mb:128", "policy unfrag"])
        plain, split, ours = rows.values()
        self.assertEqual((plain["runs"], plain["failures"], plain["units"]), (2, 0, 2))
        self.assertEqual((split["failures"], split["out_of_memory"], split["units"]), (2, 2, 1))
        self.assertEqual(ours["failures"], 0)
        self.assertEqual(plain["peak_reserved_bytes"], 100 * MIB)
        self.assertGreaterEqual(ours["peak_reserved_bytes"], 100 * MIB)
        self.assertLess(ours["peak_reserved_bytes"], 140 * MIB)
        # Wilson's interval of 0 of 2 and of 2 of 2, by the formula on paper: 1 - 1/(1 + z^2/2).
        self.assertAlmostEqual(plain["failure_rate_high"], 0.6576, places=4)
        self.assertAlmostEqual(split["failure_rate_low"], 0.3424, places=4)
        self.assertIsNone(split["seconds"])
        self.assertEqual(done.stderr.count("unfrag trial: "), 6)
        self.assertIn("FAILED (out of memory)", done.stderr)

    def test_it_goes_on_from_a_state_file(self):
        state = os.path.join(tempfile.mkdtemp(dir=FOLDER), "state")
        first = self.trial("--runs", "1", "--state", state)
        self.assertEqual(first.returncode, 0, first.stderr)
        with open(state, "a", encoding="utf-8") as stream:
            stream.write('{"setting": "default", "run": 1, "fai')  # cut off by a kill
        second = self.trial("--runs", "2", "--state", state)
        self.assertIn("1 runs are in", second.stderr)
        self.assertEqual(second.stderr.count("done, "), 1)
        other = self.trial("--runs", "2", "--state", state, "--limit", "2GiB")
        self.assertEqual(other.returncode, 3)
        self.assertIn("another command or limit", other.stderr)

    def test_ctrl_c_prints_the_table_so_far(self):
        make_toolkit()
        child = subprocess.Popen([PROGRAM, "trial", "--runs", "50", "--", "sh", "-c",
                                  "sleep 0.3"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 text=True, env=environment())
        line = child.stderr.readline()
        self.assertIn("1 of 50: default: done", line)
        child.send_signal(signal.SIGINT)
        output, _ = child.communicate(timeout=20)
        self.assertEqual(child.returncode, 130)
        self.assertIn("default", output)
        self.assertIn("95 % interval", output)

    def test_a_timeout_is_a_failure(self):
        done = unfrag("trial", "--runs", "1", "--timeout", "1", "--json", "--", "sleep", "30")
        row = json.loads(done.stdout)["settings"][0]
        self.assertEqual(row["failures"], 1)
        self.assertIn("FAILED (timeout)", done.stderr)

    def test_logs_are_kept(self):
        logs = tempfile.mkdtemp(dir=FOLDER)
        self.trial("--runs", "1", "--no-default", "--policy", "torch", "--logs", logs)
        with open(os.path.join(logs, "setting-1-run-1.log"), encoding="utf-8") as stream:
            self.assertIn("image 2 done\nunfrag\n", stream.read())


if __name__ == "__main__":
    unittest.main(argv=[sys.argv[0], *sys.argv[4:]])
