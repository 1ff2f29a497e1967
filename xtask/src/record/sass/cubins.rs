//! `cubins/`: small cubins of ptxas 12.9, and how nvdisasm 12.8 lists them (`nvdisasm -c -hex`).

use std::fs;
use std::path::Path;
use std::process::Command;

use super::super::Result;
use super::super::oracle::{Disassembler, Oracle, Release};
use super::lowering::assemble;

const TARGETS: [&str; 6] = ["sm_53", "sm_70", "sm_75", "sm_90", "sm_100", "sm_120"];

/// A loop that counts, and compares of one half, of two, with a literal, a parameter and a predicate.
const KERNELS: &str = "
.visible .entry count(.param .u64 px, .param .b16 pl, .param .u32 pn) {
.reg .pred p, q; .reg .b16 h, l; .reg .u32 i, c, n; .reg .u64 a;
ld.param.u64 a, [px]; ld.param.b16 l, [pl]; ld.param.u32 n, [pn];
cvta.to.global.u64 a, a;
mov.u32 i, 0; mov.u32 c, 0;
again: ld.global.b16 h, [a];
setp.lt.f16 p, h, l;
@p add.u32 c, c, 1;
add.u64 a, a, 2; add.u32 i, i, 1;
setp.lt.u32 q, i, n;
@q bra again;
st.global.u32 [a], c;
ret; }
.visible .entry pairs(.param .u64 px) {
.reg .pred p, q, c; .reg .b32 a, b; .reg .u64 x;
ld.param.u64 x, [px];
cvta.to.global.u64 x, x;
ld.global.b32 a, [x]; ld.global.b32 b, [x+4];
setp.neu.ftz.f16x2 c|q, a, b;
mov.b32 b, 0x3c00c000;
setp.ge.xor.f16x2 p|q, a, b, !c;
@p st.global.u32 [x], 1;
@q st.global.u32 [x+4], 2;
ret; }
";

/// Writes `TARGET.cubin` and `TARGET.txt.zst` into `folder`.
pub fn record(oracles: &Path, folder: &Path) -> Result<()> {
    fs::create_dir_all(folder)?;
    let oracle = Oracle::open(oracles, Release::V12_9)?;
    let nvdisasm = Disassembler::V12_8.open(oracles)?;
    for target in TARGETS {
        let source = format!(".version 8.8\n.target {target}\n.address_size 64\n{KERNELS}");
        let cubin = assemble(&oracle, target, &source)?;
        let listing = Command::new(&nvdisasm).args(["-c", "-hex"]).arg(cubin.path()).output()?;
        if !listing.status.success() {
            return Err(String::from_utf8_lossy(&listing.stderr).into_owned().into());
        }
        fs::write(folder.join(format!("{target}.cubin")), fs::read(cubin.path())?)?;
        let listing = zstd::encode_all(listing.stdout.as_slice(), 19)?;
        fs::write(folder.join(format!("{target}.txt.zst")), listing)?;
    }
    println!("{}: {} cubins", folder.display(), TARGETS.len());
    Ok(())
}
