//! A safe interface to handlers: operands know their shape, and each call checks it.

use super::{HostPath, LaneArgs, LaneFn, LaneWidth, lookup};
use isa::{Form, Picks, Second, Type};

/// 64 bytes, with the alignment of the widest vectors.
#[repr(C, align(64))]
#[derive(Clone, Copy)]
struct Line([u8; 64]);

/// Unsigned integer types for the lanes of an operand.
pub trait LaneBits: Copy + private::Sealed {}

mod private {
    pub trait Sealed {}
}

macro_rules! lane_bits {
    ($($T:ty)*) => { $(impl private::Sealed for $T {} impl LaneBits for $T {})* };
}
lane_bits!(u16 u32 u64);

/// One operand of a handler: a value for every lane, initially zero.
#[derive(Clone)]
pub struct Operand {
    lines: Vec<Line>,
    width: LaneWidth,
    lanes: usize,
}

impl Operand {
    /// An operand of `lanes` lanes.
    ///
    /// # Panics
    /// If `lanes` is not a multiple of 16.
    pub fn new(width: LaneWidth, lanes: usize) -> Operand {
        assert!(lanes.is_multiple_of(16), "lanes come in blocks of 16");
        let lines = width.bytes(lanes).div_ceil(size_of::<Line>());
        Operand { lines: vec![Line([0; 64]); lines], width, lanes }
    }

    /// Number of lanes.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The lanes. A predicate has a `u16` for every 16 lanes.
    ///
    /// # Panics
    /// If the width of the lanes is not that of `T`.
    pub fn bits<T: LaneBits>(&self) -> &[T] {
        let length = self.length::<T>();
        // SAFETY: `lines` has that many bytes; any bits are a valid `T`, and its alignment is less than that of a
        // line.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), length) }
    }

    /// The lanes, mutably.
    ///
    /// # Panics
    /// If the width of the lanes is not that of `T`.
    pub fn bits_mut<T: LaneBits>(&mut self) -> &mut [T] {
        let length = self.length::<T>();
        // SAFETY: as above, and `lines` is borrowed mutably.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), length) }
    }

    /// The value of a lane.
    pub fn get(&self, lane: usize) -> u64 {
        match self.width {
            LaneWidth::Bit => u64::from(self.bits::<u16>()[lane / 16] >> (lane % 16) & 1),
            LaneWidth::B2 => self.bits::<u16>()[lane].into(),
            LaneWidth::B4 => self.bits::<u32>()[lane].into(),
            LaneWidth::B8 => self.bits::<u64>()[lane],
        }
    }

    /// Sets the value of a lane, truncated to its width.
    pub fn set(&mut self, lane: usize, value: u64) {
        match self.width {
            LaneWidth::Bit => {
                let word = &mut self.bits_mut::<u16>()[lane / 16];
                let bit = 1 << (lane % 16);
                *word = if value & 1 != 0 { *word | bit } else { *word & !bit };
            }
            LaneWidth::B2 => self.bits_mut::<u16>()[lane] = value as u16,
            LaneWidth::B4 => self.bits_mut::<u32>()[lane] = value as u32,
            LaneWidth::B8 => self.bits_mut::<u64>()[lane] = value,
        }
    }

    fn length<T>(&self) -> usize {
        let element = match self.width {
            LaneWidth::Bit | LaneWidth::B2 => 2,
            LaneWidth::B4 => 4,
            LaneWidth::B8 => 8,
        };
        assert_eq!(size_of::<T>(), element, "lanes are not as wide as that");
        self.width.bytes(self.lanes) / element
    }
}

/// The types of an instruction's operands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Type of the destination.
    pub destination: Type,
    /// Whether there may be a second destination, a predicate: q, or the carry-out.
    pub second: bool,
    /// Types of the sources, element by element for vectors; the carry-in comes last.
    pub sources: Vec<Type>,
}

impl Signature {
    /// The signature of a pure form; `None` if its operands have no types, or if there are more than handlers
    /// support.
    pub fn new(form: &'static Form, picks: &Picks) -> Option<Signature> {
        let mut operands = form.operands_with(picks);
        let first = operands.next()?;
        let mut sources = Vec::new();
        for spec in operands {
            sources.extend(std::iter::repeat_n(spec.resolve(picks)?, spec.count(form, picks).0));
        }
        sources.extend(form.carry.reads.then_some(Type::Pred));
        let second = first.second != Second::None || form.carry.writes;
        let signature = Signature { destination: first.resolve(picks)?, second, sources };
        (signature.sources.len() <= LaneArgs::SOURCES).then_some(signature)
    }
}

/// The vector handler of one instruction on one path.
#[derive(Clone, Debug)]
pub struct Handler {
    function: LaneFn,
    destination: LaneWidth,
    /// Whether q may be written, too.
    second: bool,
    sources: Vec<LaneWidth>,
}

impl LaneWidth {
    /// The width of a type's lanes, if handlers support it.
    pub fn of(ty: Type) -> Option<LaneWidth> {
        match ty.bits() {
            1 => Some(LaneWidth::Bit),
            2..=16 => Some(LaneWidth::B2),
            32 => Some(LaneWidth::B4),
            64 => Some(LaneWidth::B8),
            _ => None,
        }
    }
}

impl Handler {
    /// The handler of a form, if there is one and this machine has the path.
    pub fn new(form: &'static Form, picks: &Picks, path: HostPath) -> Option<Handler> {
        let function = path.is_available().then(|| lookup(form, picks, path))??;
        let signature = Signature::new(form, picks)?;
        let sources: Option<Vec<LaneWidth>> = signature.sources.iter().map(|&ty| LaneWidth::of(ty)).collect();
        let destination = LaneWidth::of(signature.destination)?;
        Some(Handler { function, destination, second: signature.second, sources: sources? })
    }

    /// Width of the destination.
    pub fn destination(&self) -> LaneWidth {
        self.destination
    }

    /// Widths of the sources.
    pub fn sources(&self) -> &[LaneWidth] {
        &self.sources
    }

    /// Whether there may be a second destination, a predicate.
    pub fn has_second(&self) -> bool {
        self.second
    }

    /// Computes all lanes of the destination, and of q if there is one.
    ///
    /// # Panics
    /// If an operand is missing, or if its width or number of lanes does not match the form.
    pub fn run(&self, destination: &mut Operand, second: Option<&mut Operand>, sources: &[&Operand]) {
        let lanes = destination.lanes;
        assert!(destination.width == self.destination, "the destination has another width");
        assert_eq!(sources.len(), self.sources.len(), "number of sources");
        for (source, &width) in sources.iter().zip(&self.sources) {
            assert!(source.width == width && source.lanes == lanes, "a source has another shape");
        }
        let second = second.map_or(std::ptr::null_mut(), |second| {
            assert!(self.second, "there is no second destination");
            assert!(second.width == LaneWidth::Bit && second.lanes == lanes, "q has another shape");
            second.lines.as_mut_ptr().cast()
        });
        let mut args = LaneArgs {
            dst: [destination.lines.as_mut_ptr().cast(), second],
            src: [std::ptr::null(); LaneArgs::SOURCES],
            step: [0; LaneArgs::SOURCES],
            lanes,
        };
        for (i, source) in sources.iter().enumerate() {
            args.src[i] = source.lines.as_ptr().cast();
            args.step[i] = source.width.bytes(16);
        }
        if lanes > 0 {
            // SAFETY: the operands have the form's widths and `lanes` lanes, aligned to 64 bytes; destinations are
            // borrowed mutably and so do not overlap; the machine has the path.
            unsafe { self.function.call(&args) }
        }
    }
}
