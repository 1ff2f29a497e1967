//! Source text and positions in it.

/// A range of byte offsets, `start..end`, in the text of one [`SourceFile`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Span {
    /// Offset of the first byte.
    pub start: u32,
    /// Offset after the last byte.
    pub end: u32,
}

impl Span {
    /// The bytes `start..end`.
    pub const fn new(start: u32, end: u32) -> Span {
        Span { start, end }
    }

    /// The empty span at `offset`.
    pub const fn at(offset: u32) -> Span {
        Span { start: offset, end: offset }
    }

    /// The smallest span that covers both.
    pub fn to(self, other: Span) -> Span {
        Span { start: self.start.min(other.start), end: self.end.max(other.end) }
    }

    /// Number of bytes.
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start) as usize
    }

    /// Whether it covers no byte.
    pub const fn is_empty(self) -> bool {
        self.end <= self.start
    }

    /// The span as a range for indexing.
    pub const fn range(self) -> std::ops::Range<usize> {
        self.start as usize..self.end as usize
    }
}

/// A position, counted as people do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Position {
    /// Line, from 1.
    pub line: u32,
    /// Column in characters (Unicode scalar values), from 1.
    pub column: u32,
}

/// Distance in bytes between two entries of the table that counts characters.
const STRIDE: usize = 1024;

/// A named text with its line table.
#[derive(Clone, Debug)]
pub struct SourceFile {
    name: String,
    text: String,
    /// Offset of the first byte of each line.
    lines: Vec<u32>,
    /// Number of characters that start before byte `i * STRIDE`; empty if the text is ASCII. It makes the search for
    /// a column constant in time, however long the line.
    chars: Vec<u32>,
    too_large: bool,
}

impl SourceFile {
    /// A source file from text.
    ///
    /// Offsets are 32 bits wide, so a text of 4 GiB or more is not kept. The file is then empty and
    /// [`too_large`](Self::too_large), and parsing it reports that.
    pub fn new(name: impl Into<String>, text: impl Into<String>) -> SourceFile {
        SourceFile::with_limit(name.into(), text.into(), u32::MAX as usize)
    }

    /// A source file from any bytes. Each sequence that is not UTF-8 becomes U+FFFD. PTX allows U+FFFD in comments
    /// and strings; elsewhere it is an error.
    pub fn from_bytes(name: impl Into<String>, bytes: impl Into<Vec<u8>>) -> SourceFile {
        let text = String::from_utf8(bytes.into())
            .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
        SourceFile::new(name, text)
    }

    fn with_limit(name: String, mut text: String, limit: usize) -> SourceFile {
        let too_large = text.len() >= limit;
        if too_large {
            text = String::new();
        }
        let line_starts = text.bytes().enumerate().filter(|&(_, b)| b == b'\n').map(|(i, _)| i as u32 + 1);
        let lines = std::iter::once(0).chain(line_starts).collect();
        let mut chars = Vec::new();
        if !text.is_ascii() {
            let mut count = 0;
            for block in text.as_bytes().chunks(STRIDE) {
                chars.push(count);
                count += block.iter().filter(|&&b| is_char_start(b)).count() as u32;
            }
            chars.push(count);
        }
        SourceFile { name, text, lines, chars, too_large }
    }

    /// The name of the file as the user wrote it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The whole text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the text was too large to keep (see [`new`](Self::new)).
    pub fn too_large(&self) -> bool {
        self.too_large
    }

    /// The text of a span; empty if the span is not in this text.
    pub fn slice(&self, span: Span) -> &str {
        self.text.get(span.range()).unwrap_or("")
    }

    /// Number of lines; at least 1.
    pub fn line_count(&self) -> u32 {
        self.lines.len() as u32
    }

    /// Line and column of a byte offset. An offset after the end means the end.
    pub fn position(&self, offset: u32) -> Position {
        let offset = offset.min(self.text.len() as u32);
        let line = self.lines.partition_point(|&start| start <= offset);
        let start = self.lines[line - 1];
        Position { line: line as u32, column: self.chars_before(offset) - self.chars_before(start) + 1 }
    }

    /// The bytes of a line (from 1) without its line ending; empty if there is no such line.
    pub fn line_span(&self, line: u32) -> Span {
        let Some(&start) = (line as usize).checked_sub(1).and_then(|i| self.lines.get(i)) else {
            return Span::at(self.text.len() as u32);
        };
        let end = self.lines.get(line as usize).map_or(self.text.len(), |&next| next as usize - 1);
        let text = &self.text[start as usize..end];
        Span::new(start, start + text.strip_suffix('\r').unwrap_or(text).len() as u32)
    }

    /// Number of characters that start before this offset.
    fn chars_before(&self, offset: u32) -> u32 {
        let offset = offset as usize;
        let Some(&base) = self.chars.get(offset / STRIDE) else {
            return offset as u32;
        };
        let rest = &self.text.as_bytes()[offset / STRIDE * STRIDE..offset];
        base + rest.iter().filter(|&&b| is_char_start(b)).count() as u32
    }
}

/// Whether a byte of UTF-8 starts a character.
fn is_char_start(byte: u8) -> bool {
    byte & 0xC0 != 0x80
}

#[cfg(test)]
mod tests {
    use super::*;

    fn position(file: &SourceFile, offset: u32) -> (u32, u32) {
        let Position { line, column } = file.position(offset);
        (line, column)
    }

    #[test]
    fn positions_are_one_based_and_count_characters() {
        let file = SourceFile::new("f", "ab\n\u{e9}\u{1f600}x\r\n");
        assert_eq!(position(&file, 0), (1, 1));
        assert_eq!(position(&file, 2), (1, 3));
        assert_eq!(position(&file, 3), (2, 1));
        assert_eq!(position(&file, 5), (2, 2));
        assert_eq!(position(&file, 9), (2, 3));
        assert_eq!(position(&file, 12), (3, 1));
        assert_eq!(position(&file, 99), (3, 1));
        assert_eq!(file.slice(file.line_span(2)), "\u{e9}\u{1f600}x");
        assert_eq!(file.slice(file.line_span(3)), "");
        assert_eq!(file.slice(file.line_span(0)), "");
        assert_eq!(file.slice(file.line_span(4)), "");
    }

    #[test]
    fn columns_agree_with_counting_in_a_long_line() {
        let text = "a\u{e9}\u{4e2d}".repeat(2000);
        let file = SourceFile::new("f", text.as_str());
        for (column, (offset, _)) in text.char_indices().enumerate() {
            assert_eq!(position(&file, offset as u32), (1, column as u32 + 1));
        }
    }

    #[test]
    fn any_bytes_become_text() {
        let file = SourceFile::from_bytes("f", b"a\xff\xfeb\0".as_slice());
        assert_eq!(file.text(), "a\u{fffd}\u{fffd}b\0");
        assert_eq!(SourceFile::from_bytes("f", Vec::new()).line_count(), 1);
    }

    #[test]
    fn too_large_a_text_is_refused() {
        let file = SourceFile::with_limit("f".into(), "12345678".into(), 8);
        assert!(file.too_large());
        assert_eq!(file.text(), "");
        assert!(!SourceFile::with_limit("f".into(), "1234567".into(), 8).too_large());
    }
}
