//! The list of faults.

/// The faults, by the part of the tree that they are in: `# name`, `in FILE`, `test ARGUMENTS of cargo test`, then `- ` and
/// `+ ` before the lines that are replaced and those in their place.
const LISTS: &[&str] = &[
    include_str!("list/code.txt"),
    include_str!("list/cublas.txt"),
    include_str!("list/cufft.txt"),
    include_str!("list/cusolver.txt"),
    include_str!("list/cusparse.txt"),
    include_str!("list/debugger.txt"),
    include_str!("list/device_runtime.txt"),
    include_str!("list/devices.txt"),
    include_str!("list/exec.txt"),
    include_str!("list/ir.txt"),
    include_str!("list/lanes.txt"),
    include_str!("list/memory.txt"),
    include_str!("list/narrow.txt"),
    include_str!("list/native.txt"),
    include_str!("list/table.txt"),
    include_str!("list/tensor.txt"),
    include_str!("list/tensor_memory.txt"),
    include_str!("list/texture.txt"),
    include_str!("list/tools.txt"),
];

/// A fault: text that is replaced in a file.
#[derive(Debug, Default)]
pub struct Mutant {
    pub name: String,
    /// From the root of the tree.
    pub file: String,
    /// Arguments of `cargo test`.
    pub test: String,
    old: String,
    new: String,
}

impl Mutant {
    /// The file's text with the fault in it. The text that it replaces must be there just once.
    pub fn apply(&self, text: &str) -> Result<String, String> {
        match text.matches(&self.old).count() {
            1 => Ok(text.replacen(&self.old, &self.new, 1)),
            count => Err(format!("{}: the text to replace is {count} times in {}", self.name, self.file)),
        }
    }
}

/// All faults.
pub fn all() -> Result<Vec<Mutant>, String> {
    let lists = LISTS.iter().map(|list| parse(list)).collect::<Result<Vec<_>, _>>()?;
    Ok(lists.into_iter().flatten().collect())
}

/// Reads a list.
fn parse(text: &str) -> Result<Vec<Mutant>, String> {
    let mut mutants: Vec<Mutant> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty()) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        if word == "#" {
            mutants.push(Mutant { name: rest.to_string(), ..Mutant::default() });
            continue;
        }
        let mutant = mutants.last_mut().ok_or("the list must begin with a name")?;
        match word {
            "in" => mutant.file = rest.to_string(),
            "test" => mutant.test = rest.to_string(),
            "-" => add_line(&mut mutant.old, rest),
            "+" => add_line(&mut mutant.new, rest),
            _ => return Err(format!("not a line of the list: {line}")),
        }
    }
    for mutant in &mutants {
        if mutant.file.is_empty()
            || mutant.test.is_empty()
            || mutant.old.is_empty()
            || mutant.old == mutant.new
        {
            return Err(format!("{}: needs a file, a test, and lines that differ", mutant.name));
        }
    }
    Ok(mutants)
}

/// The first line begins anywhere in a line of the file, and the last ends anywhere; the others are whole.
fn add_line(text: &mut String, line: &str) {
    if !text.is_empty() {
        text.push('\n');
    }
    text.push_str(line);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::root;
    use std::collections::HashSet;

    /// A fault whose place was rewritten is to be planted anew.
    #[test]
    fn every_fault_can_be_planted() {
        let mutants = all().expect("lists");
        assert!(mutants.len() >= 120);
        let names: HashSet<&str> = mutants.iter().map(|mutant| mutant.name.as_str()).collect();
        assert_eq!(names.len(), mutants.len(), "a name stands twice");
        let failures: Vec<String> = mutants
            .iter()
            .filter_map(|mutant| {
                let text = std::fs::read_to_string(root().join(&mutant.file)).unwrap_or_default();
                mutant.apply(&text).err()
            })
            .collect();
        assert!(failures.is_empty(), "{}", failures.join("\n"));
    }

    #[test]
    fn text_that_is_missing_or_ambiguous_is_refused() {
        let [mutant] = &parse("# name\nin file\ntest -p x\n- a < b\n- c\n+ a > b").expect("a list")[..]
        else {
            panic!("one fault")
        };
        assert_eq!(mutant.apply("if a < b\nc {").as_deref(), Ok("if a > b {"));
        assert!(mutant.apply("if a < b {").is_err());
        assert!(mutant.apply("a < b\nc a < b\nc").is_err());
        assert!(parse("in file").is_err() && parse("# name\nin file\ntest -p x\n- a\n+ a").is_err());
    }
}
