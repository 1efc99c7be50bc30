# SPDX-License-Identifier: MIT
"""Waits for `import torch`. Costs one comparison per import until then and nothing afterwards; it
imports nothing by itself. Loaded alone, by its path, in processes that were started under unfrag."""

import os
import sys

_waiting = []


class _Loader:
    """torch's own loader, with a call after it."""

    def __init__(self, loader, after):
        self._loader = loader
        self._after = after

    def create_module(self, spec):
        return self._loader.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = self._loader  # nobody later sees that we were here
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._after(module)

    def __getattr__(self, name):
        return getattr(self._loader, name)


class _Finder:
    def __init__(self, after):
        self._after = after

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        remove(self)
        from importlib.util import find_spec
        spec = find_spec(name)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            spec.loader = _Loader(spec.loader, self._after)
        return spec


def remove(finder):
    if finder in sys.meta_path:
        sys.meta_path.remove(finder)
    if finder in _waiting:
        _waiting.remove(finder)


def wait_for_torch(after):
    """Calls after(torch) once torch is imported; at once if it is."""
    torch = sys.modules.get("torch")
    if torch is not None and getattr(torch, "version", None) is not None:
        after(torch)
        return
    finder = _Finder(after)
    _waiting.append(finder)
    sys.meta_path.insert(0, finder)


def is_waiting():
    return bool(_waiting)


def load_package():
    """The package unfrag, from beside this file if it is not installed; sys.path stays as it is."""
    if "unfrag" in sys.modules:
        return sys.modules["unfrag"]
    from importlib.util import module_from_spec, spec_from_file_location
    folder = os.path.dirname(os.path.abspath(__file__))
    spec = spec_from_file_location("unfrag", os.path.join(folder, "__init__.py"),
                                   submodule_search_locations=[folder])
    package = module_from_spec(spec)
    sys.modules["unfrag"] = package
    try:
        spec.loader.exec_module(package)
    except BaseException:
        del sys.modules["unfrag"]
        raise
    return package


def _after_torch(torch):
    load_package()
    from unfrag import started
    started.begin(torch)


def install():
    wait_for_torch(_after_torch)
