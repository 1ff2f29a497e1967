//! Tokens of PTX (PTX ISA, "Syntax": source format, comments, identifiers, constants).
//!
//! The lexer makes tokens one at a time and does not keep them, so that a file needs only the memory of its tree. As
//! in ptxas, the longest match wins and tokens need no white space between them: `0x` is the number `0` and the
//! identifier `x`.

use diag::Span;

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `add`, `%r1`, `$L__BB0_1`
    Identifier,
    /// `_`
    Underscore,
    /// `WARP_SZ`
    WarpSize,
    /// `.f32`, `.L1::evict_last`, `.16x64b`, `.const[3]`: a modifier, a type, a state space or a directive.
    Dotted,
    /// `.version 8.5`
    Version,
    /// `12`, `0x1FU`, `017`, `0b1`
    Integer,
    /// `1.5`, `1e5`, `.5`, `0dXXXXXXXXXXXXXXXX`
    Double,
    /// `0fXXXXXXXX`
    Single,
    /// `"text"`
    String,
    /// Punctuation and operators of one or two characters.
    LeftParen,
    /// `)`
    RightParen,
    /// `[`
    LeftBracket,
    /// `]`
    RightBracket,
    /// `{`
    LeftBrace,
    /// `}`
    RightBrace,
    /// `,`
    Comma,
    /// `;`
    Semicolon,
    /// `:`
    Colon,
    /// `@`
    At,
    /// `=`
    Assign,
    /// `?`
    Question,
    /// `!`
    Exclamation,
    /// `~`
    Tilde,
    /// `+`
    Plus,
    /// `-`
    Minus,
    /// `*`
    Star,
    /// `/`
    Slash,
    /// `%`
    Percent,
    /// `<<`
    ShiftLeft,
    /// `>>`
    ShiftRight,
    /// `<`
    Less,
    /// `>`
    Greater,
    /// `<=`
    LessEqual,
    /// `>=`
    GreaterEqual,
    /// `==`
    Equal,
    /// `!=`
    NotEqual,
    /// `&`
    Ampersand,
    /// `^`
    Caret,
    /// `|`
    Bar,
    /// `&&`
    AndAnd,
    /// `||`
    OrOr,
    /// A character that cannot start a token.
    Unknown,
    /// The end of the text.
    End,
    /// The end of the text within a comment, which starts at [`Lexer::open_comment`].
    EndInComment,
}

/// A token: its kind and its span.
#[derive(Clone, Copy, Debug)]
pub struct Token {
    /// Its kind.
    pub kind: Kind,
    /// Whether it is the first on its line.
    pub first_on_line: bool,
    /// Its span.
    pub span: Span,
}

/// Splits text into tokens.
#[derive(Clone)]
pub struct Lexer<'a> {
    text: &'a str,
    at: usize,
    /// Start of the unterminated comment, if the text ends in one.
    pub open_comment: u32,
}

impl<'a> Lexer<'a> {
    /// A lexer at the start of a text of less than 4 GiB.
    pub fn new(text: &'a str) -> Lexer<'a> {
        Lexer { text, at: 0, open_comment: 0 }
    }

    /// Jumps to the end of the text.
    pub fn finish(&mut self) {
        self.at = self.text.len();
    }

    /// The next token. After the last token, always [`Kind::End`] or [`Kind::EndInComment`].
    pub fn token(&mut self) -> Token {
        let first_on_line = match self.skip_blank() {
            Ok(first_on_line) => first_on_line,
            Err(comment) => {
                self.open_comment = comment as u32;
                let span = Span::at(self.text.len() as u32);
                return Token { kind: Kind::EndInComment, first_on_line: true, span };
            }
        };
        let start = self.at;
        let (kind, length) = scan(&self.text[start..]);
        self.at = start + length;
        Token { kind, first_on_line, span: Span::new(start as u32, self.at as u32) }
    }

    /// Skips white space, comments and line directives. Returns whether a new line began; the error is the start of
    /// an unterminated comment.
    fn skip_blank(&mut self) -> Result<bool, usize> {
        let bytes = self.text.as_bytes();
        let mut new_line = self.at == 0;
        while let Some(&byte) = bytes.get(self.at) {
            match byte {
                b'\n' => {
                    new_line = true;
                    self.at += 1;
                }
                b' ' | b'\t' | b'\r' | b'\x0C' => self.at += 1,
                b'/' if bytes.get(self.at + 1) == Some(&b'/') => {
                    self.at = find(bytes, self.at, b'\n');
                }
                b'/' if bytes.get(self.at + 1) == Some(&b'*') => {
                    let inside = &self.text[self.at + 2..];
                    let Some(length) = inside.find("*/") else {
                        let comment = self.at;
                        self.at = bytes.len();
                        return Err(comment);
                    };
                    new_line |= inside.as_bytes()[..length].contains(&b'\n');
                    self.at += length + 4;
                }
                b'#' => match line_directive(&bytes[self.at..]) {
                    Some(length) => self.at += length,
                    None => break,
                },
                // The prefix of debug sections in PTX 1.x is ignored.
                b'@' if self.text[self.at..].starts_with("@@DWARF") => self.at += "@@DWARF".len(),
                _ => break,
            }
        }
        Ok(new_line)
    }
}

/// The comments in a text that has no tokens, and what else counts as blank and is not: line directives, and the
/// prefix of debug sections.
pub fn comments(blank: &str) -> impl Iterator<Item = std::ops::Range<usize>> {
    let bytes = blank.as_bytes();
    let mut at = 0;
    std::iter::from_fn(move || {
        at += count(&bytes[at..], |b| matches!(b, b' ' | b'\t' | b'\r' | b'\n' | b'\x0C'));
        let start = at;
        at = match *bytes.get(start)? {
            b'/' if bytes.get(start + 1) == Some(&b'*') => {
                blank[start + 2..].find("*/").map_or(bytes.len(), |length| start + length + 4)
            }
            b'@' => start + "@@DWARF".len().min(bytes.len() - start),
            _ => find(bytes, start, b'\n'),
        };
        Some(start..at)
    })
}

/// Offset of the first `byte` at or after `at`, or the end.
fn find(bytes: &[u8], at: usize, byte: u8) -> usize {
    bytes[at..].iter().position(|&b| b == byte).map_or(bytes.len(), |length| at + length)
}

/// Length of `# 12 "name"` or `#line 12 "name"`, up to the end of its line.
fn line_directive(bytes: &[u8]) -> Option<usize> {
    let blanks = |at: usize| bytes[at..].iter().take_while(|&&b| b == b' ' || b == b'\t').count();
    let mut at = 1 + blanks(1);
    if bytes[at..].starts_with(b"line") {
        at += 4;
        at += blanks(at);
    }
    let digits = count(&bytes[at..], |b| b.is_ascii_digit());
    at += digits;
    let gap = blanks(at);
    at += gap;
    if digits == 0 || gap == 0 || bytes.get(at) != Some(&b'"') {
        return None;
    }
    at += 1 + count(&bytes[at + 1..], |b| b != b'"' && b != b'\n');
    if bytes.get(at) != Some(&b'"') {
        return None;
    }
    at += 1;
    at += count(&bytes[at..], |b| b.is_ascii_digit() || matches!(b, b' ' | b'\t' | b'\r'));
    matches!(bytes.get(at), None | Some(b'\n')).then_some(at)
}

/// Number of leading bytes that satisfy a condition.
fn count(bytes: &[u8], condition: impl Fn(u8) -> bool) -> usize {
    bytes.iter().take_while(|&&b| condition(b)).count()
}

/// The bytes that an identifier may contain after its first character.
static WORD: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        let character = byte as u8;
        table[byte] = character.is_ascii_alphanumeric() || character == b'_' || character == b'$';
        byte += 1;
    }
    table
};

fn is_word(byte: u8) -> bool {
    WORD[usize::from(byte)]
}

/// Kind and length of the token at the start of the text.
fn scan(text: &str) -> (Kind, usize) {
    let bytes = text.as_bytes();
    let Some(&first) = bytes.first() else {
        return (Kind::End, 0);
    };
    let second = bytes.get(1).copied().unwrap_or(0);
    match first {
        b'a'..=b'z' | b'A'..=b'Z' => match count(bytes, is_word) {
            7 if text.starts_with("WARP_SZ") => (Kind::WarpSize, 7),
            length => (Kind::Identifier, length),
        },
        b'_' | b'$' | b'%' if is_word(second) => (Kind::Identifier, 1 + count(&bytes[1..], is_word)),
        b'_' => (Kind::Underscore, 1),
        b'.' => dotted(bytes),
        b'0'..=b'9' => number(bytes),
        b'"' => match find(bytes, 1, b'"') {
            end if end < bytes.len() => (Kind::String, end + 1),
            _ => (Kind::Unknown, 1),
        },
        b'<' if second == b'<' => (Kind::ShiftLeft, 2),
        b'>' if second == b'>' => (Kind::ShiftRight, 2),
        b'<' if second == b'=' => (Kind::LessEqual, 2),
        b'>' if second == b'=' => (Kind::GreaterEqual, 2),
        b'=' if second == b'=' => (Kind::Equal, 2),
        b'!' if second == b'=' => (Kind::NotEqual, 2),
        b'&' if second == b'&' => (Kind::AndAnd, 2),
        b'|' if second == b'|' => (Kind::OrOr, 2),
        b'(' => (Kind::LeftParen, 1),
        b')' => (Kind::RightParen, 1),
        b'[' => (Kind::LeftBracket, 1),
        b']' => (Kind::RightBracket, 1),
        b'{' => (Kind::LeftBrace, 1),
        b'}' => (Kind::RightBrace, 1),
        b',' => (Kind::Comma, 1),
        b';' => (Kind::Semicolon, 1),
        b':' => (Kind::Colon, 1),
        b'@' => (Kind::At, 1),
        b'=' => (Kind::Assign, 1),
        b'?' => (Kind::Question, 1),
        b'!' => (Kind::Exclamation, 1),
        b'~' => (Kind::Tilde, 1),
        b'+' => (Kind::Plus, 1),
        b'-' => (Kind::Minus, 1),
        b'*' => (Kind::Star, 1),
        b'/' => (Kind::Slash, 1),
        b'%' => (Kind::Percent, 1),
        b'<' => (Kind::Less, 1),
        b'>' => (Kind::Greater, 1),
        b'&' => (Kind::Ampersand, 1),
        b'^' => (Kind::Caret, 1),
        b'|' => (Kind::Bar, 1),
        _ => (Kind::Unknown, text.chars().next().map_or(1, char::len_utf8)),
    }
}

/// A token that starts with a dot.
fn dotted(bytes: &[u8]) -> (Kind, usize) {
    let after = bytes.get(1).copied().unwrap_or(0);
    if after.is_ascii_digit() {
        return dotted_digit(bytes);
    }
    if !after.is_ascii_alphabetic() {
        return (Kind::Unknown, 1);
    }
    let length = with_qualifiers(bytes, 1 + count(&bytes[1..], is_word));
    match &bytes[..length] {
        b".version" => {
            let blanks = count(&bytes[length..], |b| b == b' ' || b == b'\t');
            let major = count(&bytes[length + blanks..], |b| b.is_ascii_digit());
            let point = length + blanks + major;
            let minor = bytes.get(point + 1..).map_or(0, |rest| count(rest, |b| b.is_ascii_digit()));
            if blanks > 0 && major > 0 && minor > 0 && bytes[point] == b'.' {
                return (Kind::Version, point + 1 + minor);
            }
            (Kind::Dotted, length)
        }
        b".const" => (Kind::Dotted, length + bank(&bytes[length..])),
        _ => (Kind::Dotted, length),
    }
}

/// Extends a dotted word by one or more `::name`, and these by one `:name`: `.sp::2:4` is one word.
fn with_qualifiers(bytes: &[u8], word: usize) -> usize {
    let name_after = |separator: &[u8], at: usize| match bytes[at..].strip_prefix(separator) {
        Some(rest) => count(rest, is_word),
        None => 0,
    };
    let mut length = word;
    while let name @ 1.. = name_after(b"::", length) {
        length += 2 + name;
    }
    match name_after(b":", length) {
        name @ 1.. if length > word => length + 1 + name,
        _ => length,
    }
}

/// Length of `[N]`, a constant bank of PTX 1.x, or 0.
fn bank(bytes: &[u8]) -> usize {
    let digits = bytes.get(1..).map_or(0, |rest| count(rest, |b| b.is_ascii_digit()));
    let plain = digits == 1 || bytes.get(1) != Some(&b'0');
    if digits > 0 && plain && bytes[0] == b'[' && bytes.get(digits + 1) == Some(&b']') {
        digits + 2
    } else {
        0
    }
}

/// A dot and a digit: `.5`, `.5e3`, or a modifier like `.2d` and `.16x64b`.
fn dotted_digit(bytes: &[u8]) -> (Kind, usize) {
    let digits = count(&bytes[1..], |b| b.is_ascii_digit());
    let number = 1 + digits + exponent(&bytes[1 + digits..]);
    let word = 1 + count(&bytes[1..], is_word);
    if word > number { (Kind::Dotted, word) } else { (Kind::Double, number) }
}

/// Length of an exponent, or 0.
fn exponent(bytes: &[u8]) -> usize {
    if !matches!(bytes.first(), Some(b'e' | b'E')) {
        return 0;
    }
    let sign = usize::from(matches!(bytes.get(1), Some(b'+' | b'-')));
    match count(&bytes[1 + sign..], |b| b.is_ascii_digit()) {
        0 => 0,
        digits => 1 + sign + digits,
    }
}

/// A token that starts with a digit.
fn number(bytes: &[u8]) -> (Kind, usize) {
    let integer = |length: usize| (Kind::Integer, length + usize::from(bytes.get(length) == Some(&b'U')));
    let after_prefix = bytes.get(2..).unwrap_or(&[]);
    let hex = |b: u8| b.is_ascii_hexdigit();
    if bytes[0] == b'0' {
        match bytes.get(1) {
            Some(b'f' | b'F') if count(after_prefix.get(..8).unwrap_or(&[]), hex) == 8 => {
                return (Kind::Single, 10);
            }
            Some(b'd' | b'D') if count(after_prefix.get(..16).unwrap_or(&[]), hex) == 16 => {
                return (Kind::Double, 18);
            }
            Some(b'x' | b'X') if after_prefix.first().is_some_and(|&b| hex(b)) => {
                return integer(2 + count(after_prefix, hex));
            }
            Some(b'b' | b'B') if matches!(after_prefix.first(), Some(b'0' | b'1')) => {
                return integer(2 + count(after_prefix, |b| b == b'0' || b == b'1'));
            }
            _ => {}
        }
    }
    let digits = count(bytes, |b| b.is_ascii_digit());
    let mut real = digits;
    if bytes.get(real) == Some(&b'.') {
        real += 1;
        real += count(&bytes[real..], |b| b.is_ascii_digit());
    }
    real += exponent(&bytes[real..]);
    if real > digits {
        return (Kind::Double, real);
    }
    if bytes[0] == b'0' {
        // Octal: `08` is the number 0, followed by the number 8.
        return integer(1 + count(&bytes[1..], |b| matches!(b, b'0'..=b'7')));
    }
    integer(digits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(text: &str) -> Vec<(Kind, &str)> {
        let mut lexer = Lexer::new(text);
        let mut tokens = Vec::new();
        loop {
            let token = lexer.token();
            if matches!(token.kind, Kind::End | Kind::EndInComment) {
                return tokens;
            }
            tokens.push((token.kind, &text[token.span.range()]));
        }
    }

    fn words(text: &str) -> Vec<&str> {
        tokens(text).into_iter().map(|(_, word)| word).collect()
    }

    #[test]
    fn the_longest_match_wins() {
        assert_eq!(
            words("0x 08 0b2 0f3f8 5u 5UL 1.0f"),
            "0 x 0 8 0 b2 0 f3f8 5 u 5U L 1.0 f".split(' ').collect::<Vec<_>>()
        );
        assert_eq!(words("a%b %%a 5%3 5 % 3"), ["a", "%b", "%", "%a", "5", "%3", "5", "%", "3"]);
        assert_eq!(words("1<<<2 a===b &&&"), ["1", "<<", "<", "2", "a", "==", "=", "b", "&&", "&"]);
    }

    #[test]
    fn numbers() {
        for integer in ["0", "7U", "0x5U", "0XaF", "0b101", "0B1U", "017", "18446744073709551616"] {
            assert_eq!(tokens(integer), [(Kind::Integer, integer)]);
        }
        for double in
            ["1.", "1.5", ".5", ".5e-5", "1e5", "1.5E+5", "08.8", "0d3FF0000000000000", "0D3ff0000000000000"]
        {
            assert_eq!(tokens(double), [(Kind::Double, double)]);
        }
        assert_eq!(tokens("0f3F800000 0F3f800000")[1], (Kind::Single, "0F3f800000"));
    }

    #[test]
    fn dotted_words() {
        for word in [
            ".f32",
            ".L1::evict_last",
            ".16x64b",
            ".m16n8k16",
            ".2d",
            ".16x32bx2",
            ".const[3]",
            ".const[10]",
            ".mbarrier::complete_tx::bytes",
            ".cta_group::1",
            ".L2::128B",
            ".a$b_",
            ".version",
        ] {
            assert_eq!(tokens(word), [(Kind::Dotted, word)]);
        }
        assert_eq!(tokens(".version \t8.5")[0], (Kind::Version, ".version \t8.5"));
        assert_eq!(words(".version\n8.5"), [".version", "8.5"]);
        assert_eq!(words(".const[03]"), [".const", "[", "03", "]"]);
        assert_eq!(words("add.u32%r1"), ["add", ".u32", "%r1"]);
        assert_eq!(
            words(".L1:: x ..a .5.5 .::a"),
            [".L1", ":", ":", "x", ".", ".a", ".5", ".5", ".", ":", ":", "a"]
        );
    }

    #[test]
    fn identifiers() {
        let long = format!("$L_{}", "x".repeat(500));
        for name in ["a", "a$1_", "%r1", "%1", "$1", "_1", "__", "_$", "%_", "WARP_SZX", long.as_str()] {
            assert_eq!(tokens(name), [(Kind::Identifier, name)]);
        }
        assert_eq!(
            tokens("_|% WARP_SZ $").iter().map(|t| t.0).collect::<Vec<_>>(),
            [Kind::Underscore, Kind::Bar, Kind::Percent, Kind::WarpSize, Kind::Unknown]
        );
    }

    #[test]
    fn blank_text() {
        assert_eq!(words("a/* x\n/* */b//c\nd/**/e"), ["a", "b", "d", "e"]);
        assert_eq!(words("# 1 \"x\" 2\n#line 3 \"y\"\n #4 \"z\"\nfoo"), ["foo"]);
        assert_eq!(words("#pragma\n# 1\n"), ["#", "pragma", "#", "1"]);
        assert_eq!(words("\"a\\\"b\"c"), ["\"a\\\"", "b", "\"", "c"]);
        assert_eq!(words("@@DWARF .section @@x"), [".section", "@", "@", "x"]);
    }

    #[test]
    fn the_end_in_a_comment_is_known() {
        let mut lexer = Lexer::new("a /* b");
        lexer.token();
        assert_eq!(lexer.token().kind, Kind::EndInComment);
        assert_eq!(lexer.open_comment, 2);
        assert_eq!(lexer.token().kind, Kind::End);
    }

    #[test]
    fn the_first_token_of_a_line_is_known() {
        let mut lexer = Lexer::new("a b\n /* \n */ c /* \n */ d e");
        let first: Vec<bool> = (0..5).map(|_| lexer.token().first_on_line).collect();
        assert_eq!(first, [true, false, true, true, false]);
    }
}
