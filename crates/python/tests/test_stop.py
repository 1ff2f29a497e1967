"""Launches that are ended before their time."""

import signal
import subprocess
import sys
import threading
import time
from contextlib import contextmanager

import numpy
import pytest
from conftest import ENDLESS, SAXPY

import ptxvm


def endless(results, **options):
    try:
        ptxvm.launch(ENDLESS, threads=1, **options)
    except BaseException as error:
        results.append(error)


def until(condition):
    end = time.monotonic() + 20
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


@contextmanager
def running(program):
    """A process that has said that it is ready, and that ends with the test."""
    # Whoever runs tests in the background may ignore SIGINT, and Python then leaves it so.
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    # Also where a test waits for a line that does not come.
    limit = threading.Timer(60, process.kill)
    limit.start()
    try:
        assert process.stdout.readline() == "ready\n"
        yield process
    finally:
        limit.cancel()
        process.kill()


@pytest.mark.parametrize("progress", ["", ", progress=Bar()"])
def test_ctrl_c(progress):
    program = f"""
import ptxvm, sys
class Bar:
    total = None
    def update(self, n): pass
print("ready", flush=True)
try:
    ptxvm.launch({ENDLESS!r}{progress})
except KeyboardInterrupt:
    print("interrupted", flush=True)
import numpy
y = numpy.ones(4, "f4")
ptxvm.launch({SAXPY!r}, 4, 1.0, y, y, block=4)
print(y.sum())
"""
    with running(program) as process:
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        assert output == "interrupted\n8.0\n" and process.returncode == 0


WORKERS = """
import ptxvm, signal, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
ENDLESS = {endless!r}
def work(number):
    try:
        ptxvm.launch(ENDLESS, threads=1{options})
    except ptxvm.Error as error:
        return error.code
handler = signal.getsignal(signal.SIGINT)
with ThreadPoolExecutor(2) as executor:
    futures = [executor.submit(work, number) for number in range(2)]
    print("ready", flush=True)
    try:
        for future in futures:
            future.result()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
print(*(future.result() for future in futures))
# Launches after that run as ever, and the signal is Python's again.
import numpy
y = numpy.ones(4, "f4")
ptxvm.launch({saxpy!r}, 4, 1.0, y, y, block=4)
print(y.sum(), signal.getsignal(signal.SIGINT) is handler, flush=True)
try:
    time.sleep(30)
except KeyboardInterrupt:
    print("awake")
"""


@pytest.mark.parametrize("options", ["", ", progress=type('Bar', (), {'total': 1, 'update': lambda self, n: None})()", ", engine='reference'"])
def test_ctrl_c_ends_launches_of_other_threads(options):
    program = WORKERS.replace("{options}", options).replace("{endless!r}", repr(ENDLESS)).replace("{saxpy!r}", repr(SAXPY))
    with running(program) as process:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        assert process.stdout.readline() == "interrupted\n"
        assert process.stdout.readline() == "cancelled cancelled\n"
        assert process.stdout.readline() == "8.0 True\n"
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        assert output == "awake\n" and process.returncode == 0


def test_stop_ends_the_launches_of_all_threads():
    results = []
    threads = [threading.Thread(target=endless, args=(results,)) for _ in range(3)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    # One that has not begun yet is not stopped.
    assert until(lambda: [ptxvm.stop(), time.sleep(0.05)] and len(results) == 3)
    assert all(isinstance(error, ptxvm.Error) and error.code == "cancelled" for error in results)
    assert results[0].kernel == "endless" and any("bra again" in str(error) for error in results)
    x, y = numpy.ones((2, 4), "f4")
    ptxvm.launch(SAXPY, 4, 1.0, x, y)


def test_an_event_ends_one_launch():
    stop, results, others = threading.Event(), [], []
    one = threading.Thread(target=endless, args=(results,), kwargs={"stop": stop})
    other = threading.Thread(target=endless, args=(others,))
    one.start()
    other.start()
    time.sleep(0.2)
    stop.set()
    one.join(20)
    assert results[0].code == "cancelled" and not others
    assert until(lambda: [ptxvm.stop(), time.sleep(0.05)] and others)
    # What is set already lets a short launch end.
    x, y = numpy.ones((2, 4), "f4")
    ptxvm.launch(SAXPY, 4, 1.0, x, y, block=4, stop=stop)
    with pytest.raises(AttributeError):
        ptxvm.launch(SAXPY, 4, 1.0, x, y, block=4, stop=7)


def test_an_asyncio_program_is_stopped():
    program = f"""
import asyncio, ptxvm
async def main():
    print("ready", flush=True)
    await asyncio.to_thread(ptxvm.launch, {ENDLESS!r}, threads=1)
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
"""
    with running(program) as process:
        time.sleep(1)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=20)
        assert output == "interrupted\n" and process.returncode == 0


def test_a_handler_that_a_program_sets_meanwhile_stays():
    program = f"""
import ptxvm, signal, threading, time
def work():
    try:
        ptxvm.launch({ENDLESS!r}, threads=1)
    except ptxvm.Error as error:
        print(error.code, flush=True)
thread = threading.Thread(target=work)
thread.start()
time.sleep(0.5)
signal.signal(signal.SIGINT, signal.SIG_IGN)
ptxvm.stop()
thread.join()
signal.raise_signal(signal.SIGINT)
print("ignored", flush=True)
signal.signal(signal.SIGINT, signal.SIG_DFL)
signal.raise_signal(signal.SIGINT)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    assert done.stdout == "cancelled\nignored\n" and done.returncode == -signal.SIGINT
