//! The headers of the kernels in `tests/run`: how to launch them, and what must come out (`tests/run/README.md`).

use half::{bf16, f16};

use crate::archive;

/// One launch that a header asks for.
#[derive(Debug, Default)]
pub struct Launch {
    /// The options of `ptxvm run`.
    pub words: Vec<String>,
    /// The exit code.
    pub exit: i32,
    /// What the output must contain.
    pub stdout: Vec<String>,
    /// What the output must not contain.
    pub no_stdout: Vec<String>,
    /// What the errors must contain.
    pub stderr: Vec<String>,
    /// Argument and its expected elements.
    pub out: Vec<(usize, Vec<String>)>,
}

/// How the argument of a tensor map begins, behind which its array stands.
const TENSOR_MAP: &str = "tensormap(";

/// The launches of a file's header.
pub fn parse(text: &str) -> Result<Vec<Launch>, String> {
    let mut launches: Vec<Launch> = Vec::new();
    for line in text.lines().map_while(|line| line.strip_prefix("//")) {
        let Some((key, value)) = line.trim().split_once(':') else { continue };
        let value = value.trim();
        if key == "RUN" {
            let words = value.split_whitespace().map(str::to_owned).collect();
            launches.push(Launch { words, ..Launch::default() });
            continue;
        }
        let is_key = matches!(key, "EXIT" | "STDOUT" | "NO STDOUT" | "STDERR") || key.starts_with("OUT ");
        if !is_key {
            continue;
        }
        let launch = launches.last_mut().ok_or_else(|| format!("`{key}` stands before the first RUN"))?;
        match key {
            "EXIT" => launch.exit = value.parse().map_err(|_| format!("EXIT: {value}"))?,
            "STDOUT" => launch.stdout.push(value.to_owned()),
            "NO STDOUT" => launch.no_stdout.push(value.to_owned()),
            "STDERR" => launch.stderr.push(value.to_owned()),
            _ => {
                let index = key["OUT ".len()..].parse().map_err(|_| format!("`{key}`"))?;
                let words = value.split_whitespace().map(str::to_owned);
                match launch.out.iter_mut().find(|(i, _)| *i == index) {
                    Some((_, list)) => list.extend(words),
                    None => launch.out.push((index, words.collect())),
                }
            }
        }
    }
    if launches.is_empty() { Err("the header has no RUN".to_owned()) } else { Ok(launches) }
}

impl Launch {
    /// Whether the bytes of an argument afterwards are those that the header lists.
    pub fn compare(&self, index: usize, words: &[String], got: &[u8]) -> Result<(), String> {
        let ty = self.element_type(index)?;
        let wanted = expand(words, &ty)?;
        let width = width(&ty);
        let got: Vec<u8> = got
            .chunks(width)
            .zip(wanted.iter().map(Some).chain(std::iter::repeat(None)))
            .flat_map(|(got, wanted)| match wanted {
                // Any NaN is as good as another where `nan` is asked for.
                Some(wanted) if wanted.is_empty() && is_nan(got, &ty) => Vec::new(),
                _ => got.to_vec(),
            })
            .collect();
        let wanted: Vec<u8> = wanted.concat();
        crate::compare(&got, &wanted, width).map_err(|error| format!("argument {index}: {error}"))
    }

    /// The variables that `--set` sets, and their bytes, which must come from archives.
    pub fn variables(&self) -> Result<Vec<(String, Vec<u8>)>, String> {
        let options = self.words.iter().zip(self.words.iter().skip(1));
        let assignments = options.filter(|(option, _)| *option == "--set").map(|(_, assignment)| assignment);
        assignments
            .map(|assignment| {
                let (name, place) =
                    assignment.split_once('=').ok_or_else(|| format!("--set {assignment}"))?;
                Ok((name.to_owned(), archive::array(place)?.data))
            })
            .collect()
    }

    /// The specification of an argument.
    fn argument(&self, index: usize) -> Result<&str, String> {
        let specs = self.words.iter().zip(self.words.iter().skip(1)).filter(|(option, _)| *option == "--arg");
        let spec = specs.map(|(_, spec)| spec.as_str()).nth(index);
        spec.ok_or_else(|| format!("there is no argument {index}"))
    }

    /// What `--out` calls the array of an argument.
    pub fn place(&self, index: usize) -> String {
        let is_map = self.argument(index).is_ok_and(|spec| spec.starts_with(TENSOR_MAP));
        if is_map { format!("{index}.0") } else { index.to_string() }
    }

    /// The element type that the specification of an argument names: `u32[64]=7`, `@x.npy:bf16`.
    pub fn element_type(&self, index: usize) -> Result<String, String> {
        let spec = self.argument(index)?;
        let spec = spec.strip_prefix(TENSOR_MAP).and_then(|map| map.split(',').next()).unwrap_or(spec);
        let name = match spec.split_once('[') {
            Some((name, _)) => Some(name),
            None => spec.rsplit_once(':').map(|(_, name)| name),
        };
        name.map(str::to_owned).ok_or_else(|| format!("`{spec}` does not name an element type"))
    }
}

/// Size of an element.
pub fn width(ty: &str) -> usize {
    match ty {
        "bytes" | "bool" => 1,
        _ => ty.trim_start_matches(|c: char| !c.is_ascii_digit()).parse::<usize>().map_or(1, |bits| bits / 8),
    }
}

fn is_nan(bytes: &[u8], ty: &str) -> bool {
    let bits = bytes.iter().rev().fold(0u64, |bits, &byte| bits << 8 | u64::from(byte));
    match ty {
        "f16" => f16::from_bits(bits as u16).is_nan(),
        "bf16" => bf16::from_bits(bits as u16).is_nan(),
        "f32" => f32::from_bits(bits as u32).is_nan(),
        "f64" => f64::from_bits(bits).is_nan(),
        _ => false,
    }
}

/// The bytes of each element of a list such as `1 2 .. 9 7*3` or `@data/x.npz[out0]`; none for `nan`.
pub fn expand(words: &[String], ty: &str) -> Result<Vec<Vec<u8>>, String> {
    let integer = |word: &str| word.parse::<i128>().map_err(|_| format!("`{word}` beside `..`"));
    let mut elements = Vec::new();
    let mut i = 0;
    while let Some(word) = words.get(i) {
        if word.starts_with('@') {
            let array = archive::array(word)?;
            if array.width != width(ty) {
                return Err(format!(
                    "the elements of `{word}` have {} bytes, not those of {ty}",
                    array.width
                ));
            }
            elements.extend(array.data.chunks_exact(array.width).map(<[u8]>::to_vec));
            i += 1;
            continue;
        }
        if word == ".." {
            let [.., first, second] = words.get(..i).unwrap_or_default() else {
                return Err("`..` needs two values before it".to_owned());
            };
            let last = integer(words.get(i + 1).ok_or("`..` needs a value after it")?)?;
            let (mut value, step) = (integer(second)?, integer(second)? - integer(first)?);
            if step == 0 || (last - value) % step != 0 || (last - value) / step < 1 {
                return Err(format!("`{first} {second} .. {last}` does not get there"));
            }
            while value != last {
                value += step;
                elements.push(encode(&value.to_string(), ty)?);
            }
            i += 2;
            continue;
        }
        match word.split_once('*') {
            Some((value, count)) => {
                let count: usize = count.parse().map_err(|_| format!("`{word}`"))?;
                let element = encode(value, ty)?;
                elements.extend(std::iter::repeat_n(element, count));
            }
            None => elements.push(encode(word, ty)?),
        }
        i += 1;
    }
    Ok(elements)
}

/// The bytes of one element.
fn encode(word: &str, ty: &str) -> Result<Vec<u8>, String> {
    let wrong = || format!("`{word}` is no {ty}");
    let bytes = width(ty);
    if let Some(hex) = word.strip_prefix("0x") {
        let bits = u64::from_str_radix(hex, 16).map_err(|_| wrong())?;
        return Ok(bits.to_le_bytes()[..bytes].to_vec());
    }
    if word == "nan" {
        return Ok(Vec::new());
    }
    Ok(match ty {
        "f16" => f16::from_f64(word.parse().map_err(|_| wrong())?).to_le_bytes().to_vec(),
        "bf16" => bf16::from_f64(word.parse().map_err(|_| wrong())?).to_le_bytes().to_vec(),
        "f32" => word.parse::<f32>().map_err(|_| wrong())?.to_le_bytes().to_vec(),
        "f64" => word.parse::<f64>().map_err(|_| wrong())?.to_le_bytes().to_vec(),
        _ => word.parse::<i128>().map_err(|_| wrong())?.to_le_bytes()[..bytes].to_vec(),
    })
}
