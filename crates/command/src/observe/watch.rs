//! `ptxvm run --watch`: who writes some elements. `--expect` tells in the same way who wrote a wrong one.

use std::ops::Range;

use isa::Type;
use ptxvm::observed::value;
use ptxvm::observed::watch::Element;

use crate::arguments::{Arguments, Part, Place};
use crate::array::{DType, show_shape};
use crate::numbers::parse_size;
use crate::report::Failure;
use crate::session::Session;

/// Elements that one option may watch.
const MOST_ELEMENTS: u64 = 256;

/// `2[17]`, `2[10:20]`, `2[3,5]`, `0x1000000044`, `0x1000000044:8`
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Watched {
    /// Elements of an argument's array.
    Elements(Part),
    /// An element by its coordinates.
    Element(Place, Vec<u64>),
    /// Bytes at an address.
    Bytes(Range<u64>),
}

impl std::str::FromStr for Watched {
    type Err = String;

    fn from_str(text: &str) -> Result<Watched, String> {
        let Some(address) = text.strip_prefix("0x") else {
            if let Some((place, index)) = text.strip_suffix(']').and_then(|text| text.split_once('['))
                && index.contains(',')
            {
                let index: Result<_, _> = index.split(',').map(|part| part.trim().parse()).collect();
                let index = index.map_err(|_| format!("`{text}` is no element: 2[3,5]"))?;
                return Ok(Watched::Element(place.parse()?, index));
            }
            let part: Part = text.parse()?;
            if part.elements.is_none() {
                return Err(format!("write which elements: {text}[17], {text}[10:20]"));
            }
            return Ok(Watched::Elements(part));
        };
        let (address, bytes) = address.split_once(':').unwrap_or((address, "4"));
        let start =
            u64::from_str_radix(address, 16).map_err(|_| format!("`{text}` is no address: 0x1000000044"))?;
        let bytes = parse_size(bytes).ok().filter(|bytes| (1..=16).contains(bytes));
        let end = bytes.and_then(|bytes| start.checked_add(bytes));
        end.map(|end| Watched::Bytes(start..end))
            .ok_or_else(|| format!("`{text}`: 1 to 16 bytes can be watched at an address"))
    }
}

impl Watched {
    /// The watched elements, with their types.
    ///
    /// # Errors
    /// When there is no such array or element, or there are too many.
    pub fn elements(
        &self,
        values: &Arguments,
        session: &Session,
    ) -> Result<Vec<(Element, Option<DType>)>, Failure> {
        let coordinates;
        let part = match self {
            Watched::Elements(part) => part,
            Watched::Element(place, index) => {
                coordinates = Part { place: *place, elements: Some(flat(values, *place, index)?) };
                &coordinates
            }
            Watched::Bytes(range) => {
                let name = format!("{:#x}", range.start);
                return Ok(vec![(Element { name, range: range.clone(), ty: None }, None)]);
            }
        };
        let fail = |message: String| Failure::usage(format!("--watch {part}: {message}"));
        let Some((dtype, addresses)) = session.addresses(values, part.place) else {
            return Err(fail(format!("argument {} is no array", part.place)));
        };
        let count = (addresses.end - addresses.start) / dtype.bytes() as u64;
        let wanted = part.elements.clone().unwrap_or(0..count);
        let end = if wanted.end == u64::MAX { count } else { wanted.end };
        if wanted.start >= end || end > count {
            return Err(fail(format!("argument {} has {count} elements", part.place)));
        }
        if end - wanted.start > MOST_ELEMENTS {
            return Err(fail(format!("{MOST_ELEMENTS} elements can be watched")));
        }
        let element = |index: u64| {
            let bytes = dtype.bytes() as u64;
            let start = addresses.start + index * bytes;
            let name = format!("{}[{index}]", part.place);
            let element = Element { name, range: start..start + bytes, ty: Some(dtype.name().to_string()) };
            (element, Some(dtype))
        };
        Ok((wanted.start..end).map(element).collect())
    }
}

/// The index in C order of an element by its coordinates.
fn flat(values: &Arguments, place: Place, index: &[u64]) -> Result<Range<u64>, Failure> {
    let value = values.param(place.index).and_then(|param| values.values[param].at(place.field));
    let shape = value.and_then(|value| value.array()).map_or(&[][..], |(_, shape)| shape);
    if shape.len() != index.len() || index.iter().zip(shape).any(|(at, extent)| at >= extent) {
        let index = index.iter().map(u64::to_string).collect::<Vec<_>>().join(",");
        return Err(Failure::usage(format!(
            "--watch {place}[{index}]: the shape is [{}]",
            show_shape(shape)
        )));
    }
    let flat = index.iter().zip(shape).fold(0, |flat, (at, extent)| flat * extent + at);
    Ok(flat..flat + 1)
}

/// The bits of an element.
pub fn show(bits: u128, dtype: Option<DType>) -> String {
    let bytes = bits.to_le_bytes();
    match dtype {
        Some(dtype) => format!("{} ({})", dtype.show(&bytes), dtype.show_bits(&bytes)),
        None => value::show(Type::B64, bits),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_and_addresses_are_read() {
        assert_eq!("0x10:8".parse(), Ok(Watched::Bytes(16..24)));
        assert_eq!("0x10".parse(), Ok(Watched::Bytes(16..20)));
        assert!(matches!("2[17]".parse(), Ok(Watched::Elements(_))));
        assert!(matches!("2.1[3:5]".parse(), Ok(Watched::Elements(_))));
        let place = Place { index: 2, field: None };
        assert_eq!("2[3,5]".parse(), Ok(Watched::Element(place, vec![3, 5])));
        for wrong in ["", "2", "0x", "0xg", "0x10:0", "0x10:17", "0xffffffffffffffff", "2[a]", "2[1,b]"] {
            assert!(wrong.parse::<Watched>().is_err(), "{wrong}");
        }
    }
}
