//! Kernels and functions with so many registers that their places need more than 32 bits in a chunk of 1024 threads.

use std::fmt::Write;

use ptxvm::{Device, Module};

/// Distinct literals: 8 bytes each in 1024 threads are more than 4 GiB.
const LITERALS: u64 = 560_000;

/// Adds all literals to `%sum`.
fn additions() -> (String, u64) {
    let mut text = String::new();
    let mut sum = 0u64;
    for i in 0..LITERALS {
        let literal = i * 0x1_0000_0001 + 1;
        sum = sum.wrapping_add(literal);
        let _ = writeln!(text, "add.u64 %sum, %sum, {literal};");
    }
    (text, sum)
}

const HEAD: &str = ".version 7.8\n.target sm_80\n.address_size 64\n";
const STORE: &str =
    "ld.param.u64 %out, [out]; mad.wide.u32 %out, %i, 8, %out; st.global.u64 [%out], %sum; ret;";

#[test]
fn as_many_literals_as_need_33_bits() {
    let (additions, sum) = additions();
    let kernel = format!(
        "{HEAD}.visible .entry test(.param .u64 out) {{ .reg .u64 %sum, %out; .reg .u32 %i; mov.u32 %i, %tid.x;
        cvt.u64.u32 %sum, %i; {additions} {STORE} }}"
    );
    let function = format!(
        "{HEAD}.func (.reg .u64 %sum) add_all(.reg .u64 %from) {{ mov.u64 %sum, %from; {additions} ret; }}
        .visible .entry test(.param .u64 out) {{ .reg .u64 %sum, %out; .reg .u32 %i; mov.u32 %i, %tid.x;
        cvt.u64.u32 %sum, %i; call (%sum), add_all, (%sum); {STORE} }}"
    );
    for text in [kernel, function] {
        let device = Device::new();
        let module = device.load(&Module::from_ptx(&text).unwrap()).unwrap();
        let out = device.zeros::<u64>(1024).unwrap();
        module.launch("test").block(1024).arg(&out).run().unwrap();
        let expected: Vec<u64> = (0..1024).map(|i| sum.wrapping_add(i)).collect();
        assert_eq!(out.read().unwrap(), expected);
    }
}
