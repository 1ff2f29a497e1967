"""Runs kernels of this folder on a GPU, and says whose results are not those in their headers.

    python3 tests/run/reference/gpu.py tests/run/tcgen05_*.ptx

For kernels whose only argument is an array of zeros that comes back: those of tcgen05, wgmma, mma. The CUDA driver is called as it is
(libcuda.so.1), so that ours can stand in for it to try this program.
"""

import ctypes
import re
import struct
import sys
import zipfile
from pathlib import Path

RUN = re.compile(r"^// RUN: (?:--grid (\d+) )?--block (\d+) --arg ([uf])(\d+)\[([\dx]+)\]((?: --set \S+)*)$", re.M)
PLACE = re.compile(r"@(.+\.npz)\[(.+)\]")


def stored(folder, place):
    """The bytes of an array of an archive."""
    path, name = PLACE.fullmatch(place).groups()
    with zipfile.ZipFile(folder / path) as archive:
        file = archive.read(f"{name}.npy")
    return file[10 + int.from_bytes(file[8:10], "little") :]


class Driver:
    def __init__(self):
        self.library = ctypes.CDLL("libcuda.so.1")
        self.call("cuInit", 0)
        self.device = ctypes.c_int()
        self.call("cuDeviceGet", ctypes.byref(self.device), 0)
        self.context = None

    def call(self, name, *arguments):
        code = getattr(self.library, name)(*arguments)
        if code:
            raise RuntimeError(f"{name}: error {code}")

    def renew(self):
        """A context that no fault has broken."""
        if self.context:
            self.library.cuCtxDestroy_v2(self.context)
        self.context = ctypes.c_void_p()
        self.call("cuCtxCreate_v2", ctypes.byref(self.context), 0, self.device)

    def run(self, text, grid, block, size, variables):
        module, function, memory = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_uint64()
        self.call("cuModuleLoadData", ctypes.byref(module), text.encode() + b"\0")
        self.call("cuModuleGetFunction", ctypes.byref(function), module, b"test")
        for name, data in variables.items():
            address, there = ctypes.c_uint64(), ctypes.c_size_t()
            self.call("cuModuleGetGlobal_v2", ctypes.byref(address), ctypes.byref(there), module, name.encode())
            assert there.value == len(data), name
            self.call("cuMemcpyHtoD_v2", address, data, there)
        self.call("cuMemAlloc_v2", ctypes.byref(memory), ctypes.c_size_t(size))
        self.call("cuMemsetD8_v2", memory, ctypes.c_ubyte(0), ctypes.c_size_t(size))
        parameters = (ctypes.c_void_p * 1)(ctypes.addressof(memory))
        self.call("cuLaunchKernel", function, grid, 1, 1, block, 1, 1, 0, None, parameters, None)
        self.call("cuCtxSynchronize")
        result = ctypes.create_string_buffer(size)
        self.call("cuMemcpyDtoH_v2", result, memory, ctypes.c_size_t(size))
        self.call("cuMemFree_v2", memory)
        self.call("cuModuleUnload", module)
        return result.raw


def main():
    driver = Driver()
    driver.renew()
    same, different, skipped = 0, 0, 0
    for path in map(Path, sys.argv[1:]):
        text = path.read_text()
        found = RUN.findall(text)
        values = [word for line in re.findall(r"^// OUT 0: (.*)$", text, re.M) for word in line.split()]
        if len(found) != 1 or found[0][3] != "32" or not all(re.fullmatch(r"0x[0-9a-f]+|\d+|@data/\S+", value) for value in values):
            skipped += 1
            continue
        grid, block = int(found[0][0] or 1), int(found[0][1])
        expected = []
        for value in values:
            if value.startswith("@"):
                data = stored(path.parent, value)
                expected += struct.unpack(f"<{len(data) // 4}I", data)
            else:
                expected.append(int(value, 0))
        assignments = [assignment.split("=", 1) for assignment in found[0][5].split() if assignment != "--set"]
        variables = {name: stored(path.parent, place) for name, place in assignments}
        try:
            raw = driver.run(text, grid, block, 4 * len(expected), variables)
        except RuntimeError as error:
            print(f"{path.name}: {error}")
            different += 1
            driver.renew()
            continue
        got = struct.unpack(f"<{len(expected)}I", raw)
        wrong = [i for i, pair in enumerate(zip(got, expected)) if pair[0] != pair[1]]
        if wrong:
            at = wrong[0]
            print(f"{path.name}: {len(wrong)} of {len(expected)} words differ, the first is {at}: {got[at]:#x}, not {expected[at]:#x}")
        different += bool(wrong)
        same += not wrong
    print(f"{same} as expected, {different} not, {skipped} with other arguments")
    sys.exit(different > 0)


if __name__ == "__main__":
    main()
