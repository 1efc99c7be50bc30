# SPDX-License-Identifier: MIT
"""Python runs this at its start in a process under `unfrag run`, `record` or `trial`, and in its
children, because those put this folder in front of PYTHONPATH. It waits for `import torch` and does
nothing else: the folder leaves sys.path at once, and a sitecustomize of the user's own runs as it
would have."""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _watch():
    """Loads the one file that waits; the package itself is loaded when torch is imported."""
    from importlib.machinery import SourceFileLoader
    from importlib.util import module_from_spec, spec_from_loader
    path = os.path.join(os.path.dirname(_HERE), "unfrag", "hook.py")
    loader = SourceFileLoader("_unfrag_hook", path)
    module = module_from_spec(spec_from_loader("_unfrag_hook", loader))
    loader.exec_module(module)
    module.install()


def _run_the_users_own():
    ours = sys.modules.pop("sitecustomize", None)
    try:
        import sitecustomize  # noqa: F401
    except ImportError as problem:
        if getattr(problem, "name", None) != "sitecustomize":
            raise
    finally:
        if ours is not None:
            sys.modules.setdefault("sitecustomize", ours)


sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != _HERE]
sys.path_importer_cache.pop(_HERE, None)
if os.environ.get("UNFRAG_DISABLE", "") in ("", "0"):
    _watch()
_run_the_users_own()
