//! The record of what nvdisasm prints for words of HSETP2 (`conformance/sass/words-*.zst`): which words it was asked
//! about, and how its answers are packed. `cargo xtask record sass` writes it, the tests read it.
//!
//! A file is lines of text up to an empty one, then bytes, all compressed by zstd. The lines say which words were asked
//! about ([`Section`]); the words themselves come from a random generator and are not stored. Of the answers a sample is
//! kept ([`Section::kept`]), and a digest of all. The sample is: the number of distinct pieces (4 bytes, little-endian), the pieces, one a line, and for each section, slot, plane and
//! target one byte a word. Text `n` of a target is the concatenation, over the slots, of the pieces whose indices have
//! their low byte in plane 0, the middle one in plane 1 and the high one in plane 2. How a text was cut into pieces
//! decides the size of the file and nothing else.

use std::error::Error;
use std::io::Read as _;

/// Stands for the text of a word that nvdisasm refuses.
pub const ILLEGAL: &str = "illegal";
/// Stands for the text of a word that is another instruction.
pub const OTHER: &str = "other";

/// Pieces of a text.
const SLOTS: usize = 13;
/// Bytes of a piece's index.
const PLANES: usize = 3;

/// Random bits (SplitMix64).
pub struct Random(pub u64);

impl Random {
    /// 64 of them.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let x = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let x = (x ^ x >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ x >> 31
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }
}

/// The three words of group `n` of `groups.zst`: a register, a constant and an immediate form, in turns.
pub fn group(n: usize) -> [u64; 3] {
    let words = [0x5d23_b180_0027_0107, 0x7e86_0388_005f_0201, 0x7e0a_838f_0ff0_0303];
    [0, 1, 2].map(|slot| words[(n + slot) % 3])
}

/// Words of one form and generation, and the targets that were asked about them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    /// What the second operand is.
    pub form: String,
    /// The targets, all of one generation.
    pub targets: Vec<String>,
    /// 64 or 128.
    pub bits: u32,
    /// The bits that tell the form, and what they are.
    pub opcode: (u128, u128),
    /// The bits that mean nothing.
    pub ignored: u128,
    /// Whether word `n` has `n` for its low immediate half, another permutation of all 2^16 values for its high one, and
    /// `n >> 16` for its format (128-bit words).
    pub halves: bool,
    /// Number of words.
    pub count: usize,
    /// Where the generator starts.
    pub seed: u64,
    /// The answer is kept for one word in so many.
    pub share: usize,
    /// [`digest`] of all answers, target by target.
    pub digest: u64,
}

/// A number that tells lists of texts apart (FNV-1a).
pub fn digest<'a>(texts: impl IntoIterator<Item = &'a String>) -> u64 {
    let bytes = texts.into_iter().flat_map(|text| text.bytes().chain([b'\n']));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

impl Section {
    /// All words. Of every four, one has random bits wherever the opcode has none, one of them a legal schedule besides,
    /// and in two the ignored bits are clear; one in 32 has a wrong bit in its opcode. Halves have clear ignored bits and a
    /// legal schedule.
    pub fn words(&self) -> Vec<u128> {
        let mut random = Random(self.seed);
        (0..self.count).map(|n| self.word(n, &mut random)).collect()
    }

    /// Those of all words, or of what belongs to them, whose answers are kept: one in [`share`](Section::share), from the
    /// first on. A prime share meets every kind of word.
    pub fn kept<'a, T>(&self, all: &'a [T]) -> impl Iterator<Item = &'a T> {
        all.iter().step_by(self.share)
    }

    /// Number of answers that are kept for a target.
    pub fn kept_count(&self) -> usize {
        self.count.div_ceil(self.share)
    }

    fn word(&self, n: usize, random: &mut Random) -> u128 {
        let (mask, value) = self.opcode;
        let mut word = u128::from(random.bits()) << 64 | u128::from(random.bits());
        word = word >> (128 - self.bits) & !mask | value;
        let plain = self.halves || n % 4 >= 2;
        if self.bits == 128 && (plain || !n.is_multiple_of(4)) {
            // The stall ends a group or does not, with what every target takes beside it.
            let (sched, reuse) = match random.below(2) {
                0 => (1 + random.below(15), random.below(6)),
                _ => (17 + random.below(11), random.below(2)),
            };
            word = word & !(0x1f << 105 | 7 << 122) | u128::from(sched) << 105 | u128::from(reuse) << 122;
        }
        if plain {
            word &= !self.ignored;
        }
        if self.halves {
            let low = n as u128 & 0xffff;
            let high = (low * 0x6a09 + 0x3c6e) & 0xffff;
            return word & !(0x3_ffff_ffff << 32) | low << 32 | high << 48 | (n as u128 >> 16) << 64;
        }
        if n % 32 == 31 {
            let wrong = random.below(mask.count_ones().into());
            word ^=
                (0..128).map(|bit| 1 << bit).filter(|bit| mask & bit != 0).nth(wrong as usize).unwrap_or(0);
        }
        word
    }

    fn line(&self) -> String {
        let Section { form, bits, opcode: (mask, value), ignored, count, seed, share, digest, .. } = self;
        let kind = if self.halves { "halves" } else { "random" };
        let targets = self.targets.join(" ");
        format!(
            "{form} {kind} {count} {seed} {bits} {mask:x} {value:x} {ignored:x} {share} {digest:x} {targets}\n"
        )
    }

    fn parse(line: &str) -> Result<Section, Box<dyn Error>> {
        let words: Vec<&str> = line.split(' ').collect();
        let [form, kind, count, seed, bits, mask, value, ignored, share, digest, targets @ ..] =
            words.as_slice()
        else {
            return Err(format!("no section: {line}").into());
        };
        let hex = |text: &str| u128::from_str_radix(text, 16);
        Ok(Section {
            form: (*form).to_owned(),
            targets: targets.iter().map(|target| (*target).to_owned()).collect(),
            bits: bits.parse()?,
            opcode: (hex(mask)?, hex(value)?),
            ignored: hex(ignored)?,
            halves: *kind == "halves",
            count: count.parse()?,
            seed: seed.parse()?,
            share: share.parse()?,
            digest: u64::from_str_radix(digest, 16)?,
        })
    }

    /// Bytes of its answers.
    fn size(&self) -> usize {
        SLOTS * PLANES * self.targets.len() * self.kept_count()
    }
}

/// A record that has been read.
pub struct Record {
    /// What was asked.
    pub sections: Vec<Section>,
    pieces: Vec<String>,
    /// Where each section's planes begin.
    starts: Vec<usize>,
    planes: Vec<u8>,
}

impl Record {
    /// Reads a file, or what would be one.
    pub fn read(file: impl std::io::Read) -> Result<Record, Box<dyn Error>> {
        let mut bytes = Vec::new();
        zstd::Decoder::new(file)?.read_to_end(&mut bytes)?;
        let mut rest = bytes.as_slice();
        let mut sections = Vec::new();
        loop {
            match line(&mut rest)? {
                "" => break,
                comment if comment.starts_with('#') => {}
                section => sections.push(Section::parse(section)?),
            }
        }
        let (count, mut rest) = rest.split_first_chunk().ok_or("cut short")?;
        let pieces = (0..u32::from_le_bytes(*count)).map(|_| line(&mut rest).map(str::to_owned));
        let pieces = pieces.collect::<Result<_, _>>()?;
        let mut end = 0;
        let starts = sections.iter().map(|section| (end, end += section.size()).0).collect();
        if rest.len() != end {
            return Err("not as many answers as words".into());
        }
        Ok(Record { sections, pieces, starts, planes: rest.to_vec() })
    }

    /// What nvdisasm said for a target of a section about the `n`th word whose answer is kept.
    pub fn text(&self, section: usize, target: usize, n: usize) -> String {
        let (targets, count) = (&self.sections[section].targets, self.sections[section].kept_count());
        let at = |slot: usize, plane: usize| {
            let rows = (slot * PLANES + plane) * targets.len() + target;
            usize::from(self.planes[self.starts[section] + rows * count + n])
        };
        let index = |slot| (0..PLANES).fold(0, |index, plane| index | at(slot, plane) << (8 * plane));
        (0..SLOTS).map(|slot| self.pieces[index(slot)].as_str()).collect()
    }
}

fn line<'a>(bytes: &mut &'a [u8]) -> Result<&'a str, Box<dyn Error>> {
    let end = bytes.iter().position(|byte| *byte == b'\n').ok_or("cut short")?;
    let (line, rest) = bytes.split_at(end);
    *bytes = &rest[1..];
    Ok(std::str::from_utf8(line)?)
}

/// What is to be recorded: of each section the texts of each target that are kept. `comment` is a line about where they come from.
pub fn pack(comment: &str, sections: &[(Section, Vec<Vec<String>>)]) -> std::io::Result<Vec<u8>> {
    let mut table: Vec<&str> = sections
        .iter()
        .flat_map(|(_, targets)| targets.iter().flatten())
        .flat_map(|text| cut(text))
        .collect();
    table.sort_unstable();
    table.dedup();
    let mut bytes = format!("# {comment}\n").into_bytes();
    for (section, _) in sections {
        bytes.extend(section.line().bytes());
    }
    bytes.push(b'\n');
    bytes.extend((table.len() as u32).to_le_bytes());
    for piece in &table {
        bytes.extend(piece.bytes());
        bytes.push(b'\n');
    }
    for (section, targets) in sections {
        let start = bytes.len();
        bytes.resize(start + section.size(), 0);
        for (target, texts) in targets.iter().enumerate() {
            for (n, text) in texts.iter().enumerate() {
                for (slot, piece) in cut(text).into_iter().enumerate() {
                    let index = table.binary_search(&piece).unwrap_or_default();
                    for plane in 0..PLANES {
                        let rows = (slot * PLANES + plane) * targets.len() + target;
                        bytes[start + rows * section.kept_count() + n] = (index >> (8 * plane)) as u8;
                    }
                }
            }
        }
    }
    let mut encoder = zstd::Encoder::new(Vec::new(), 19)?;
    encoder.long_distance_matching(true)?;
    encoder.window_log(27)?;
    std::io::Write::write_all(&mut encoder, &bytes)?;
    encoder.finish()
}

/// Cuts a text where what depends on one field ends: guard, name, destinations, sources (constants behind their bank),
/// last predicate, and what follows it word by word.
fn cut(text: &str) -> [&str; SLOTS] {
    let mut pieces = [""; SLOTS];
    let mut rest = text;
    let mut take = |slot: usize, length: Option<usize>| {
        let (piece, left) = rest.split_at(length.unwrap_or(0));
        pieces[slot] = piece;
        rest = left;
        left
    };
    let behind = |text: &str, what: &str| text.find(what).map(|at| at + what.len());
    let mut left = text;
    if left.starts_with('@') {
        left = take(0, behind(left, " "));
    }
    left = take(1, behind(left, " "));
    for slot in 2..5 {
        left = take(slot, behind(left, ", "));
    }
    // A second source has one comma, and an immediate two.
    for slot in 5..7 {
        let comma = behind(left, ", ");
        let bank = behind(left, "]").filter(|bank| slot == 5 && comma.is_some_and(|comma| *bank < comma));
        left = take(slot, bank.or(comma));
    }
    left = take(7, left.find([' ', ';']));
    for slot in 8..SLOTS - 1 {
        left = take(slot, left.get(1..).and_then(|tail| Some(tail.find(' ')? + 1)));
    }
    pieces[SLOTS - 1] = left;
    pieces
}
