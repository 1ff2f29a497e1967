"""Writes the kernels of `cp.reduce.async.bulk` beside this folder, with the results that must come out.

    python3 tests/run/reference/bulk.py

The results are numpy's, in the type of the elements; of the halves by way of binary32, which has room enough for the sum of two.
"""

import numpy as np

from archive import HERE, in_lines

BYTES = 64


def bf16_to_f32(bits):
    return (bits.astype(np.uint32) << 16).view(np.float32)


def f32_to_bf16(x):
    bits = x.view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)


def reduce(op, ty, old, new):
    """Arrays of bits to arrays of bits."""
    kind = {"u": "uint", "s": "int", "b": "uint"}.get(ty[0])
    if ty == "bf16":
        a, b = bf16_to_f32(old), bf16_to_f32(new)
        return f32_to_bf16({"add": np.add, "min": np.minimum, "max": np.maximum}[op](a, b))
    if ty[0] == "f":
        kind = "float"
    a, b = (x.view(f"{kind}{ty[1:]}") for x in (old, new))
    if op == "inc":
        return np.where(a >= b, 0, a + 1).astype(old.dtype)
    if op == "dec":
        return np.where((a == 0) | (a > b), b, a - 1).astype(old.dtype)
    functions = dict(add=np.add, min=np.minimum, max=np.maximum)
    functions |= {"and": np.bitwise_and, "or": np.bitwise_or, "xor": np.bitwise_xor}
    return functions[op](a, b).view(old.dtype)


def values(rng, op, ty):
    """The bits of so many elements: any integers, and floats of all sizes that are numbers."""
    bits = int(ty.lstrip("busf")) if ty[0] != "b" or ty[1] != "f" else 16
    unsigned = f"uint{bits}"
    count = BYTES * 8 // bits
    raw = rng.integers(0, 2**bits, count, dtype=unsigned, endpoint=False) if bits < 64 else rng.integers(0, 2**63, count, dtype=np.uint64) * 2 + 1
    if op in ("inc", "dec"):
        return rng.integers(0, 4, count, dtype=unsigned)
    if ty in ("f16", "bf16", "f32", "f64"):
        exponent, fraction = dict(f16=(5, 10), bf16=(8, 7), f32=(8, 23), f64=(11, 52))[ty]
        middle = 1 << exponent - 1
        chosen = rng.integers(middle - 4, middle + 4, count).astype(unsigned)
        # Some are subnormal.
        chosen[::4] = 0
        raw = raw & np.array((1 << fraction) - 1 | 1 << bits - 1, unsigned) | chosen << np.array(fraction, unsigned)
    return raw


def listing(data):
    return ", ".join(str(b) for b in data.view(np.uint8).tolist())


def out_lines(argument, data):
    return in_lines(argument, [f"{w:#x}" for w in data.view(np.uint32).tolist()])


def main():
    rng = np.random.default_rng(3)
    to_global = [("add", ty) for ty in ("u32", "s32", "u64", "f32", "f64", "f16", "bf16")]
    to_global += [(op, ty) for op in ("min", "max") for ty in ("u32", "s32", "u64", "s64", "f16", "bf16")]
    to_global += [(op, ty) for op in ("and", "or", "xor") for ty in ("b32", "b64")] + [("inc", "u32"), ("dec", "u32")]
    to_shared = [("add", ty) for ty in ("u32", "s32", "u64")] + [(op, ty) for op in ("min", "max") for ty in ("u32", "s32")]
    to_shared += [(op, "b32") for op in ("and", "or", "xor")] + [("inc", "u32"), ("dec", "u32")]
    for name, cases in (("cp_reduce_bulk_global", to_global), ("cp_reduce_bulk_shared", to_shared)):
        old = [values(rng, op, ty) for op, ty in cases]
        new = [values(rng, op, ty) for op, ty in cases]
        result = [reduce(op, ty, a, b) for (op, ty), a, b in zip(cases, old, new)]
        size = BYTES * len(cases)
        shared = name.endswith("shared")
        code = ""
        for i, (op, ty) in enumerate(cases):
            operation = f"{op}.noftz.{ty}" if op == "add" and ty in ("f16", "bf16") else f"{op}.{ty}"
            if shared:
                code += "    cp.reduce.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
                code += f".{operation} [old+{BYTES * i}], [new+{BYTES * i}], {BYTES}, [barrier];\n"
            else:
                code += f"    cp.reduce.async.bulk.global.shared::cta.bulk_group.{operation} [%out+{BYTES * i}], [new+{BYTES * i}], {BYTES};\n"
        text = f"// cp.reduce.async.bulk to {'shared memory, which an mbarrier object hears of' if shared else 'global memory, in a bulk group'}: every operation and type.\n"
        text += "// Expected from numpy. Written by reference/bulk.py.\n//\n"
        text += f"// RUN: --block 1{' --cluster 1' if shared else ''} --arg u32[{size // 4}]\n{out_lines(0, np.concatenate([r.view(np.uint8) for r in result]))}"
        text += "\n.version 8.0\n.target sm_90\n.address_size 64\n\n"
        for label, data in (("in_old", old), ("in_new", new)):
            text += f".global .align 16 .b8 {label}[{size}] = {{{', '.join(listing(d) for d in data)}}};\n"
        text += f"""
.visible .entry test(.param .u64 out)
{{
    .reg .b64 %out, %state, %from;
    .reg .pred %done;
    .shared .align 16 .b8 old[{size}];
    .shared .align 16 .b8 new[{size}];
    .shared .align 8 .b64 barrier;
    ld.param.u64 %out, [out];
    mbarrier.init.shared.b64 [barrier], 1;
    mbarrier.arrive.expect_tx.shared.b64 %state, [barrier], {2 * size};
    mov.u64 %from, in_old;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [old], [%from], {size}, [barrier];
    mov.u64 %from, in_new;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [new], [%from], {size}, [barrier];
loaded:
    mbarrier.try_wait.shared.b64 %done, [barrier], %state;
    @!%done bra loaded;
"""
        store = f"    cp.async.bulk.global.shared::cta.bulk_group [%out], [old], {size};\n    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group 0;\n"
        if shared:
            text += f"    mbarrier.arrive.expect_tx.shared.b64 %state, [barrier], {size};\n{code}"
            text += "reduced:\n    mbarrier.try_wait.shared.b64 %done, [barrier], %state;\n    @!%done bra reduced;\n" + store
        else:
            text += store + code + "    cp.async.bulk.commit_group;\n    cp.async.bulk.wait_group.read 0;\n    cp.async.bulk.wait_group 0;\n"
        (HERE / f"{name}.ptx").write_text(text + "    ret;\n}\n")


main()
