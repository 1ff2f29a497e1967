//! The bad files of `tests/fail`: PTX whose comments say what ptxvm and ptxas say of each line. `tests/fail/README.md`
//! describes the comments.
//!
//! A [`BadFile`] is read by the checker's test, which writes what ptxvm says, and by `cargo xtask record fail`, which
//! writes what ptxas says. Each keeps the words of the other.

use std::collections::BTreeMap;
use std::fmt::Write as _;

/// What ptxvm says of a place. Its line is that of the annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ours {
    /// Column of the first marked character, from 1.
    pub column: u32,
    /// Number of marked characters, one at least.
    pub width: u32,
    /// `error` or `warning`.
    pub severity: String,
    /// The name of the diagnostic's `Code`.
    pub code: String,
    /// The words, which are ptxas's where it says the same.
    pub message: String,
    /// What to write instead.
    pub help: Option<String>,
    /// What ptxas says to that.
    pub ptxas: Agreement,
}

/// Whether ptxas says what we say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Agreement {
    /// It does not say it on this line.
    Nothing,
    /// It says the same.
    Same {
        /// And stops there: its severity is `fatal`.
        stops: bool,
        /// It says it of this line. Else it says it of the file as a whole, as line 0.
        of_line: bool,
    },
}

/// A message of ptxas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Said {
    /// The line, from 1; 0 for the file as a whole.
    pub line: u32,
    /// `info`, `warning`, `error` or `fatal`.
    pub severity: String,
    /// The words.
    pub text: String,
}

/// What is said of a line, in the order in which it is said.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Annotation {
    Ours(Ours),
    /// A message of ptxas that we do not say on this line. Its line is 0 if it is about the file.
    Ptxas(Said),
}

/// A file with its annotations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BadFile {
    /// The file without annotations, as the checker and ptxas get it: all line numbers are of this text.
    pub text: String,
    /// Why ptxvm and ptxas differ knowingly.
    pub reason: Option<String>,
    annotations: BTreeMap<u32, Vec<Annotation>>,
}

/// Begins the line with the reason for a difference.
const REASON: &str = "// differs from ptxas: ";
/// Stands in place of blanks in an annotation of the end of the file, behind its last line.
const END: &str = "end";
/// Begins a message of ptxas on a line of its own.
const PTXAS: &str = " ptxas: ";
/// Marks a message of ptxas that names no line.
const OF_FILE: &str = "of the file: ";

impl BadFile {
    /// Reads a file.
    pub fn parse(file: &str) -> Result<BadFile, String> {
        if !file.ends_with('\n') {
            return Err("the last line has no end".to_owned());
        }
        let mut parsed = BadFile::default();
        let mut line = 0;
        for (index, text) in file.lines().enumerate() {
            let read = parsed.read_annotation(text, line);
            if !read.map_err(|error| format!("line {}: {error}", index + 1))? {
                line += 1;
                parsed.text += text;
                parsed.text.push('\n');
            }
        }
        // Annotations of the end were put below all lines.
        if let Some(end) = parsed.annotations.remove(&u32::MAX) {
            parsed.annotations.insert(line + 1, end);
        }
        Ok(parsed)
    }

    /// Reads a line below `line` if it is an annotation, and says whether it is.
    fn read_annotation(&mut self, text: &str, line: u32) -> Result<bool, String> {
        if let Some(reason) = text.strip_prefix(REASON) {
            self.reason = Some(reason.to_owned());
            return Ok(true);
        }
        let Some(comment) = text.strip_prefix("//") else { return Ok(false) };
        let (line, comment) = match comment.strip_prefix(END) {
            Some(rest) if rest.starts_with(' ') => (u32::MAX, rest),
            _ => (line, comment),
        };
        if let Some(words) = comment.strip_prefix(PTXAS) {
            let (line_of_message, words) = match words.strip_prefix(OF_FILE) {
                Some(words) => (0, words),
                None => (line, words),
            };
            let (severity, text) = words.split_once(": ").ok_or("`severity: text` is missing")?;
            let said = Said { line: line_of_message, severity: severity.to_owned(), text: text.to_owned() };
            self.annotations.entry(line).or_default().push(Annotation::Ptxas(said));
        } else if let Some(fact) = comment.trim_start().strip_prefix("= help: ") {
            self.last_of_ours(line)?.help = Some(fact.to_owned());
        } else if let Some(fact) = comment.trim_start().strip_prefix("= ptxas: ") {
            self.last_of_ours(line)?.ptxas = Agreement::parse(fact)?;
        } else if let Some(mut ours) = Ours::parse(comment) {
            // The end of the file is the start of a line.
            ours.column = if line == u32::MAX { 1 } else { ours.column };
            self.annotations.entry(line).or_default().push(Annotation::Ours(ours));
        } else {
            return Ok(false);
        }
        Ok(true)
    }

    fn last_of_ours(&mut self, line: u32) -> Result<&mut Ours, String> {
        match self.annotations.get_mut(&line).and_then(|annotations| annotations.last_mut()) {
            Some(Annotation::Ours(ours)) => Ok(ours),
            _ => Err("there is no message above".to_owned()),
        }
    }

    /// All annotations, each with its line.
    fn all(&self) -> impl Iterator<Item = (u32, &Annotation)> {
        self.annotations.iter().flat_map(|(&line, said)| said.iter().map(move |one| (line, one)))
    }

    /// What ptxvm says, with the line of each message, line by line.
    pub fn ours(&self) -> Vec<(u32, Ours)> {
        let all = self.all().filter_map(|(line, one)| match one {
            Annotation::Ours(ours) => Some((line, ours.clone())),
            Annotation::Ptxas(_) => None,
        });
        all.collect()
    }

    /// What ptxas says, line by line.
    pub fn ptxas(&self) -> Vec<Said> {
        let all = self.all().filter_map(|(line, one)| match one {
            Annotation::Ptxas(said) if said.line == 0 => Some(said.clone()),
            Annotation::Ptxas(said) => Some(Said { line, ..said.clone() }),
            Annotation::Ours(ours) => ours.said_by_ptxas(line),
        });
        all.collect()
    }

    /// The same file with other annotations.
    pub fn annotate(&self, ours: &[(u32, Ours)], ptxas: &[Said]) -> BadFile {
        let mut merged =
            BadFile { text: self.text.clone(), reason: self.reason.clone(), ..BadFile::default() };
        let mut of_file: Vec<&Said> = ptxas.iter().filter(|said| said.line == 0).collect();
        let mut of_lines: BTreeMap<u32, Vec<&Said>> = BTreeMap::new();
        for said in ptxas.iter().filter(|said| said.line != 0) {
            of_lines.entry(said.line).or_default().push(said);
        }
        for (line, ours) in ours {
            let annotations = merged.annotations.entry(*line).or_default();
            let mut ours = Ours { ptxas: Agreement::Nothing, ..ours.clone() };
            let said = of_lines.entry(*line).or_default();
            if let Some(index) = of_file.iter().position(|said| ours.agrees_with(said)) {
                ours.ptxas = of_file.remove(index).agreement();
            } else if let Some(index) = said.iter().position(|said| ours.agrees_with(said)) {
                let before = said.drain(..index).map(|said| Annotation::Ptxas(said.clone()));
                annotations.extend(before);
                ours.ptxas = said.remove(0).agreement();
            }
            annotations.push(Annotation::Ours(ours));
        }
        let last_line = merged.text.lines().count() as u32;
        let rest = of_lines.into_values().flatten().map(|said| (said.line, said));
        for (line, said) in rest.chain(of_file.into_iter().map(|said| (last_line, said))) {
            merged.annotations.entry(line).or_default().push(Annotation::Ptxas(said.clone()));
        }
        merged
    }

    /// The file as it is written.
    pub fn render(&self) -> String {
        let mut file = String::new();
        let mut line = 0;
        for text in self.text.lines() {
            line += 1;
            file += text;
            file.push('\n');
            if let (1, Some(reason)) = (line, &self.reason) {
                // Writing to a String cannot fail.
                let _ = writeln!(file, "{REASON}{reason}");
            }
            file += &self.render_annotations(line, "");
        }
        file + &self.render_annotations(line + 1, END)
    }

    fn render_annotations(&self, line: u32, end: &str) -> String {
        let mut lines = String::new();
        for annotation in self.annotations.get(&line).into_iter().flatten() {
            match annotation {
                Annotation::Ours(ours) => lines += &ours.render(end),
                Annotation::Ptxas(said) => {
                    let of_file = if said.line == 0 { OF_FILE } else { "" };
                    // Writing to a String cannot fail.
                    let _ = writeln!(lines, "//{end}{PTXAS}{of_file}{}: {}", said.severity, said.text);
                }
            }
        }
        lines
    }
}

impl Said {
    fn agreement(&self) -> Agreement {
        Agreement::Same { stops: self.severity == "fatal", of_line: self.line != 0 }
    }
}

impl Agreement {
    fn parse(words: &str) -> Result<Agreement, String> {
        match words {
            "nothing" => Ok(Agreement::Nothing),
            "fatal" => Ok(Agreement::Same { stops: true, of_line: true }),
            "of the file" => Ok(Agreement::Same { stops: false, of_line: false }),
            "fatal, of the file" => Ok(Agreement::Same { stops: true, of_line: false }),
            _ => Err(format!("`{words}` is not `nothing`, `fatal`, `of the file` or `fatal, of the file`")),
        }
    }

    /// How it is written, if it must be.
    fn words(self) -> Option<&'static str> {
        match self {
            Agreement::Nothing => Some("nothing"),
            Agreement::Same { stops: false, of_line: true } => None,
            Agreement::Same { stops: true, of_line: true } => Some("fatal"),
            Agreement::Same { stops: false, of_line: false } => Some("of the file"),
            Agreement::Same { stops: true, of_line: false } => Some("fatal, of the file"),
        }
    }
}

impl Ours {
    /// Reads `   ^^^ severity[code]: message`. A number in front of the carets is the column, where `//` is in the way.
    fn parse(comment: &str) -> Option<Ours> {
        let digits = comment.bytes().take_while(u8::is_ascii_digit).count();
        let carets = comment[digits..].trim_start_matches(' ');
        let column = match digits {
            0 => (2 + comment.len() - carets.len() + 1) as u32,
            _ => comment[..digits].parse().ok()?,
        };
        let words = carets.trim_start_matches('^');
        let width = (carets.len() - words.len()) as u32;
        let (severity, rest) = words.strip_prefix(' ')?.split_once('[')?;
        let (code, message) = rest.split_once("]: ")?;
        let known = width > 0 && ["error", "warning"].contains(&severity);
        known.then(|| Ours {
            column,
            width,
            severity: severity.to_owned(),
            code: code.to_owned(),
            message: message.to_owned(),
            help: None,
            ptxas: Agreement::Same { stops: false, of_line: true },
        })
    }

    fn render(&self, end: &str) -> String {
        let carets = "^".repeat(self.width as usize);
        let mark = match self.column {
            _ if !end.is_empty() => format!(" {carets}"),
            column @ (1 | 2) => format!("{column} {carets}"),
            column => " ".repeat(column as usize - 3) + &carets,
        };
        let mut lines = format!("//{end}{mark} {}[{}]: {}\n", self.severity, self.code, self.message);
        let help = self.help.as_ref().map(|help| format!("help: {help}"));
        let ptxas = self.ptxas.words().map(|words| format!("ptxas: {words}"));
        for fact in help.into_iter().chain(ptxas) {
            // Writing to a String cannot fail.
            let _ = writeln!(lines, "//{end}    = {fact}");
        }
        lines
    }

    fn agrees_with(&self, said: &Said) -> bool {
        let severity = if said.severity == "fatal" { "error" } else { &said.severity };
        (severity, &said.text) == (&self.severity, &self.message)
    }

    fn said_by_ptxas(&self, line: u32) -> Option<Said> {
        let Agreement::Same { stops, of_line } = self.ptxas else { return None };
        let severity = if stops { "fatal" } else { &self.severity };
        let line = if of_line { line } else { 0 };
        Some(Said { line, severity: severity.to_owned(), text: self.message.clone() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "\
// A file with every kind of annotation.
// differs from ptxas: for a reason
.version 1
//2 ^^^^^^^ error[a-code]: at the start
//    = help: move it
// ptxas: error: second
    add.u32
//     ^^^^ warning[b-code]: in between
//    = ptxas: of the file
//  ^ error[b-code]: and there
//    = ptxas: nothing
// ptxas: of the file: info: as a whole
//end ^ error[c-code]: too short
//end    = ptxas: fatal
";

    #[test]
    fn a_file_is_written_as_it_was_read() {
        let file = BadFile::parse(FILE).unwrap();
        assert_eq!(file.text, "// A file with every kind of annotation.\n.version 1\n    add.u32\n");
        assert_eq!(file.reason.as_deref(), Some("for a reason"));
        assert_eq!(file.render(), FILE);
        assert_eq!(file.annotate(&file.ours(), &file.ptxas()), file);
        let said = file.ptxas().iter().map(|said| (said.line, said.severity.clone())).collect::<Vec<_>>();
        let expected = [(2, "error"), (2, "error"), (0, "warning"), (0, "info"), (4, "fatal")];
        assert_eq!(said, expected.map(|(line, severity)| (line, severity.to_owned())));
    }

    #[test]
    fn what_is_no_annotation_stays() {
        let text = "//^\n// error[a]: b\n//  ^ remark[a]: b\n// = c\n//ends ptxas: d\n";
        assert_eq!(BadFile::parse(text).unwrap().text, text);
        assert!(BadFile::parse("// ptxas: error\n").is_err());
        assert!(BadFile::parse("//    = help: of what?\n").is_err());
    }
}
