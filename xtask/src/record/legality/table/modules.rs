//! Whole modules: directives, declarations, initialisers, functions, calls, prototypes, scopes and debug data, written from
//! templates or made of the modules of `tests/` by changing a few words.

use fastrand::Rng;
use isa::{Target, Version};

use super::{Kind, Question};
use body::{body, call};
use changed::{bases, changed};

mod body;
mod changed;

/// So many are written from templates.
const WRITTEN: usize = 6000;
/// So many are modules of `tests/` with changes.
const CHANGED: usize = 6000;

pub fn all(rng: &mut Rng) -> Vec<Question> {
    let module = |text: String| Question { kind: Kind::Module, text, at: None };
    let bases = bases();
    let mut all: Vec<Question> = (0..WRITTEN).map(|_| module(written(rng))).collect();
    all.extend((0..CHANGED).map(|_| module(changed(&bases[rng.usize(..bases.len())], rng))));
    all
}

fn one<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.usize(..of.len())]
}

/// One of them, mostly the first.
fn mostly<'a>(rng: &mut Rng, first: &'a str, of: &[&'a str]) -> &'a str {
    if rng.u8(..4) > 0 { first } else { one(rng, of) }
}

const TYPES: [&str; 22] = [
    "b8",
    "b16",
    "b32",
    "b64",
    "b128",
    "u8",
    "u16",
    "u32",
    "u64",
    "s8",
    "s16",
    "s32",
    "s64",
    "f16",
    "f16x2",
    "f32",
    "f64",
    "pred",
    "bf16",
    "texref",
    "samplerref",
    "surfref",
];
const PLAIN: [&str; 8] = ["b8", "b16", "b32", "b64", "u32", "s32", "f32", "f64"];
const NUMBERS: [&str; 24] = [
    "0",
    "1",
    "-1",
    "2",
    "3",
    "4",
    "7",
    "8",
    "16",
    "32",
    "64",
    "128",
    "255",
    "256",
    "1024",
    "65535",
    "65536",
    "2147483648",
    "4294967295",
    "4294967296",
    "0x10",
    "1.5",
    "0f3F800000",
    "2+2",
];
const SPACES: [&str; 8] = ["global", "shared", "const", "local", "param", "reg", "tex", "sreg"];

fn written(rng: &mut Rng) -> String {
    let mut text = header(rng);
    let statement: [fn(&mut Rng) -> String; 9] =
        [variable, initialized, function, debug, call, body, entry, alias, textures];
    for _ in 0..rng.usize(1..=3) {
        text += &statement[rng.usize(..statement.len())](rng);
        text.push('\n');
    }
    if rng.bool() {
        text += ".entry last() { exit; }\n";
    }
    text
}

fn header(rng: &mut Rng) -> String {
    let versions: Vec<Version> = Version::all().collect();
    let targets: Vec<Target> = Target::all().collect();
    let version = match rng.u8(..5) {
        0 => versions[rng.usize(..versions.len())].to_string(),
        _ => "9.5".into(),
    };
    let target = match rng.u8(..5) {
        0 => targets[rng.usize(..targets.len())].to_string(),
        _ => "sm_121".into(),
    };
    let options = [
        "",
        ", debug",
        ", texmode_independent",
        ", texmode_unified",
        ", map_f64_to_f32",
        ", sm_90",
        ", debug, debug",
        ", texmode_unified, texmode_independent",
        ", foo",
    ];
    let option = mostly(rng, "", &options);
    let sizes = [
        "",
        ".address_size 64\n",
        ".address_size 32\n",
        ".address_size 16\n",
        ".address_size 64\n.address_size 64\n",
    ];
    let size = mostly(rng, ".address_size 64\n", &sizes);
    match rng.u8(..40) {
        0 => format!(".target {target}{option}\n{size}"),
        1 => format!(".version {version}\n{size}"),
        2 => format!(".version {version}\n.version {version}\n.target {target}{option}\n{size}"),
        3 => format!(".version {version}\n{size}.target {target}{option}\n"),
        _ => format!(".version {version}\n.target {target}{option}\n{size}"),
    }
}

fn linkage(rng: &mut Rng) -> &'static str {
    mostly(rng, "", &[".visible ", ".extern ", ".weak ", ".common ", ".visible .extern "])
}

fn alignment(rng: &mut Rng) -> String {
    match rng.u8(..4) {
        0 => format!(".align {} ", one(rng, &NUMBERS)),
        1 => format!(".align {} ", 1u32 << rng.u8(..9)),
        _ => String::new(),
    }
}

fn dimensions(rng: &mut Rng) -> String {
    let some = [
        "",
        "[4]",
        "[1]",
        "[0]",
        "[]",
        "[2][3]",
        "[][2]",
        "[2][]",
        "[-1]",
        "[1.5]",
        "[4294967296]",
        "[n]",
        "<4>",
        "<0>",
        "<n>",
    ];
    mostly(rng, "", &some).to_owned()
}

fn attributes(rng: &mut Rng) -> &'static str {
    let some = [
        ".attribute(.managed) ",
        ".attribute(.unified(1,2)) ",
        ".attribute(.unified(1)) ",
        ".attribute(.managed, .managed) ",
        ".attribute(.foo) ",
        ".ptr ",
        ".attribute(.managed,.unified(19,95)) ",
    ];
    if rng.u8(..6) == 0 { one(rng, &some) } else { "" }
}

fn variable(rng: &mut Rng) -> String {
    let vector = mostly(rng, "", &[".v2 ", ".v4 ", ".v8 ", ".v3 "]);
    let space = mostly(rng, "global", &SPACES);
    let ty = mostly(rng, "b32", &TYPES);
    let name = mostly(
        rng,
        "x",
        &["y", "%x", "$x", "_x", "tid", "last", "%tid", "x.y", "WARP_SZ", "add", "1x", "x, z"],
    );
    format!(
        "{}.{space} {}{}{vector}.{ty} {name}{};",
        linkage(rng),
        attributes(rng),
        alignment(rng),
        dimensions(rng)
    )
}

fn initialized(rng: &mut Rng) -> String {
    let values = [
        "0",
        "-1",
        "1.5",
        "0f3F800000",
        "0d3FF0000000000000",
        "256",
        "65536",
        "4294967296",
        "{1, 2}",
        "{1, 2, 3, 4}",
        "{{1, 2}, {3, 4}}",
        "{}",
        "{1, {2}}",
        "before",
        "before+4",
        "{before, 0}",
        "generic(before)",
        "generic(before)+8",
        "f",
        "{f, f}",
        "nope",
        "0xff(before)",
        "0xff00(before)",
        "0xff(generic(before))",
        "1+2*3",
        "(1)",
        "1<2",
        "-before",
        "before-4",
        "{0xff(before), 0xff00(before)}",
        "\"abc\"",
        "1/0",
        "{1.0, 2}",
        "%tid.x",
        "WARP_SZ",
        "18446744073709551615",
        "18446744073709551616",
        "{,}",
        "{1,}",
        "1?2:3",
        "!1",
        "~0",
        "generic(f)",
        "before[1]",
        "x",
        "(.u8)300",
    ];
    let ty = mostly(rng, "b32", &TYPES);
    let space = mostly(rng, "global", &["const", "shared", "local", "param", "reg"]);
    let dims = mostly(rng, "[4]", &["", "[2][2]", "[]", "[1]", "[2]", "[][2]"]);
    format!(
        ".global .b32 before[4];\n.func f() {{ ret; }}\n{}.{space} {}{}.{ty} x{dims} = {};",
        linkage(rng),
        alignment(rng),
        mostly(rng, "", &[".v2 ", ".v4 "]),
        one(rng, &values)
    )
}

fn parameter(rng: &mut Rng, name: &str) -> String {
    let space = mostly(rng, "param", &["reg", "reg", "local", "global", "const"]);
    let pointer = match rng.u8(..8) {
        0 => one(
            rng,
            &[
                ".ptr ",
                ".ptr .global ",
                ".ptr .align 16 ",
                ".ptr .shared .align 4 ",
                ".ptr .param ",
                ".ptr .align 3 ",
            ],
        ),
        _ => "",
    };
    let vector = if rng.u8(..10) == 0 { ".v2 " } else { "" };
    let ty = if rng.u8(..3) > 0 { one(rng, &PLAIN) } else { one(rng, &TYPES) };
    let (align, dimensions) = match rng.u8(..4) {
        0 => (alignment(rng), dimensions(rng)),
        _ => (String::new(), String::new()),
    };
    format!(".{space} {align}{vector}.{ty} {pointer}{name}{dimensions}")
}

fn parameters(rng: &mut Rng, prefix: &str) -> String {
    let count = rng.usize(..=3);
    let all: Vec<String> = (0..count).map(|i| parameter(rng, &format!("{prefix}{i}"))).collect();
    all.join(", ")
}

fn result(rng: &mut Rng) -> String {
    match rng.u8(..3) {
        0 => String::new(),
        1 => format!("({}) ", parameter(rng, "r0")),
        _ => format!("({}) ", parameters(rng, "r")),
    }
}

fn function(rng: &mut Rng) -> String {
    let body = mostly(
        rng,
        "{ ret; }",
        &[";", "{ exit; }", "{ }", "{ ret", "{ mov.b32 a0, a1; ret; }", "{ ld.param.b32 a0, [a1]; ret; }"],
    );
    let directive = mostly(
        rng,
        "",
        &[
            ".noreturn ",
            ".maxntid 32 ",
            ".pragma \"nounroll\" ",
            ".abi_preserve 4 ",
            ".abi_preserve_control 2 ",
        ],
    );
    let name = mostly(rng, "f", &["g", "last", "x", "%f"]);
    let again = if rng.u8(..8) == 0 { ".func f() { ret; }\n" } else { "" };
    format!(
        "{}.func {}{name}({}) {directive}{body}\n{again}",
        linkage(rng),
        result(rng),
        parameters(rng, "a")
    )
}

fn entry(rng: &mut Rng) -> String {
    let directives = [
        "maxntid",
        "reqntid",
        "minnctapersm",
        "maxnctapersm",
        "maxnreg",
        "reqnctapercluster",
        "maxclusterrank",
        "noreturn",
        "explicitcluster",
        "blocksareclusters",
        "pragma \"nounroll\"",
        "pragma \"foo\"",
        "pragma \"enable_smem_spilling\"",
        "pragma \"frequency 1\"",
        "pragma \"used_bytes_mask 1\"",
        "abi_preserve",
        "maxntid 1, 2",
        "reqntid 32, 1, 1",
        "local_maxnreg",
    ];
    let mut text = format!("{}.entry e({}) ", linkage(rng), parameters(rng, "p"));
    for _ in 0..rng.usize(..=3) {
        let directive = one(rng, &directives);
        text += &format!(".{directive}");
        let numbers = if directive.contains(' ') || rng.u8(..8) == 0 { 0 } else { rng.usize(..=4) };
        let numbers: Vec<&str> = (0..numbers).map(|_| mostly(rng, "1", &NUMBERS)).collect();
        text += &format!(" {} ", numbers.join(", "));
    }
    text + mostly(rng, "{ exit; }", &["{ ret; }", "{ }", ";", "{ trap; }", "{ .reg .b32 p0; exit; }"])
}

fn alias(rng: &mut Rng) -> String {
    let names = ["f", "g", "e", "x", "nope"];
    format!(
        ".visible .func f{sig} {{ ret; }}\n{}.func g{sig}{}\n.entry e() {{ exit; }}\n.global .b32 x;\n.alias {}, {};",
        mostly(rng, ".visible ", &["", ".extern ", ".weak "]),
        mostly(rng, ";", &[" { ret; }"]),
        mostly(rng, "g", &names),
        mostly(rng, "f", &names),
        sig = mostly(rng, "()", &["(.param .b32 a)"]),
    )
}

fn textures(rng: &mut Rng) -> String {
    let fields = [
        "width = 1",
        "height = 2",
        "depth = 3",
        "addr_mode_0 = wrap",
        "addr_mode_1 = mirror",
        "filter_mode = linear",
        "normalized_coords = 1",
        "force_unnormalized_coords = 1",
        "channel_data_type = 1",
        "channel_order = 1",
        "foo = 1",
        "width = x",
        "filter_mode = wrap",
        "normalized_coords = 2",
    ];
    let count = rng.usize(..=2);
    let fields: Vec<&str> = (0..count).map(|_| one(rng, &fields)).collect();
    format!(
        "{}.{} .{} t{} = {{ {} }};\n.entry te(.param .{} p) {{ .reg .b64 %d; .reg .b32 %r<8>; \
         {} %r0, [{}]; mov.b64 %d, {}; exit; }}",
        linkage(rng),
        mostly(rng, "global", &SPACES),
        one(rng, &["texref", "samplerref", "surfref"]),
        mostly(rng, "", &["[2]"]),
        fields.join(", "),
        mostly(rng, "b64", &["texref", "samplerref", "surfref"]),
        one(
            rng,
            &[
                "txq.width.b32",
                "suq.width.b32",
                "txq.addr_mode_0.b32",
                "ld.global.b32",
                "suq.height.b32",
                "istypep.texref"
            ]
        ),
        one(rng, &["t", "p", "%d", "nope"]),
        one(rng, &["t", "p", "t+4"]),
    )
}

fn debug(rng: &mut Rng) -> String {
    let strings = ["\"a.cu\"", "\"\"", "a", "\"b.cu\", 1, 2", "\"b.cu\", 1"];
    let mut text = String::new();
    for _ in 0..rng.usize(1..=2) {
        text += &match rng.u8(..4) {
            0 | 1 => format!(
                ".file {} {}\n",
                one(rng, &["1", "2", "0", "-1", "x", ""]),
                mostly(rng, "\"a.cu\"", &strings)
            ),
            _ => {
                let directives = ["b8", "b16", "b32", "b64", "b128", "u8", "f32"];
                let data = [
                    "1",
                    "1, 2",
                    "256",
                    "-1",
                    "65536",
                    "label",
                    ".debug_abbrev",
                    ".debug_info",
                    "label+4",
                    "label-other",
                    "1.5",
                    "",
                ];
                let name = one(
                    rng,
                    &[
                        ".debug_info",
                        ".debug_abbrev",
                        ".debug_loc",
                        ".debug_str",
                        ".debug_line",
                        ".foo",
                        "debug",
                    ],
                );
                let lines: String = (0..rng.usize(..=3))
                    .map(|_| match rng.u8(..4) {
                        0 => "label:\n".to_owned(),
                        _ => format!(".{} {}\n", mostly(rng, "b8", &directives), one(rng, &data)),
                    })
                    .collect();
                format!(".section {name}\n{{\n{lines}}}\n")
            }
        };
    }
    let places = [
        "1 2 3",
        "1 2",
        "2 1 1",
        "0 0 0",
        "1 1 1, function_name l, inlined_at 1 1 1",
        "1 1 1, function_name nope, inlined_at 1 1 1",
        "1 -1 1",
        "x 1 1",
        "1 1 1, inlined_at 1 1 1",
        "1 1 1, function_name .debug_str, inlined_at 1 2 3",
        "1 1 1, function_name .debug_str+4, inlined_at 1 2 3",
    ];
    text + &format!(
        ".entry d() {{\n.loc {}\nl:\n.loc {}\nexit;\n}}",
        one(rng, &places),
        mostly(rng, "1 1 1", &places)
    )
}
