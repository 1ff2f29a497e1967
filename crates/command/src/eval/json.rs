//! `ptxvm eval --format json`: operands, results and reasons for programs.

use isa::{Type, Version};
use serde::Serialize;

use super::bits::{hex, lanes, value};
use super::why::why;
use crate::alone::{Alone, Source};

/// One evaluation.
#[derive(Serialize)]
pub struct Evaluation<'a> {
    instruction: &'a str,
    version: String,
    target: String,
    /// Section of the manual.
    section: &'static str,
    operands: Vec<Value<'a>>,
    results: Vec<Value<'a>>,
    /// Why the results are what they are.
    why: Vec<String>,
}

/// An operand or result.
#[derive(Serialize)]
struct Value<'a> {
    name: &'a str,
    #[serde(rename = "type")]
    ty: String,
    /// As wide as the type; 0 or 1 for a predicate.
    bits: String,
    /// Their value; lane by lane for a packed value, the lowest first.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lanes: Vec<Lane>,
}

/// An element of a packed value.
#[derive(Serialize)]
struct Lane {
    bits: String,
    value: String,
}

impl Value<'_> {
    fn new(name: &str, ty: Type, bits: u64) -> Value<'_> {
        let packed = ty.lanes() > 1 && ty.element() != ty;
        let lane = |bits| Lane { bits: hex(ty.element(), bits), value: value(ty.element(), bits) };
        Value {
            name,
            ty: ty.to_string(),
            bits: hex(ty, bits),
            value: (!packed).then(|| value(ty, bits)),
            lanes: if packed { lanes(ty, bits).map(lane).collect() } else { Vec::new() },
        }
    }
}

impl<'a> Evaluation<'a> {
    /// The instruction on these values.
    pub fn new(alone: &'a Alone, instruction: &'a str, values: &[u64]) -> Evaluation<'a> {
        let operand = |(source, &bits): (&'a Source, &u64)| Value::new(&source.name, source.ty, bits);
        let results = alone.results.iter().zip(alone.compute(values));
        Evaluation {
            instruction,
            version: Version::MAX.to_string(),
            target: alone.target.to_string(),
            section: alone.form.section,
            operands: alone.sources.iter().zip(values).map(operand).collect(),
            results: results.map(|((name, ty), bits)| Value::new(name, *ty, bits)).collect(),
            why: why(alone, instruction, values),
        }
    }
}

/// A line of a batch that could not be evaluated.
#[derive(Serialize)]
pub struct Refusal<'a> {
    /// The line as it was.
    pub line: &'a str,
    /// What is wrong with it.
    pub error: &'a str,
}
