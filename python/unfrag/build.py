# SPDX-License-Identifier: MIT
"""Builds the glue against the installed torch, once for each torch release, Python and state of our
sources, into a folder of the user's. `python -m unfrag.build` is what `unfrag torch build` runs.

Many processes may build at the same time, on several machines with one home folder: each writes
under a name of its own and renames, which is atomic; a lock, where the file system has locks, only
saves the others the work."""

import contextlib
import hashlib
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
import sysconfig
import tempfile
import time

from . import library
from .library import NoCompiler, UnfragError
from .say import say

LOCK_WAIT_SECONDS = 180
TESTED = (2, 11)
EARLIEST = (2, 9)


def torch_release(version):
    """(2, 11) of "2.11.0+cu130"."""
    match = re.match(r"(\d+)\.(\d+)", version)
    if not match:
        raise UnfragError(f"torch's version '{version}' is not understood")
    return int(match.group(1)), int(match.group(2))


class Target:
    """What is built for: a torch, found in its folder without importing it."""

    def __init__(self, folder, version, cuda, uses_new_strings=True):
        self.folder = folder
        self.version = version
        self.cuda = cuda  # "13.0"; None: built without CUDA
        self.release = torch_release(version)
        self.uses_new_strings = uses_new_strings

    @classmethod
    def of(cls, torch):
        folder = os.path.dirname(os.path.abspath(torch.__file__))
        flag = getattr(getattr(torch, "_C", None), "_GLIBCXX_USE_CXX11_ABI", True)
        return cls(folder, str(torch.__version__), torch.version.cuda, bool(flag))

    @property
    def include(self):
        return os.path.join(self.folder, "include")


def check(target):
    """Raises UnfragError if there can be no glue for this torch."""
    if target.cuda is None:
        raise UnfragError(f"torch {target.version} is built without CUDA: unfrag manages NVIDIA "
                          "GPUs' memory; install a CUDA build of torch")
    if target.release < EARLIEST:
        raise UnfragError(
            f"torch {target.version} is older than {EARLIEST[0]}.{EARLIEST[1]}, the first with the "
            "interface that unfrag needs: update torch, or use 'unfrag tune' for its settings")
    header = os.path.join(target.include, "c10", "cuda", "CUDACachingAllocator.h")
    if not os.path.exists(header):
        raise UnfragError(f"torch {target.version} has no headers ({header} is missing): install "
                          "it from the wheel, which brings them")


def compiler():
    """The command of a C++ compiler, as words."""
    if os.environ.get("CXX"):
        words = shlex.split(os.environ["CXX"])
        if shutil.which(words[0]):
            return words
        raise NoCompiler(f"CXX is '{os.environ['CXX']}', which is not there: unset it or install "
                         "that compiler")
    for name in ("g++", "clang++", "c++"):
        if shutil.which(name):
            return [name]
    raise NoCompiler("there is no C++ compiler (g++, clang++), which builds the glue for torch "
                     "once: install one (Debian, Ubuntu: apt install g++; Fedora: dnf install "
                     "gcc-c++; conda: conda install gxx), or set CXX")


def _site_folders(target):
    yield os.path.dirname(target.folder)
    yield sysconfig.get_paths()["purelib"]


def cuda_include_folders(target):
    """Folders for -I with cuda_runtime_api.h and what it includes: the toolkit's; else pip's, with
    the part that those lack from Triton's package or from ours."""
    toolkits = [os.environ.get("CUDA_HOME"), os.environ.get("CUDA_PATH"), "/usr/local/cuda"]
    nvcc = shutil.which("nvcc")
    if nvcc:
        toolkits.append(os.path.dirname(os.path.dirname(os.path.realpath(nvcc))))
    for toolkit in toolkits:
        if toolkit and _is_whole(os.path.join(toolkit, "include")):
            return [os.path.join(toolkit, "include")]
    major = (target.cuda or "").split(".")[0]
    for site in _site_folders(target):
        for part in (f"nvidia/cu{major}/include", "nvidia/cuda_runtime/include"):
            folder = os.path.join(site, part)
            if _is_whole(folder):
                return [folder]
            if os.path.exists(os.path.join(folder, "cuda_runtime_api.h")):
                return [folder, os.path.join(library.home(), "torch", "include-shim")]
        triton = os.path.join(site, "triton", "backends", "nvidia", "include")
        if _is_whole(triton):
            return [triton]
    raise NoCompiler(
        "CUDA's headers (cuda_runtime_api.h) are in none of CUDA_HOME, /usr/local/cuda, and pip's "
        f"packages: pip install nvidia-cuda-runtime (of CUDA {target.cuda}), or set CUDA_HOME")


def _is_whole(folder):
    return all(os.path.exists(os.path.join(folder, name))
               for name in ("cuda_runtime_api.h", "crt/host_defines.h"))


def sources():
    folder = os.path.join(library.home(), "torch")
    return sorted(os.path.join(folder, name) for name in os.listdir(folder)
                  if name.endswith(".cpp"))


def glue_hash():
    """Of everything of ours that the result depends on."""
    folder, include = os.path.join(library.home(), "torch"), library.include_folder()
    files = [os.path.join(folder, name) for name in sorted(os.listdir(folder))
             if name.endswith((".cpp", ".h"))]
    public = os.path.join(include, "unfrag")
    files += [os.path.join(public, name) for name in sorted(os.listdir(public))]
    digest = hashlib.sha256()
    for file in files:
        with open(file, "rb") as stream:
            digest.update(os.path.basename(file).encode() + b"\0" + stream.read())
    return digest.hexdigest()[:12]


def file_name(target):
    plain = re.sub(r"[^A-Za-z0-9.]", "_", target.version)
    return f"torch-{plain}-{sys.implementation.cache_tag}-{glue_hash()}.so"


def cache_folder():
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "unfrag")


def _private_folder():
    """For this boot only: where the cache folder cannot be written."""
    folder = os.path.join(tempfile.gettempdir(), f"unfrag-{os.getuid()}")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    found = os.lstat(folder)
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o022:
        raise UnfragError(f"{folder} is not this user's alone: remove it, or set XDG_CACHE_HOME to "
                          "a folder that can be written")
    return folder


def _is_writable(folder):
    try:
        os.makedirs(folder, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def find(target):
    """The glue, if it is built; None if not."""
    name = file_name(target)
    places = [cache_folder()]
    with contextlib.suppress(UnfragError, OSError):
        places.append(_private_folder())
    for folder in places:
        if os.path.exists(os.path.join(folder, name)):
            return os.path.join(folder, name)
    return None


def command(target, output):
    major, minor = target.release
    words = compiler() + [
        "-shared", "-fPIC", "-O2", "-fvisibility=hidden",
        "-std=c++20" if target.release >= (2, 12) else "-std=c++17",
        f"-DUF_TORCH_VERSION={major * 1000 + minor}",
        f"-D_GLIBCXX_USE_CXX11_ABI={int(target.uses_new_strings)}",
        "-I", os.path.join(library.home(), "torch"), "-I", library.include_folder()]
    for folder in [target.include] + cuda_include_folders(target):
        words += ["-isystem", folder]
    words += shlex.split(os.environ.get("CXXFLAGS", "")) + sources()
    lib = os.path.join(target.folder, "lib")
    return words + ["-L", lib, "-lc10", "-lc10_cuda", "-o", output]


@contextlib.contextmanager
def _lock(path):
    """Waits for another builder, not for ever, and not where there are no locks."""
    stream = None
    try:
        import fcntl
        stream = open(path, "a")  # noqa: SIM115
        deadline = time.monotonic() + LOCK_WAIT_SECONDS
        while True:
            try:
                fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    break
                time.sleep(0.1)
            except OSError:
                break
    except (ImportError, OSError):
        pass
    try:
        yield
    finally:
        if stream is not None:
            stream.close()


def build(target, force=False, tell=say):
    """Builds the glue unless it is there, and returns its path. Raises UnfragError."""
    check(target)
    found = None if force else find(target)
    if found:
        return found
    command(target, os.devnull)  # what it takes is there, before anything is said of building
    folder = cache_folder()
    if not _is_writable(folder):
        private = _private_folder()
        tell(f"{folder} cannot be written: the glue goes to {private}")
        folder = private
    name = file_name(target)
    final = os.path.join(folder, name)
    with _lock(os.path.join(folder, f".{name}.lock")):
        if os.path.exists(final) and not force:
            return final
        if target.release != TESTED:
            tell(f"this version of unfrag was tested with torch {TESTED[0]}.{TESTED[1]}, not with "
                 f"{target.version}")
        tell(f"building the glue for torch {target.version} (once, some seconds)")
        handle, partial = tempfile.mkstemp(prefix=f".{name}.", suffix=".tmp", dir=folder)
        os.close(handle)
        try:
            _compile(command(target, partial), target)
            os.chmod(partial, 0o755)
            os.rename(partial, final)
        finally:
            with contextlib.suppress(OSError):
                os.unlink(partial)
    return final


def _compile(words, target):
    environment = dict(os.environ, LC_ALL="C")
    for name in ("PYTHONPATH", "UNFRAG_MODE"):
        environment.pop(name, None)
    done = subprocess.run(words, capture_output=True, text=True, check=False, env=environment,
                          stdin=subprocess.DEVNULL, errors="replace")
    if done.returncode != 0:
        lines = [line for line in done.stderr.splitlines() if "error" in line] or \
            done.stderr.splitlines()
        first = lines[0] if lines else f"exit code {done.returncode}"
        log = os.path.join(tempfile.gettempdir(), f"unfrag-build-{os.getpid()}.log")
        try:
            with open(log, "w", encoding="utf-8") as stream:
                stream.write(shlex.join(words) + "\n\n" + done.stderr)
        except OSError:
            log = "nowhere: the folder for temporary files cannot be written"
        raise UnfragError(f"the glue does not compile against torch {target.version}: {first} "
                          f"(all of it: {log}); this version of unfrag was tested with torch "
                          f"{TESTED[0]}.{TESTED[1]}")


def _installed_torch():
    """The torch that this Python would import, without importing it."""
    from importlib.util import find_spec
    try:
        spec = find_spec("torch")
    except (ImportError, ValueError):
        spec = None
    if spec is None or not spec.origin:
        raise UnfragError(f"{sys.executable} has no torch: activate the environment that has it, "
                          "or name its Python with --interpreter")
    folder = os.path.dirname(spec.origin)
    facts = {}
    try:
        with open(os.path.join(folder, "version.py"), encoding="utf-8") as stream:
            text = stream.read()
    except OSError as problem:
        raise UnfragError(f"torch in {folder} has no version.py: {problem}") from None
    for key in ("__version__", "cuda"):
        match = re.search(rf"^{key}\b[^=\n]*=\s*(?:'([^']*)'|\"([^\"]*)\"|None)", text, re.M)
        facts[key] = (match.group(1) or match.group(2)) if match else None
    if not facts["__version__"]:
        raise UnfragError(f"torch in {folder} does not say its version")
    return Target(folder, facts["__version__"], facts["cuda"])


def main(words):
    import argparse
    import json
    parser = argparse.ArgumentParser(prog="unfrag torch build",
                                     description="Builds the glue for this Python's torch.")
    parser.add_argument("--force", action="store_true", help="build also if it is there")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    options = parser.parse_args(words)
    try:
        target = _installed_torch()
        check(target)
        was_there = find(target) is not None
        path = build(target, force=options.force)
    except UnfragError as problem:
        print(f"unfrag torch: {problem}", file=sys.stderr)
        return 4
    if options.json:
        print(json.dumps({"torch": target.version, "cuda": target.cuda, "glue": path,
                          "built": options.force or not was_there}))
    else:
        done = "built" if options.force or not was_there else "was there"
        print(f"torch {target.version} (CUDA {target.cuda}): {path}: {done}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
