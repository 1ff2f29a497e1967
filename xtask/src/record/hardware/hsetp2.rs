//! `cargo xtask record hardware --hsetp2`: what the GPU makes of HSETP2 as such, of encodings too that ptxas never writes.
//!
//! The driver compiles one `setp`; its HSETP2 is replaced by others on the same registers. A record has the operands of each
//! thread (a, b and the predicate c), then for each word p and q of all threads, a bit each, from the lowest bit of the
//! first byte on. The replay is `crates/sass/tests/hardware.rs`.

use std::ffi::c_void;
use std::fmt::Write as _;
use std::path::Path;
use std::ptr::null_mut;

use cudarc::driver::sys;
use cudarc::nvrtc::Ptx;
use fastrand::Rng;
use isa::{Type, Version};
use sass::binary::{Content, cubin};
use sass::{Arch, Field, Instruction};

use super::gpu::Gpu;
use super::{Result, Source, newest_version, vectors, write};

/// Operands: a, b and the predicate c, of a thread each.
const OPERANDS: usize = 256;
/// Encodings with random values in all fields, besides those of every comparison.
const RANDOM: usize = 1024;
/// The numbers of the swizzles that sm_90 and later have: H1_H0, H0_H0, H1_H1.
const SWIZZLES: [u16; 3] = [0, 2, 3];

/// The kernel: p and q of each thread in one word.
fn text(version: Version, target: &str) -> String {
    format!(
        "\
.version {version}
.target {target}
.address_size 64
.visible .entry k(.param .b64 from, .param .b64 to)
{{
    .reg .pred %p, %q, %c; .reg .b32 %i, %a, %b, %t, %v; .reg .b64 %from, %to;
    mov.u32 %i, %tid.x;
    ld.param.b64 %from, [from]; mad.wide.u32 %from, %i, 12, %from;
    ld.global.b32 %a, [%from]; ld.global.b32 %b, [%from+4]; ld.global.b32 %t, [%from+8];
    setp.ne.b32 %c, %t, 0;
    setp.lt.and.f16x2 %p|%q, %a, %b, %c;
    selp.b32 %v, 1, 0, %p; selp.b32 %t, 2, 0, %q; or.b32 %v, %v, %t;
    ld.param.b64 %to, [to]; mad.wide.u32 %to, %i, 4, %to;
    st.global.b32 [%to], %v;
    ret;
}}
"
    )
}

/// The machine code that the driver makes of a module.
fn compile(text: &str) -> Result<Vec<u8>> {
    let (mut state, mut code, mut size) = (null_mut(), null_mut(), 0);
    let kind = sys::CUjitInputType::CU_JIT_INPUT_PTX;
    let text = std::ffi::CString::new(text)?;
    let bytes = text.as_bytes_with_nul();
    // SAFETY: the driver reads the text, and writes a handle and where the code is, which lives as long as the handle.
    unsafe {
        sys::cuLinkCreate_v2(0, null_mut(), null_mut(), &mut state).result()?;
        let data = bytes.as_ptr().cast_mut().cast::<c_void>();
        let name = c"k".as_ptr();
        sys::cuLinkAddData_v2(state, kind, data, bytes.len(), name, 0, null_mut(), null_mut()).result()?;
        sys::cuLinkComplete(state, &mut code, &mut size).result()?;
        let copy = std::slice::from_raw_parts(code.cast::<u8>(), size).to_vec();
        sys::cuLinkDestroy(state).result()?;
        Ok(copy)
    }
}

/// The only HSETP2 of a file, and where in it its word stands.
fn find(arch: Arch, file: &[u8]) -> Result<(usize, Instruction)> {
    let sections = cubin(arch, file)?;
    let mut all = sections.iter().flat_map(|section| &section.lines).filter_map(|line| match line.content {
        Content::Hsetp2(instruction) => Some((line.word, instruction)),
        _ => None,
    });
    let (word, instruction) = all.next().ok_or("the driver's code has no HSETP2")?;
    if all.next().is_some() {
        return Err("the driver's code has several HSETP2".into());
    }
    let bytes = word.to_le_bytes();
    let at = file.windows(bytes.len()).position(|window| window == bytes).ok_or("the word is not there")?;
    Ok((at, instruction))
}

/// Every comparison with every operator, and random values in all fields.
fn encodings(like: Instruction) -> Vec<Instruction> {
    let bits = |value: usize, bit: u32| (value >> bit & 1) as u16;
    let mut all = Vec::new();
    for i in 0..16 * 3 * 16 {
        let (rest, cmp, bop) = (i & 15, (i >> 4) % 16, (i >> 4) / 16);
        let fields = [
            (Field::Cmp, cmp as u16),
            (Field::Bop, bop as u16),
            (Field::HAnd, bits(rest, 0)),
            (Field::Ftz, bits(rest, 1)),
            (Field::Format, 2 * bits(rest, 2)),
            (Field::PpNot, bits(rest, 3)),
        ];
        all.push(fields.iter().fold(like, |word, &(field, value)| word.with(field, value)));
    }
    let mut random = Rng::with_seed(1);
    for _ in 0..RANDOM {
        let mut word = all[random.usize(..all.len())];
        for field in [Field::ANeg, Field::AAbs, Field::BNeg, Field::BAbs] {
            word.set(field, random.u16(..2));
        }
        for field in [Field::ASwizzle, Field::BSwizzle] {
            word.set(field, SWIZZLES[random.usize(..3)]);
        }
        all.push(word);
    }
    // After the first that faults nothing more can be asked: an H100 knows no `.BF16_V2` with `.FTZ`.
    all.sort_by_key(|word| (word.is(Field::Ftz) && word.is(Field::Format), word.is(Field::HAnd)));
    all
}

/// Records what the GPU of this machine computes with HSETP2 under `folder`.
///
/// # Errors
/// When there is no GPU, or none whose HSETP2 is that of sm_90 and later.
pub fn record(folder: &Path) -> Result<()> {
    let mut gpu = Gpu::open()?;
    let target = gpu.target()?;
    let name = target.to_string();
    let number = name.trim_end_matches(['a', 'f']);
    let arch = Arch::parse(number).ok_or_else(|| format!("no HSETP2 of {target} is known"))?;
    let version = newest_version(&mut gpu, target)?;
    let code = compile(&text(version, &name))?;
    let (at, like) = find(arch, &code)?;
    let mut random = Rng::with_seed(2);
    let pairs = vectors::sources(&[Type::F16x2, Type::F16x2], OPERANDS / 2, &mut random);
    let others = vectors::sources(&[Type::Bf16x2, Type::Bf16x2], OPERANDS / 2, &mut random);
    let operands: Vec<(u32, u32, bool)> = [pairs, others]
        .concat()
        .chunks(2)
        .map(|pair| (pair[0] as u32, pair[1] as u32, random.bool()))
        .collect();
    let words: Vec<u32> = operands.iter().flat_map(|&(a, b, c)| [a, b, c.into()]).collect();
    let source = Source::new("cargo xtask record hardware --hsetp2", &gpu)?;
    let mut lines = String::new();
    for (a, b, c) in &operands {
        let _ = writeln!(lines, "operands {a:08x} {b:08x} {}", u8::from(*c));
    }
    let mut count = 0;
    for instruction in encodings(like) {
        let mut file = code.clone();
        let word = instruction.encode().map_err(|error| error.to_string())?;
        file[at..at + 16].copy_from_slice(&word.to_le_bytes());
        let module = Ptx::from_binary(file);
        let Ok(results) = gpu.run_blocks(module, &words, (1, OPERANDS), OPERANDS) else {
            let _ = writeln!(lines, "{word:032x} faults");
            break;
        };
        let bits = |bit: u32| -> String {
            let byte = |lanes: &[u32]| (0..).zip(lanes).fold(0, |byte, (i, x)| byte | (x >> bit & 1) << i);
            results.chunks(8).fold(String::new(), |mut text, lanes| {
                let _ = write!(text, "{:02x}", byte(lanes));
                text
            })
        };
        let _ = writeln!(lines, "{word:032x} {} {}", bits(0), bits(1));
        count += 1;
    }
    let path = write(folder, &source.file("hsetp2-", "txt.zst"), &source, &lines)?;
    println!("{}: {count} encodings, {OPERANDS} operands each", path.display());
    Ok(())
}
