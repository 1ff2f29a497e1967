"""Calls every function that cuda.h declares, in a C program compiled against it: with zeros, with pointers to zeros instead of
null pointers and handles that are none, and with zeros while no context is current. None may crash or hang; each call has a process of its own."""

import os
import re
import subprocess
import sysconfig

INCLUDE = os.path.join(sysconfig.get_paths()["purelib"], "nvidia/cu13/include")
LIBRARY = os.environ["LD_LIBRARY_PATH"].split(":")[0]

# Functions and structures that are passed by value.
CALLBACKS = {"CUoccupancyB2DSize", "CUhostFn", "CUstreamCallback", "CUasyncCallback", "CUlogsCallback", "CUcoredumpStatusCallback",
             "CUgraphRecaptureCallback"}
STRUCTURES = {"CUmemLocation", "CUipcMemHandle", "CUipcEventHandle"}
# Addresses, which one mode sets to 1: no function may look there, but this one may, where addresses are the program's own.
NUMBERS = {"CUdeviceptr", "CUmemGenericAllocationHandle", "CUtexObject", "CUsurfObject", "CUgraphConditionalHandle", "CUlogIterator"}

MAIN = """
static char scratch[1 << 16];

static int run(const char *name, int mode, int (*call)(void)) {
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        CUcontext context;
        alarm(20);
        cuInit(0);
        cuDevicePrimaryCtxRetain(&context, 0);
        if (mode != 2) cuCtxSetCurrent(context);
        call();
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status) printf("failed %s, mode %d: status %x\\n", name, mode, status);
    else printf("passed %s, mode %d\\n", name, mode);
    return 0;
}
"""


def declarations():
    """Name and parameters of each function."""
    text = subprocess.run(["gcc", "-E", "-P", "-include", INCLUDE + "/cuda.h", "-x", "c", "/dev/null"],
                          capture_output=True, text=True, check=True).stdout
    for name, parameters in re.findall(r"CUresult\s+(cu\w+)\s*\(([^;]*?)\)\s*;", text, re.S):
        parameters = parameters.strip()
        yield name, [] if parameters in ("", "void") else [part.strip() for part in re.split(r",(?![^(]*\))", parameters)]


def argument(parameter, pointers):
    """What is passed: zero, or a pointer to zeros where a pointer or a handle is wanted."""
    if parameter.endswith("]"):
        return "(void *)scratch" if pointers else "0"
    kind = re.match(r"(.*?)(\w+)$", parameter, re.S)[1].strip() or parameter
    if kind in STRUCTURES:
        return f"*({kind} *)scratch"
    if "(*" in parameter or kind in CALLBACKS:
        return f"({kind})0"
    handle = re.fullmatch(r"CU[a-z]\w*", kind) and kind not in NUMBERS and is_pointer(kind)
    if kind.endswith("*") or handle:
        return f"({kind})" + ("scratch" if pointers else "0")
    return f"({kind})" + ("1" if pointers and kind in NUMBERS else "0")


def is_pointer(kind):
    """Handles are pointers to structures that nobody knows."""
    return kind in POINTERS


HEADER = open(INCLUDE + "/cuda.h").read()
POINTERS = set(re.findall(r"typedef struct \w+ \*(\w+);", HEADER))

calls = []
lines = ["#include <cuda.h>", "#include <stdio.h>", "#include <sys/wait.h>", "#include <unistd.h>", MAIN]
for name, parameters in declarations():
    for pointers in (0, 1):
        arguments = ", ".join(argument(parameter, pointers) for parameter in parameters)
        lines.append(f"static int call{pointers}_{name}(void) {{ return (int){name}({arguments}); }}")
    calls.append(name)
lines.append("int main(void) {")
for mode in range(3):
    lines += [f'    run("{name}", {mode}, call{int(mode == 1)}_{name});' for name in calls]
lines.append("    return 0;\n}\n")

with open("header_calls.c", "w") as file:
    file.write("\n".join(lines))
subprocess.run(["gcc", "-w", "-I", INCLUDE, "header_calls.c", "-o", "header_calls", "-L", LIBRARY, "-lcuda"], check=True)
subprocess.run(["./header_calls"], check=True)
print("done")
