"""The arrays of a kernel: small ones stand in its text, large ones in an archive of `data`, which its header names.

The other scripts use this. `ptxvm run` sets variables from such an archive (`--set in_a=@data/NAME.npz[in_a]`), and `OUT 0:
@data/NAME.npz[out0]` names the values that must come out.
"""

import io
import zipfile
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent.parent
# Arrays of more elements than these stand in the archive.
SMALL = 256
TYPES = {"b8": np.uint8, "b32": np.uint32}


def in_lines(argument, words):
    """The lines of a header with the values of an argument."""
    return "".join(f"// OUT {argument}: {' '.join(words[at : at + 16])}\n" for at in range(0, len(words), 16))


def header(what, run, expected):
    """The header of a kernel: what it shows, its options, and lines of `in_lines`."""
    return "".join(f"// {line}\n" for line in what) + f"//\n// RUN: {run}\n{expected}\n"


class Arrays:
    """Those of one archive; of one kernel, unless several share it."""

    def __init__(self, name):
        self.name = name
        self.arrays = {}
        # What the kernel's `RUN` needs besides.
        self.options = ""

    def add(self, label, values, kind):
        """Puts an array into the archive; its place, as headers name it."""
        array = np.array(values, np.uint64).astype(TYPES[kind])
        assert array.tolist() == list(values), f"{label} is no array of {kind}"
        self.arrays[label] = array
        return f"@data/{self.name}.npz[{label}]"

    def variable(self, label, kind, values, spell="{:#x}".format):
        """The declaration of a variable in global memory."""
        values = [int(value) for value in values]
        start = f".global .align 16 .{kind} {label}[{len(values)}]"
        if len(values) <= SMALL:
            return f"{start} = {{{', '.join(map(spell, values))}}};\n"
        self.options += f" --set {label}={self.add(label, values, kind)}"
        return f"{start};\n"

    def expected(self, argument, values, spell="{:#x}".format, launch=None):
        """The lines of a header with the values of an argument of words; `launch` counts the launches of a kernel that has several."""
        values = [int(value) for value in values]
        if len(values) <= SMALL:
            return in_lines(argument, [spell(value) for value in values])
        label = f"out{argument}" if launch is None else f"{launch}.out{argument}"
        return f"// OUT {argument}: {self.add(label, values, 'b32')}\n"

    def write(self):
        """Writes the archive, if there is anything in it. The same arrays give the same bytes."""
        path = HERE / "data" / f"{self.name}.npz"
        members = {}
        for label, array in self.arrays.items():
            file = io.BytesIO()
            np.lib.format.write_array(file, array, version=(1, 0))
            members[f"{label}.npy"] = file.getvalue()
        # Not every zlib makes the same bytes of them: an archive that has these arrays stays.
        if path.exists():
            with zipfile.ZipFile(path) as archive:
                if {name: archive.read(name) for name in archive.namelist()} == members:
                    return
        if not members:
            path.unlink(missing_ok=True)
            return
        path.parent.mkdir(exist_ok=True)
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in members.items():
                member = zipfile.ZipInfo(name, (1980, 1, 1, 0, 0, 0))
                member.compress_type, member.create_system, member.external_attr = zipfile.ZIP_DEFLATED, 3, 0o644 << 16
                archive.writestr(member, data, compresslevel=9)

    def kernel(self, what, run, expected, text):
        """Writes the kernel of this name, and its archive."""
        (HERE / f"{self.name}.ptx").write_text(header(what, run + self.options, expected) + text)
        self.write()
