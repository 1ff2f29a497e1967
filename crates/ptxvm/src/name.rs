//! Names as their authors wrote them.

use std::fmt::{self, Write};

use cpp_demangle::{BorrowedSymbol, DemangleOptions};

/// Longer names are not demangled: it takes time, and nobody reads the result.
const LONGEST: usize = 4096;
/// Maximum length of a name that is shown.
const SHOWN: usize = 160;

/// A kernel's name as its author wrote it, without the parameter types: `saxpy<float>` for `_Z5saxpyIfEviT_PS0_S1_`.
/// Demangles names of C++, numba and Rust; others stay as they are.
pub fn demangle(name: &str) -> String {
    if name.len() > LONGEST {
        return name.to_owned();
    }
    if let Ok(rust) = rustc_demangle::try_demangle(name) {
        let mut text = Bounded(String::new());
        return match write!(text, "{rust:#}") {
            Ok(()) => text.0,
            Err(_) => name.to_owned(),
        };
    }
    let options = DemangleOptions::new().no_params().no_return_type();
    let mut text = Bounded(String::new());
    let cpp = BorrowedSymbol::new(name.as_bytes()).ok().and_then(|symbol| {
        symbol.structured_demangle(&mut text, &options).ok()?;
        Some(without_tags(&text.0))
    });
    cpp.filter(|cpp| !cpp.is_empty()).unwrap_or_else(|| name.to_owned())
}

/// Removes `[abi:...]`, where numba keeps its own numbers.
fn without_tags(name: &str) -> String {
    let mut parts = name.split("[abi:");
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text += part.split_once(']').map_or("", |(_, after)| after);
    }
    text
}

/// A string with a maximum length: writing more fails.
struct Bounded(String);

impl Write for Bounded {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        if self.0.len() + text.len() > LONGEST {
            return Err(fmt::Error);
        }
        self.0.push_str(text);
        Ok(())
    }
}

/// A name for display: demangled, and its middle elided if it is long.
pub fn short_name(name: &str) -> String {
    let name = demangle(name);
    let count = name.chars().count();
    if count <= SHOWN {
        return name;
    }
    let part = |skip: usize| name.chars().skip(skip).take(SHOWN / 2).collect::<String>();
    format!("{}...{}", part(0), part(count - SHOWN / 2))
}

/// The name of a parameter without the kernel's name, which compilers put before it.
pub fn short_param<'a>(kernel: &str, param: &'a str) -> &'a str {
    match param.strip_prefix(kernel).map(|rest| rest.trim_start_matches('_')) {
        Some(rest) if !rest.is_empty() => rest,
        _ => param,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_cpp_numba_and_rust() {
        for (mangled, name) in [
            ("_Z5saxpyIfEviT_PS0_S1_", "saxpy<float>"),
            ("_ZN8__main__2h4B3v62B8cw51cABCE5ArrayIDhLi1E1C7mutable7alignedE", "__main__::h4"),
            (
                "_RNvNtCs1jIwKPSfU11_4core9panicking18panic_bounds_check",
                "core::panicking::panic_bounds_check",
            ),
            ("saxpy", "saxpy"),
            ("_Z", "_Z"),
            ("$x", "$x"),
        ] {
            assert_eq!(demangle(mangled), name);
        }
        assert_eq!(short_param("_Z1fi", "_Z1fi_param_0"), "param_0");
        assert_eq!(short_param("f", "x"), "x");
        assert_eq!(short_param("f", "f"), "f");
    }

    #[test]
    fn hostile_names_stay_short() {
        // Each substitution doubles the previous one.
        let nested = format!("_Z1f{}", (0..60).map(|_| "1AIS_S_E").collect::<String>());
        for name in [nested, format!("_ZN{}E", "1a".repeat(5000)), "x".repeat(100_000)] {
            assert!(short_name(&name).len() < 1000);
        }
    }
}
