"""Compiles the sources of this folder that name NVRTC: `python3 nvrtc.py OUT`, with NVIDIA's packages for CUDA 12 installed."""

import ctypes
import pathlib
import sys
import sysconfig

HERE = pathlib.Path(__file__).resolve().parent
NVIDIA = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nvidia"
INCLUDES = [NVIDIA / package / "include" for package in ("cuda_runtime", "cuda_nvcc")]
LIBRARY = ctypes.CDLL(str(next((NVIDIA / "cuda_nvrtc/lib").glob("libnvrtc.so.*"))))


def text_of(program, what):
    """The PTX or the log of a program."""
    size = ctypes.c_size_t()
    getattr(LIBRARY, f"nvrtcGet{what}Size")(program, ctypes.byref(size))
    text = ctypes.create_string_buffer(size.value)
    getattr(LIBRARY, f"nvrtcGet{what}")(program, text)
    return text.value.decode()


def compiled(source, target):
    """The PTX of a source for a target such as `sm_80`."""
    program = ctypes.c_void_p()
    LIBRARY.nvrtcCreateProgram(ctypes.byref(program), source.read_bytes(), source.name.encode(), 0, None, None)
    options = ["-std=c++17", f"-arch={target.replace('sm', 'compute')}", *(f"-I{folder}" for folder in INCLUDES)]
    words = (ctypes.c_char_p * len(options))(*(option.encode() for option in options))
    if LIBRARY.nvrtcCompileProgram(program, len(options), words):
        sys.exit(f"{source.name}, {target}:\n{text_of(program, 'ProgramLog')}")
    text = text_of(program, "PTX")
    LIBRARY.nvrtcDestroyProgram(ctypes.byref(program))
    return text


def main(out):
    for source in sorted(HERE.glob("*.cu")):
        for line in source.read_text().splitlines():
            if line.startswith("// nvrtc: "):
                for target in line.removeprefix("// nvrtc: ").split():
                    name = f"{source.stem}_{target.replace('_', '')}.ptx"
                    (out / name).write_text(compiled(source, target))


main(pathlib.Path(sys.argv[1]))
