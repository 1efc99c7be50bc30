#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Do the GPU tests notice? Runs them over a fake driver library that lies, and expects no "holds".

    lies.py GPU_TESTS FAKE_LIBRARY_FOLDER

A lie is ordered by the setup's item lie=FUNCTION: from the first call on the function does nothing
and says that all is well.
"""
import os
import subprocess
import sys

CARD = "card=fake|402653184;card=fake|402653184;granule=65536|65536"
# test, function that lies, what the test sees of it
LIES = [
    ("fills", "cuEventSynchronize", "memory is handed on before the work on it is done"),
    ("fills", "cuEventQuery", "events are done before the work is"),
    ("alias", "cuEventSynchronize", "a page is unmapped under a kernel"),
    ("capture", "cuGraphLaunch", "a graph that does nothing"),
    ("conformance", "cuMemSetAccess", "memory that nobody may touch"),
    ("conformance", "cuThreadExchangeStreamCaptureMode", "captures are invalidated"),
]


def main():
    program, folder = sys.argv[1:]
    failed = 0
    for test, function, what in LIES:
        environment = dict(os.environ, LD_LIBRARY_PATH=folder,
                           UNFRAG_FAKE_GPU=f"{CARD};lie={function}")
        done = subprocess.run([program, test, "1"], env=environment, capture_output=True, text=True,
                              timeout=60, check=False)
        is_noticed = done.returncode not in (0, 77) and ": holds" not in done.stdout
        lines = done.stdout.strip().split("\n")
        print(f"{'noticed' if is_noticed else 'NOT NOTICED'}: {test}: {what} ({function} lies): "
              f"{lines[-1] or done.returncode}")
        failed += not is_noticed
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
