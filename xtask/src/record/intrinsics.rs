//! `cargo xtask record intrinsics`: which PTX nvcc makes of each intrinsic function of CUDA's headers.
//!
//! Writes `crates/command/src/explain/intrinsics.tsv`, which `ptxvm explain __hgt2` reads: a comment that says where it
//! is from, then a line for each declaration with the name, the declaration, and the instructions.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::process::Command;

use regex::Regex;

use super::{Result, oracle};

/// The headers, beside those that nvcc includes itself.
const HEADERS: &str = "#include <cuda_fp16.h>\n#include <cuda_bf16.h>\n#include <cuda_fp8.h>\n";
const OPTIONS: [&str; 4] = ["-arch=compute_100", "-std=c++17", "-rdc=true", "-O3"];
/// Longer code explains nothing.
const MOST_INSTRUCTIONS: usize = 12;

/// A declared function.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Declaration {
    name: String,
    result: String,
    parameters: Vec<String>,
}

/// Compiles a call of each intrinsic.
pub fn record(oracles: &Path, to: &Path) -> Result<()> {
    let nvcc = oracle::nvcc(oracles)?;
    let directory = tempfile::tempdir()?;
    let file = directory.path().join("calls.cu");
    let run = |flag: &str| -> Result<(bool, String, String)> {
        let output = Command::new(&nvcc).args(OPTIONS).args([flag, "-o", "-"]).arg(&file).output()?;
        let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
        Ok((output.status.success(), text(&output.stdout), text(&output.stderr)))
    };
    fs::write(&file, HEADERS)?;
    let (_, headers, _) = run("-E")?;
    let mut declarations = declarations(&headers)?;
    let found = declarations.len();
    let ptx = loop {
        fs::write(&file, calls(&declarations))?;
        let (success, ptx, errors) = run("-ptx")?;
        if success {
            break ptx;
        }
        // Functions that this architecture lacks, and overloads that a call does not tell apart.
        let wrong = lines_with_errors(&errors)?;
        if wrong.is_empty() {
            return Err(errors.into());
        }
        let first = HEADERS.lines().count() + 1;
        let mut line = first..;
        declarations.retain(|_| !wrong.contains(&line.next().unwrap_or_default()));
    };
    let bodies = bodies(&ptx)?;
    let mut text = format!(
        "# cargo xtask record intrinsics: nvcc {} of each call; {}\n",
        OPTIONS.join(" "),
        oracle::build(&nvcc)?
    );
    let mut written = 0;
    for (index, declaration) in declarations.iter().enumerate() {
        let Some(body) = bodies.get(&index).filter(|body| !body.is_empty()) else { continue };
        let Declaration { name, result, parameters } = declaration;
        let body = match body.len() {
            ..=MOST_INSTRUCTIONS => body.join(" "),
            count => format!("{count} instructions"),
        };
        writeln!(text, "{name}\t{result} {name}({})\t{body}", parameters.join(", "))?;
        written += 1;
    }
    fs::write(to, text)?;
    println!("{found} declarations, {} compile, wrote {written} to {}", declarations.len(), to.display());
    Ok(())
}

/// The intrinsics that preprocessed headers declare: functions of the device whose names begin with `__` or `atomic`.
fn declarations(text: &str) -> Result<Vec<Declaration>> {
    let lines: String =
        text.lines().filter(|line| !line.starts_with('#')).flat_map(|line| [line, "\n"]).collect();
    let text = lines.replace("__attribute__((device))", "DEVICE");
    let text = Regex::new(r"__attribute__\(\([^()]*\)\)")?.replace_all(&text, "");
    let inline = r"(?:(?:DEVICE|static|inline|__inline__|__forceinline__|extern)\s+)*";
    let pattern = format!(
        r"DEVICE\s+{inline}((?:const\s+)?[A-Za-z_][\w ]*?[\w*])\s*\b((?:__|atomic)\w+)\s*\(([^(){{}};]*)\)\s*(?:noexcept[^;{{]*)?[;{{]"
    );
    let blanks = Regex::new(r"\s+")?;
    let internal = Regex::new(
        r"^__(cuda|nv_|nvvm|internal|float_|u?i?(ll)?Atomic|u?ll?Atomic|[fdu]\d*Atomic|assert|brkpt|prof|trap|pm|cluster_relaxed|isGlobal)",
    )?;
    let mut all = BTreeSet::new();
    for found in Regex::new(&pattern)?.captures_iter(&text) {
        let part = |index: usize| blanks.replace_all(found[index].trim(), " ").into_owned();
        let (result, name, parameters) = (part(1), part(2), part(3));
        if internal.is_match(&name) || result.contains("return") {
            continue;
        }
        let parameters = match parameters.as_str() {
            "" | "void" => Vec::new(),
            list => {
                list.split(',').map(|one| one.split('=').next().unwrap_or(one).trim().to_owned()).collect()
            }
        };
        all.insert(Declaration { name, result, parameters });
    }
    // A function may be declared with and without names of its parameters.
    let mut seen = BTreeSet::new();
    let types = |declaration: &Declaration| {
        let types = declaration.parameters.iter().map(|parameter| type_of(parameter));
        (declaration.name.clone(), types.collect::<Vec<_>>())
    };
    Ok(all.into_iter().filter(|declaration| seen.insert(types(declaration))).collect())
}

/// The type of a parameter: without its name, and without `const` of the value itself.
fn type_of(parameter: &str) -> String {
    let (types, name) = match parameter.rsplit_once([' ', '*', '&']) {
        Some((_, name)) if !is_type_word(name) => (&parameter[..parameter.len() - name.len()], name),
        _ => (parameter, ""),
    };
    let _ = name;
    let words = types.trim().trim_start_matches("const ").trim_end_matches(" const");
    if types.contains(['*', '&']) { types.trim().to_owned() } else { words.trim().to_owned() }
}

fn is_type_word(word: &str) -> bool {
    matches!(word, "int" | "unsigned" | "long" | "short" | "char" | "float" | "double" | "")
        || word.ends_with("_t")
}

/// A function for each call, one a line.
fn calls(declarations: &[Declaration]) -> String {
    let mut text = HEADERS.to_owned();
    for (index, Declaration { name, result, parameters }) in declarations.iter().enumerate() {
        let types: Vec<String> = parameters.iter().map(|parameter| type_of(parameter)).collect();
        let named: Vec<String> = types.iter().enumerate().map(|(i, ty)| format!("{ty} a{i}")).collect();
        let passed: Vec<String> = (0..types.len()).map(|i| format!("a{i}")).collect();
        let (named, passed) = (named.join(", "), passed.join(", "));
        let keep = if result == "void" { "" } else { "return " };
        text += &format!(
            "extern \"C\" __device__ {result} call_{index}({named}) {{ {keep}{name}({passed}); }}\n"
        );
    }
    text
}

/// The lines that a compiler complains about.
fn lines_with_errors(errors: &str) -> Result<BTreeSet<usize>> {
    let pattern = Regex::new(r"calls\.cu\((\d+)\): error")?;
    Ok(pattern.captures_iter(errors).filter_map(|found| found[1].parse().ok()).collect())
}

/// By the number of a call: its instructions, without those that pass parameters and results.
fn bodies(ptx: &str) -> Result<BTreeMap<usize, Vec<String>>> {
    let head = Regex::new(r"\bcall_(\d+)\(?$")?;
    let blanks = Regex::new(r"\s+")?;
    let (mut bodies, mut current): (BTreeMap<usize, Vec<String>>, _) = (BTreeMap::new(), None);
    for line in ptx.lines() {
        let line = line.split("//").next().unwrap_or(line).trim();
        if line.starts_with(".visible .func") || line.starts_with(".func") {
            current = head.captures(line).and_then(|found| found[1].parse().ok());
            if let Some(index) = current {
                bodies.insert(index, Vec::new());
            }
            continue;
        }
        let is_moved =
            ["ld.param", "st.param", "ret;", ".", "call_", "$"].iter().any(|start| line.starts_with(start));
        if let Some(body) = current.and_then(|index| bodies.get_mut(&index))
            && line.contains(';')
            && !is_moved
        {
            // Inline assembly has braces of its own.
            let text = line.trim_matches(['{', '}', ' ', '\t']);
            body.extend(
                text.split_inclusive(';').map(|one| blanks.replace_all(one.trim(), " ").into_owned()),
            );
        }
    }
    for body in bodies.values_mut() {
        body.retain(|one| one.len() > 1 && !one.starts_with('.'));
    }
    Ok(bodies)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn declarations_are_found() {
        let text = "# 1 \"x.h\"\nstatic __attribute__((device)) __inline__ __half2 __hgt2(const __half2 a,\n const __half2 b);\n\
            __attribute__((device)) __attribute__((cudart_builtin)) float __fmaf_rn(float x, float y, float z);\n\
            extern __attribute__((device)) int __nv_internal(int);\n";
        let found = declarations(text).unwrap();
        assert_eq!(found[0].name, "__fmaf_rn");
        assert_eq!(found[1].parameters, ["const __half2 a", "const __half2 b"]);
        assert_eq!(found.len(), 2);
        assert_eq!(type_of("const __half2 a"), "__half2");
        assert_eq!(type_of("const unsigned int *address"), "const unsigned int *");
        assert_eq!(type_of("unsigned int"), "unsigned int");
    }

    #[test]
    fn bodies_are_what_lies_between_parameters_and_result() {
        let ptx = ".visible .func  (.param .b32 func_retval0) call_3(\n.param .b32 call_3_param_0\n)\n{\n.reg .f32 %f<4>;\n\
            ld.param.f32 %f1, [call_3_param_0];\n{ add.f32 %f2,%f1,%f1;\n}\nst.param.f32 [func_retval0], %f2;\nret;\n}\n";
        assert_eq!(bodies(ptx).unwrap()[&3], ["add.f32 %f2,%f1,%f1;"]);
    }
}
