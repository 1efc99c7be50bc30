# SPDX-License-Identifier: MIT
"""A snapshot with history from an unchanged program: at its end, at its first out-of-memory, or on a
signal. What `unfrag record` switches on in the program and in its children; each process that uses
the GPU writes a file of its own."""

import atexit
import os
import pickle
import signal
import tempfile
import threading

from .say import is_verbose, say

DEFAULT_ENTRIES = 5000000


def write_snapshot(snapshot, path):
    """Under its name only when it is complete."""
    folder = os.path.dirname(os.path.abspath(path))
    handle, partial = tempfile.mkstemp(prefix=f".{os.path.basename(path)}.", suffix=".tmp",
                                       dir=folder)
    try:
        with os.fdopen(handle, "wb") as stream:
            pickle.dump(snapshot, stream)
            stream.flush()
            os.fsync(stream.fileno())
        mask = os.umask(0)
        os.umask(mask)
        os.chmod(partial, 0o666 & ~mask)
        os.rename(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


def free_name(path, pid):
    """The name asked for, for the first process that writes; with the process's number for others.

    The first takes the name by making a file that stands beside it while `unfrag record` runs."""
    claim = os.environ.get("UNFRAG_RECORD_CLAIM")
    if claim:
        try:
            os.close(os.open(claim, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            return path
        except OSError:
            pass
    stem, dot, ending = os.path.basename(path).partition(".")
    return os.path.join(os.path.dirname(path), f"{stem}.{pid}{dot}{ending}")


class Recorder:
    def __init__(self, torch):
        self.torch = torch
        self.path = os.path.abspath(os.environ.get("UNFRAG_RECORD_FILE", "unfrag.pickle"))
        self.only_oom = os.environ.get("UNFRAG_RECORD_ON_OOM", "") not in ("", "0")
        self.entries = int(os.environ.get("UNFRAG_RECORD_ENTRIES", DEFAULT_ENTRIES))
        self.stacks = os.environ.get("UNFRAG_RECORD_STACKS", "python")
        self.pid = os.getpid()
        self.is_started = self.is_written = False
        self._name = None
        self._lock = threading.Lock()

    def start(self):
        """Called as CUDA starts, which recording must not do itself: a program that forks before
        it uses the GPU goes on working."""
        if os.getpid() != self.pid:
            self.pid, self.is_written, self._name = os.getpid(), False, None
        context = None if self.stacks == "none" else "all"
        stacks = "all" if self.stacks == "all" else "python"
        self.torch.cuda.memory._record_memory_history(
            enabled="all", context=context, stacks=stacks, max_entries=self.entries)
        self.is_started = True
        if self.only_oom:
            self._watch_oom()
        if is_verbose():
            say(f"recording: process {os.getpid()}, at most {self.entries} events")

    def _watch_oom(self):
        attach = getattr(self.torch._C, "_cuda_attach_out_of_memory_observer", None)
        if attach is not None:
            attach(lambda *numbers: self.write("out of memory"))

    def write(self, why, again=False):
        """Writes the snapshot, once unless told again. Never raises: the program goes on."""
        with self._lock:
            if not self.is_started or os.getpid() != self.pid or (self.is_written and not again):
                return
            self.is_written = True
            try:
                if self._name is None:
                    self._name = free_name(self.path, self.pid)
                write_snapshot(self.torch.cuda.memory._snapshot(), self._name)
            except Exception as problem:  # noqa: BLE001: a recorder must not end its program
                say(f"record: the snapshot could not be written: {problem}")
                return
        say(f"record: {self._name} written ({why})")

    def finish(self):
        if not self.only_oom:
            self.write("the program ended")


def _ask_by_signal(recorder):
    name = os.environ.get("UNFRAG_RECORD_SIGNAL", "USR1")
    if name == "none" or threading.current_thread() is not threading.main_thread():
        return
    number = getattr(signal, f"SIG{name}", None)
    if number is not None and signal.getsignal(number) in (signal.SIG_DFL, None):
        signal.signal(number, lambda *_: recorder.write(f"SIG{name}", again=True))
    if signal.getsignal(signal.SIGTERM) == signal.SIG_DFL:
        def end(*_):
            recorder.finish()
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGTERM)
        signal.signal(signal.SIGTERM, end)


def begin(torch):
    if torch.version.cuda is None:
        say(f"record: torch {torch.__version__} is built without CUDA: nothing to record")
        return
    recorder = Recorder(torch)
    if os.environ.get("UNFRAG_LIMIT"):
        from . import watch
        watch.limit_when_ready(torch, os.environ["UNFRAG_LIMIT"])
    torch.cuda._lazy_call(recorder.start)
    atexit.register(recorder.finish)
    _ask_by_signal(recorder)
