//! The machine code of loops for hosts that need not be this one: a change that is to keep code as it is prints the same
//! lines before and after.

use jit::{Form, Host, Loop};
use ptxvm::Module;
use test_utils::words::digest;

use super::Writer;

/// A line for each loop of a text: the digest of its code for a host and each of some ways in which slots step.
fn lines(host: Host, name: &str, text: &str) -> Vec<String> {
    let Ok(module) = Module::from_ptx(text) else { return Vec::new() };
    let functions = module.program().functions.iter().flatten();
    let loops: Vec<Loop> = functions.flat_map(|function| jit::loops(function, host, |_, _| true)).collect();
    let line = |(index, a_loop): (usize, &Loop)| {
        let codes = (0..4).map(|way| {
            let native = a_loop.compile(host, |slot| match (slot.index() + way) % 4 {
                _ if way == 0 => None,
                0 => Some(Form::UNIFORM),
                1 => Some(Form { step: 4, span: 64 }),
                2 => Some(Form { step: 8, span: 256 }),
                _ => None,
            });
            native.map_or("-".into(), |code| {
                format!("{:016x}/{}", digest([&format!("{:?}", code.code())]), code.code().len())
            })
        });
        format!("{host:?} {name} {index} {}", codes.collect::<Vec<String>>().join(" "))
    };
    loops.iter().enumerate().map(line).collect()
}

#[test]
fn listings_show_instructions() {
    for (seed, host) in (0..40).flat_map(|seed| Host::ALL.map(|host| (seed, host))) {
        let Ok(module) = Module::from_ptx(&Writer::loops(seed)) else { continue };
        for function in module.program().functions.iter().flatten() {
            for code in
                jit::loops(function, host, |_, _| true).iter().filter_map(|plan| plan.compile(host, |_| None))
            {
                let listing = code.listing(|_| "PTX".to_owned());
                assert!(
                    listing.contains("    PTX\n") && !listing.contains("(bad)"),
                    "{seed} {host:?}:\n{listing}"
                );
            }
        }
    }
}

#[test]
#[ignore = "it prints what to compare"]
fn codes_are_printed() {
    let seeds = (0..600).map(|seed| (format!("loop {seed}"), Writer::loops(seed)));
    let folders = ["tests/run", "tests/corpus", "tests/triton", "benches"];
    let files =
        folders.iter().flat_map(|folder| test_utils::corpus::ptx_files(&test_utils::root().join(folder)));
    let files = files.map(|file| {
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        (file.file_name().unwrap_or_default().to_string_lossy().into_owned(), text)
    });
    for (name, text) in seeds.chain(files) {
        let lines = Host::ALL.map(|host| lines(host, &name, &text)).concat();
        lines.iter().for_each(|line| println!("{line}"));
    }
}
