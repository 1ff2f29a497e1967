"""Launches and sweeps in parts, for any ``concurrent.futures.Executor``: other processes, or other machines.

>>> with ProcessPoolExecutor() as executor:
...     ptxvm.jobs.run(module["saxpy"][4096, 256], n, 2.0, x, y, executor=executor, parts=8)

A job is a picklable object that is called without arguments: :func:`split` and :func:`split_sweep` make them, :func:`run` and :func:`sweep` do everything. Blocks of a kernel that learn of each other must not run apart: a kernel with atomic
operations is refused, unless they only combine values, and it is said how the parts are brought together again (``merge``).
"""

import contextlib
import functools
import importlib
import itertools
from concurrent.futures import as_completed

import numpy

from ._error import Error
from ._evaluate import _UNSIGNED, _dtype, _instruction, evaluate
from ._native import Launcher, Object

__all__ = ["LaunchJob", "SweepJob", "SweepResult", "merge", "run", "split", "split_sweep", "sweep"]


def _refuse(text):
    return Error(text, code="order-between-blocks")


def _wrapping(function):
    def apply(before, parts):
        with numpy.errstate(all="ignore"):
            return function(before, parts)

    return apply


def _add(before, parts):
    # What each part added, to what was there: exact for integers, which wrap around.
    total = before.copy()
    for part in parts:
        total += part - before
    return total


#: Named reductions: how what several parts left in an array becomes what one launch would have left.
REDUCTIONS = {
    "add": _wrapping(_add),
    "min": lambda before, parts: functools.reduce(numpy.minimum, parts),
    "max": lambda before, parts: functools.reduce(numpy.maximum, parts),
    "and": lambda before, parts: functools.reduce(numpy.bitwise_and, parts),
    "or": lambda before, parts: functools.reduce(numpy.bitwise_or, parts),
    # What each part flipped.
    "xor": lambda before, parts: functools.reduce(lambda a, b: a ^ b ^ before, parts),
}


class LaunchJob:
    """Some blocks of a launch. Returns what each array is afterwards: runs of bytes that changed, or the array if it is merged."""

    def __init__(self, launcher, arguments, options, blocks, whole):
        self.launcher, self.arguments, self.options = launcher, arguments, options
        self.blocks = blocks
        self.whole = whole

    def __call__(self):
        copies = [_copy(argument) for argument in self.arguments]
        report = self.launcher(*copies, blocks=self.blocks, **self.options)
        results = {}
        for place, (before, after) in enumerate(zip(_arrays(self.arguments), _arrays(copies))):
            results[place] = after if place in self.whole else _changes(before, after)
        return report.thread_instructions, report.seconds, results

    def __repr__(self):
        return f"<LaunchJob {self.launcher.kernel.name}, blocks {self.blocks[0]} to {self.blocks[1]}>"


def _copy(argument):
    if isinstance(argument, numpy.ndarray):
        return argument.copy(order="K")
    if isinstance(argument, tuple):
        return tuple(map(_copy, argument))
    if isinstance(argument, Object) and argument.array is not None:
        return argument._with(argument.array.copy())
    return argument


def _arrays(arguments):
    """The arrays among arguments, in structures, of textures and surfaces, in order."""
    for argument in arguments:
        if isinstance(argument, numpy.ndarray):
            yield argument
        elif isinstance(argument, Object) and argument.array is not None:
            yield argument.array
        elif isinstance(argument, tuple):
            yield from _arrays(argument)


def _bytes(array):
    return array.reshape(-1, order="A").view(numpy.uint8)


def _changes(before, after):
    """Where bytes differ, and what is there now."""
    now = _bytes(after)
    changed = numpy.flatnonzero(_bytes(before) != now)
    return changed, now[changed]


def split(launcher, *arguments, parts, merge=None, **options):
    """The jobs that do what one launch of ``kernel[grid, block]`` does: each has some of the blocks.

    ``merge`` names how an array is brought together that blocks combine values in: ``{3: "add"}`` for argument 3. Of a structure, arrays are
    counted as they stand: ``merge`` counts all arrays of the arguments from 0 then (``{"array 2": "max"}``).

    Raises :class:`ptxvm.Error` with the code ``order-between-blocks`` for kernels whose blocks may learn of each other.
    """
    if not isinstance(launcher, Launcher):
        raise TypeError("a launcher is kernel[grid, block]")
    for argument in _flat(arguments):
        is_array = hasattr(argument, "__array_interface__") or hasattr(argument, "__dlpack__")
        if (is_array and not isinstance(argument, (numpy.ndarray, numpy.generic))) or isinstance(argument, (bytearray, memoryview)):
            raise TypeError(f"arrays of jobs are numpy's, which can be sent: not {type(argument).__name__}")
    if options.get("cluster"):
        raise _refuse("the blocks of a cluster run together: they must not run apart")
    if options.get("cooperative"):
        raise _refuse("the blocks of a cooperative launch wait for one another: they must not run apart")
    for name in ("tool", "trace", "watch", "first_nan"):
        if options.get(name):
            raise TypeError(f"{name}= watches one launch: jobs have none, run kernel[grid, block](...) with it")
    arrays = list(_arrays(arguments))
    if not all(array.flags.forc for array in arrays):
        raise TypeError("the elements of an array do not lie one behind the other: make it numpy.ascontiguousarray(x)")
    # Pickle could change the order of bytes, and what comes back would no longer fit.
    if any(array.dtype.hasobject for array in arrays):
        raise TypeError("the elements of an array are objects of Python: give them a type, numpy.asarray(x, dtype=\"float32\")")
    if not all(array.dtype.isnative for array in arrays):
        raise TypeError("the highest byte of an array's elements comes first: make it x.astype(x.dtype.newbyteorder(\"=\"))")
    for first, second in itertools.combinations(arrays, 2):
        if numpy.shares_memory(first, second):
            raise _refuse("two arrays share memory, which copies of them would not")
    whole = _merged_arrays(arguments, merge or {})
    for file, line, text, combines in launcher.kernel._order_between_blocks():
        if not combines:
            raise _refuse(
                f"{file}:{line}: `{text}` reads what other blocks may have written: blocks must not run apart"
            )
        if not whole:
            raise _refuse(
                f"{file}:{line}: `{text}` combines what several blocks bring: say how the array is brought together again, "
                f"merge={{argument: reduction}}, with one of {', '.join(REDUCTIONS)}"
            )
    x, y, z = launcher.grid
    blocks = x * y * z
    parts = max(1, min(int(parts), blocks))
    bounds = [blocks * part // parts for part in range(parts + 1)]
    return [LaunchJob(launcher, arguments, options, pair, whole) for pair in zip(bounds, bounds[1:])]


def _flat(arguments):
    for argument in arguments:
        if isinstance(argument, tuple):
            yield from _flat(argument)
        else:
            yield argument


def _merged_arrays(arguments, merge):
    """By place among all arrays: how it is merged."""
    places, found = {}, {}
    for index, argument in enumerate(arguments):
        for _ in _arrays([argument]):
            place = len(places)
            places[place] = index
    for name, reduction in merge.items():
        if reduction not in REDUCTIONS:
            raise ValueError(f"`{reduction}` is no reduction: {', '.join(REDUCTIONS)}")
        if isinstance(name, str) and name.startswith("array "):
            chosen = [int(name[6:])]
        else:
            chosen = [place for place, index in places.items() if index == name]
        if len(chosen) != 1 or chosen[0] not in places:
            raise ValueError(f"merge: {name!r} is no array of the launch")
        array = list(_arrays(arguments))[chosen[0]]
        if array.dtype.kind == "f" and reduction == "add":
            raise ValueError("sums of floating point depend on their order, and so on the parts: merge them by yourself")
        found[chosen[0]] = reduction
    return found


def merge(jobs, results):
    """Brings what jobs of one :func:`split` returned into the arrays of the launch. Returns instructions and seconds of all."""
    arguments, whole = jobs[0].arguments, jobs[0].whole
    instructions, seconds = sum(result[0] for result in results), sum(result[1] for result in results)
    atomic = bool(jobs[0].launcher.kernel._order_between_blocks())
    final = []
    for place, array in enumerate(_arrays(arguments)):
        if place in whole:
            final.append(REDUCTIONS[whole[place]](array, [result[2][place] for result in results]))
            continue
        now, owner = _bytes(array).copy(), None
        for part, (_, _, changes) in enumerate(results):
            where, values = changes[place]
            if not len(where):
                continue
            if owner is None:
                owner = numpy.full(now.size, -1, numpy.int32)
            taken = owner[where] >= 0
            # What several blocks combined, or raced for, is not what the last of them left.
            clash = taken if atomic else taken & (now[where] != values)
            if clash.any():
                at = int(where[clash][0])
                other = jobs[int(owner[at])]
                raise _refuse(
                    f"{jobs[part]!r} and {other!r} both wrote byte {at} of array {place}: the result depends on the order of blocks"
                )
            owner[where] = part
            now[where] = values
        final.append(now)
    for array, now in zip(_arrays(arguments), final):
        now = now if now.dtype == numpy.uint8 and now.ndim == 1 else _bytes(numpy.asarray(now, array.dtype))
        if not numpy.array_equal(_bytes(array), now):
            _bytes(array)[...] = now
    return instructions, seconds


def _do(jobs, executor, progress, sizes):
    """What all jobs return, in order. Jobs that have not begun when this is interrupted are cancelled."""
    with _bar(progress, sum(sizes)) as update:
        if executor is None:
            return [(job(), update(size))[0] for job, size in zip(jobs, sizes)]
        futures = [executor.submit(job) for job in jobs]
        try:
            if progress:
                by_future = dict(zip(futures, sizes))
                for future in as_completed(futures):
                    update(by_future[future])
            return [future.result() for future in futures]
        finally:
            for future in futures:
                future.cancel()


@contextlib.contextmanager
def _bar(progress, total):
    """The ``update`` of a bar: none, a new one of tqdm's, or one that was given."""
    if not progress:
        yield lambda count: None
    elif progress is True:
        with importlib.import_module("tqdm.auto").tqdm(total=total, unit_scale=True) as bar:
            yield bar.update
    else:
        if getattr(progress, "total", None) is None:
            progress.total = total
        yield progress.update


def run(launcher, *arguments, executor, parts=8, merge=None, progress=None, **options):
    """Does what ``kernel[grid, block](...)`` does, in parts on an executor; the arrays are as one launch leaves them.

    Returns the instructions and seconds of all parts. ``progress`` is ``True`` or a bar of tqdm's, which counts blocks.
    """
    jobs = split(launcher, *arguments, parts=parts, merge=merge, **options)
    results = _do(jobs, executor, progress, [job.blocks[1] - job.blocks[0] for job in jobs])
    return globals()["merge"](jobs, results)


class SweepResult:
    """What a sweep found: how many operands there were, how many results differ, and the first of those."""

    def __init__(self, count=0, different=0, first=None, sums=()):
        self.count, self.different, self.first, self.sums = count, different, first, tuple(sums)

    def __add__(self, other):
        sums = [a + b for a, b in itertools.zip_longest(self.sums, other.sums, fillvalue=0)]
        first = self.first if self.first is not None else other.first
        return SweepResult(self.count + other.count, self.different + other.different, first, sums)

    def __eq__(self, other):
        return isinstance(other, SweepResult) and vars(self) == vars(other)

    def __repr__(self):
        return f"SweepResult(count={self.count}, different={self.different}, first={self.first}, sums={self.sums})"


class SweepJob:
    """An instruction on all operands from one index to another, the last operand's bits counting fastest."""

    #: Operands that are looked at together.
    CHUNK = 1 << 20

    def __init__(self, instruction, bits, start, end, expected, target):
        self.instruction, self.bits, self.start, self.end = instruction, bits, start, end
        self.expected, self.target = expected, target

    def __call__(self):
        result = SweepResult()
        for begin in range(self.start, self.end, self.CHUNK):
            result += self._chunk(begin, min(begin + self.CHUNK, self.end))
        return result

    def _chunk(self, begin, end):
        index = numpy.arange(begin, end, dtype=numpy.uint64)
        operands, shift = [], sum(self.bits)
        for bits in self.bits:
            shift -= bits
            values = (index >> numpy.uint64(shift)) & numpy.uint64((1 << bits) - 1)
            operands.append(values.astype(numpy.bool_ if bits == 1 else _UNSIGNED[bits]))
        results = evaluate(self.instruction, operands, self.target)
        results = results if isinstance(results, tuple) else (results,)
        raw = [_raw(result, end - begin) for result in results]
        sums = [int(values.sum(dtype=numpy.uint64)) for values in raw]
        if self.expected is None:
            return SweepResult(end - begin, sums=sums)
        described = _instruction(self.instruction, len(self.bits), self.target)
        typed = [_typed(values, source) for values, source in zip(operands, described.sources)]
        wanted = self.expected(*typed)
        wanted = wanted if isinstance(wanted, tuple) else (wanted,)
        differs = numpy.zeros(end - begin, numpy.bool_)
        for one, values in zip(wanted, raw):
            differs |= _raw(numpy.asarray(one), end - begin) != values
        places = numpy.flatnonzero(differs)
        first = tuple(int(values[places[0]]) for values in operands) if len(places) else None
        return SweepResult(end - begin, len(places), first, sums)

    def __repr__(self):
        return f"<SweepJob {self.instruction}, operands {self.start} to {self.end}>"


def _raw(values, count):
    """The bits of results, one integer for each."""
    values = numpy.ascontiguousarray(values)
    if values.dtype == numpy.bool_:
        return values.reshape(count)
    return values.reshape(count, -1).view(_UNSIGNED[values.nbytes // count * 8]).reshape(count)


def _typed(values, description):
    dtype = _dtype(description[1])
    return values if dtype is None or values.dtype == dtype else values.view(dtype)


def split_sweep(instruction, operands, expected=None, *, parts=8, target=None, start=0, end=None):
    """The jobs that do what one :func:`sweep` does; what they return is added up, in order."""
    described = _instruction(instruction, operands, target)
    bits = [source[2] for source in described.sources]
    if sum(bits) > 63:
        raise ValueError(f"{sum(bits)} bits of operands are more than anyone could try")
    end = 1 << sum(bits) if end is None else end
    parts = max(1, min(int(parts), end - start))
    bounds = [start + (end - start) * part // parts for part in range(parts + 1)]
    return [SweepJob(instruction, bits, *pair, expected, target) for pair in zip(bounds, bounds[1:])]


def sweep(instruction, operands, expected=None, *, executor=None, parts=8, target=None, start=0, end=None, progress=None):
    """An instruction on all bits of its operands (``setp.lt.f16`` has two: 2^32 pairs), or on those from an index to another.

    ``expected`` is a function of the operands, as arrays, that returns what the results are to be; it must be picklable. Without it only the
    sums of all results are returned, which tell two machines apart. Parts give the same result as the whole. ``progress`` is ``True`` or a bar
    of tqdm's, which counts operands.
    """
    jobs = split_sweep(instruction, operands, expected, parts=parts, target=target, start=start, end=end)
    return sum(_do(jobs, executor, progress, [job.end - job.start for job in jobs]), SweepResult())


def _main(words=None):
    """``python -m ptxvm.jobs setp.lt.f16 --operands 2 --expected operator.lt``: a sweep from the command line."""
    import argparse
    import time
    from concurrent.futures import ProcessPoolExecutor
    from multiprocessing import get_context

    parser = argparse.ArgumentParser(prog="python -m ptxvm.jobs", description="Tries an instruction on all bits of its operands.")
    parser.add_argument("instruction", help="setp.lt.f16")
    parser.add_argument("--operands", type=int, default=2, help="how many operands it has (2)")
    parser.add_argument("--expected", help="function that the results are compared with: operator.lt, numpy.add")
    parser.add_argument("--start", type=int, default=0, help="first operands, as one number (0)")
    parser.add_argument("--end", type=int, help="where to stop; after all operands")
    parser.add_argument("--parts", type=int, default=64, help="jobs (64)")
    parser.add_argument("--workers", type=int, default=1, help="processes (1)")
    parser.add_argument("--target", help="sm_90")
    chosen = parser.parse_args(words)
    expected = None
    if chosen.expected:
        module, _, name = chosen.expected.rpartition(".")
        expected = getattr(importlib.import_module(module or "builtins"), name)
    begun = time.perf_counter()
    several = ProcessPoolExecutor(chosen.workers, mp_context=get_context("spawn")) if chosen.workers > 1 else contextlib.nullcontext()
    with several as executor:
        options = {"parts": chosen.parts, "target": chosen.target, "start": chosen.start, "end": chosen.end}
        result = sweep(chosen.instruction, chosen.operands, expected, executor=executor, **options)
    print(f"{chosen.instruction}: {result!r}, {time.perf_counter() - begun:.1f} s")
    return 1 if result.different else 0


if __name__ == "__main__":
    # The module by its name: jobs are pickled under it.
    raise SystemExit(importlib.import_module("ptxvm.jobs")._main())
