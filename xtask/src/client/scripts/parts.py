"""The parts of a script, each by itself: one that fails takes no other with it.

:func:`run` prints `passed NAME`, `failed NAME: why` or `skipped NAME: why` for each part, and `done`.
"""

import sys
import traceback

_parts = []


def part(function):
    """Makes a function a part. What it returns, if anything, says why it was skipped."""
    _parts.append(function)
    return function


def run():
    """Runs the parts whose names contain one of the command line's words; without words, all."""
    words = sys.argv[1:]
    for function in _parts:
        name = function.__name__
        if words and not any(word in name for word in words):
            continue
        try:
            why = function()
            print(f"skipped {name}: {why}" if why else f"passed {name}", flush=True)
        except Exception as error:
            traceback.print_exc()
            print(f"failed {name}: {type(error).__name__}: {' '.join(str(error).split())[:300]}", flush=True)
    print("done")
