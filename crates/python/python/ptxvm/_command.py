"""The ``ptxvm`` command."""

import os
import sys

from ._native import command_main


def main():
    folder = os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib")
    # What Python has buffered comes before what the command prints.
    sys.stdout.flush()
    return command_main(["ptxvm", *sys.argv[1:]], [sys.executable, "-m", "ptxvm"], folder)
