//! The words that are instructions in PTX 9.5, whether or not the table has rows for them.

/// First words of all mnemonics that have no rows in the table. Known words are told from typing mistakes by it.
const OTHERS: &[&str] = &[
    "alloca", "applypriority", "brkpt", "clusterlaunchcontrol", "cp", "createpolicy", "discard", "elect", "fence",
    "fns", "getctarank", "griddepcontrol", "istypep", "ldmatrix", "ldu", "mapa", "mbarrier", "mma", "movmatrix",
    "multimem", "nanosleep", "pmevent", "prefetch", "prefetchu", "rcp", "red", "redux", "setmaxnreg", "stackrestore",
    "stacksave", "stmatrix", "suld", "suq", "sured", "sust", "szext", "bmsk", "tcgen05", "tensormap", "testp", "tex",
    "tld4", "txq", "vabsdiff", "vabsdiff2", "vabsdiff4", "vadd", "vadd2", "vadd4", "vavrg2", "vavrg4", "vmad", "vmax",
    "vmax2", "vmax4", "vmin", "vmin2", "vmin4", "vset", "vset2", "vset4", "vshl", "vshr", "vsub", "vsub2", "vsub4",
    "wgmma", "wmma",
];

/// Is this an instruction of PTX?
pub(crate) fn is_known(opcode: &str) -> bool {
    OTHERS.contains(&opcode) || !isa::forms(opcode).is_empty()
}

/// All words that are instructions; some twice.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    isa::FORMS.iter().map(|form| form.opcode).chain(OTHERS.iter().copied())
}

/// How ptxas names an instruction in its messages: some modifiers make another instruction of it.
pub(crate) fn display_name(opcode: &str, modifiers: &[&str]) -> String {
    let part_of_name: &[&str] = match opcode {
        "mul" | "mad" => &["wide"],
        "cvta" => &["to"],
        "brx" => &["idx"],
        "bar" | "barrier" => &["arrive", "warp", "cluster"],
        _ => &[],
    };
    match modifiers.iter().find(|modifier| part_of_name.contains(modifier)) {
        Some(modifier) => format!("{opcode}.{modifier}"),
        None => opcode.to_owned(),
    }
}
