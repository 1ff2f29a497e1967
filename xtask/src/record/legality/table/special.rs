//! Special registers in every place.

use fastrand::Rng;
use isa::{SpecialRegister, Target, Version};

use super::{Kind, NEWEST, Question, targets};

/// `$` stands for the special register.
const PLACES: [&str; 44] = [
    "mov.b16 %b16_1, $;",
    "mov.u16 %u16_1, $;",
    "mov.b32 %b32_1, $;",
    "mov.u32 %u1, $;",
    "mov.s32 %s32_1, $;",
    "mov.f32 %f1, $;",
    "mov.b64 %b64_1, $;",
    "mov.u64 %u64_1, $;",
    "mov.f64 %d1, $;",
    "mov.pred %p1, $;",
    "mov.b128 %b128_1, $;",
    "mov.v2.u32 %v2, $;",
    "mov.v4.u32 {%b32_1, %b32_2, %b32_3, %b32_4}, $;",
    "mov.b64 {%b32_1, %b32_2}, $;",
    "mov.b64 %b64_1, {$, %b32_1};",
    "mov.u32 $, %u1;",
    "cvt.u16.u32 %u16_1, $;",
    "cvt.u32.u16 %u1, $;",
    "cvt.u64.u32 %u64_1, $;",
    "cvt.u32.u64 %u1, $;",
    "cvt.rn.f32.u32 %f1, $;",
    "add.u32 %u1, $, 1;",
    "add.s64 %sd1, %sd2, $;",
    "add.u16 %u16_1, $, 1;",
    "mad.lo.u32 %u1, %u2, $, $;",
    "mul.wide.u32 %u64_1, $, 4;",
    "shl.b32 %b32_1, $, 3;",
    "and.pred %p1, %p2, $;",
    "setp.eq.u32 %p1, $, 0;",
    "selp.b32 %b32_1, $, 0, %p1;",
    "selp.b32 %b32_1, 1, 0, $;",
    "ld.global.u32 %u1, [$];",
    "ld.shared.u32 %u1, [$+4];",
    "st.global.u32 [%b64_1], $;",
    "st.global.v2.u32 [%b64_1], {$, %u1};",
    "atom.global.add.u32 %u1, [%b64_1], $;",
    "shfl.sync.idx.b32 %b32_1, %b32_2, $, 31, -1;",
    "bar.sync $;",
    "popc.b32 %u1, $;",
    "bfind.u32 %u1, -$;",
    "lop3.b32 %b32_1, $, %b32_2, %b32_3, 0x1f;",
    "@$ mov.u32 %u1, 0;",
    "@!$ mov.u32 %u1, 0;",
    "mov.u32 %u1, $+1;",
];

const SUFFIXES: [&str; 11] = [".x", ".y", ".z", ".w", ".r", ".g", ".b", ".a", ".v", "+4", "[0]"];

pub fn all(rng: &mut Rng) -> Vec<Question> {
    let mut names: Vec<String> = SpecialRegister::all().map(|register| register.name().to_owned()).collect();
    let vectors: Vec<String> =
        names.iter().filter_map(|name| name.strip_suffix(".x").map(str::to_owned)).collect();
    names.extend(vectors);
    names.extend(["%envreg", "%envreg32", "%pm", "%pm8", "%tidx", "%WARP_SZ"].map(str::to_owned));
    let versions: Vec<Version> = Version::all().collect();
    let targets: Vec<Target> = targets().collect();
    let mut all = Vec::new();
    for name in names {
        for place in PLACES {
            let mut name = name.clone();
            if rng.u8(..6) == 0 {
                name = name.split('.').next().unwrap_or_default().to_owned()
                    + SUFFIXES[rng.usize(..SUFFIXES.len())];
            }
            let at = match rng.u8(..4) {
                0 => (versions[rng.usize(..versions.len())], NEWEST.1),
                1 => (NEWEST.0, Target::sm(targets[rng.usize(..targets.len())].number)),
                _ => NEWEST,
            };
            all.push(Question::line(Kind::Special, place.replace('$', &name), at));
        }
    }
    all
}
