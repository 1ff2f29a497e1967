//! The lines of the record: `name=value` for what was asked and for what came of it.

use std::collections::HashMap;

/// What a case asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Op {
    Load,
    Store,
    Reduce(String),
    Prefetch,
    Multicast,
    Replace,
    Calibrate,
    Encode,
}

/// What a copy left: the bytes up to the last one that it wrote. A load has one for each block.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer {
    /// Whether the mbarrier object's phase ended, of a load.
    pub done: Option<u32>,
    pub length: usize,
    /// FNV-1a.
    pub digest: u64,
}

pub struct Case {
    fields: HashMap<String, String>,
    pub op: Op,
    pub rank: usize,
    pub address: u64,
    pub pattern: u32,
    pub place: u32,
    pub mask: u32,
    /// Bytes that the mbarrier object expects.
    pub expected: u32,
    /// The instruction has two coordinates, and the map more.
    pub is_fewer: bool,
    /// The driver took the map.
    pub is_encoded: bool,
    pub status: String,
    pub answers: Vec<Answer>,
}

impl Case {
    pub fn parse(line: &str) -> Case {
        let pairs = || line.split(' ').map(|pair| pair.split_once('=').unwrap_or_else(|| panic!("{line}")));
        let fields: HashMap<String, String> = pairs().map(|(k, v)| (k.to_owned(), v.to_owned())).collect();
        let text = |name: &str| fields.get(name).map(String::as_str).unwrap_or_default();
        let number = |name: &str| text(name).parse::<u64>().unwrap_or_default();
        let all = |name: &str| {
            pairs().filter(|pair| pair.0 == name).map(|pair| pair.1.to_owned()).collect::<Vec<_>>()
        };
        let done = all("done");
        let digests = all("length").into_iter().zip(all("fnv")).enumerate();
        let answers = digests.map(|(i, (length, digest))| Answer {
            done: done.get(i).map(|done| done.parse().unwrap()),
            length: length.parse().unwrap(),
            digest: u64::from_str_radix(&digest, 16).unwrap(),
        });
        assert!(all("early").iter().all(|early| early == "0"), "{line}");
        Case {
            op: match text("op") {
                "load" => Op::Load,
                "store" => Op::Store,
                "reduce" => Op::Reduce(text("reduction").to_owned()),
                "prefetch" => Op::Prefetch,
                "multicast" => Op::Multicast,
                "replace" => Op::Replace,
                "calibrate" => Op::Calibrate,
                "encode" => Op::Encode,
                _ => panic!("{line}"),
            },
            rank: number("rank") as usize,
            address: number("address"),
            pattern: number("pattern") as u32,
            place: number("place") as u32,
            mask: number("mask") as u32,
            expected: number("expected") as u32,
            is_fewer: text("fewer") == "1",
            is_encoded: text("encoded") == "0",
            status: text("status").to_owned(),
            answers: answers.collect(),
            fields,
        }
    }

    /// What this field says; nothing if there is none.
    pub fn text(&self, name: &str) -> &str {
        self.fields.get(name).map(String::as_str).unwrap_or_default()
    }

    pub fn number(&self, name: &str) -> u64 {
        self.text(name).parse().unwrap_or_default()
    }

    pub fn numbers(&self, name: &str) -> Vec<i128> {
        let parts = self.text(name).split(',').filter(|part| !part.is_empty());
        parts.map(|part| part.parse().unwrap()).collect()
    }

    /// Those of the instruction.
    pub fn coordinates(&self) -> Vec<i128> {
        let mut all = self.numbers("coordinates");
        if self.is_fewer {
            all.truncate(2);
        }
        all
    }

    pub fn offsets(&self) -> [u32; 3] {
        let all = self.numbers("offsets");
        std::array::from_fn(|i| all.get(i).map_or(0, |&offset| offset as u32))
    }

    pub fn is_im2col(&self) -> bool {
        self.text("mode") == "im2col"
    }

    /// What differences are counted by.
    pub fn name(&self) -> String {
        let interleaved = if self.number("interleave") == 0 { "" } else { " interleaved" };
        format!("{} {}{interleaved}:", self.text("op"), self.text("mode"))
    }

    /// What the map has that no sm_90 knows, whose driver refuses it for that.
    pub fn of_newer_chips(&self) -> Option<&'static str> {
        match (self.number("elem"), self.number("swizzle")) {
            (13..16, _) => Some("types of 4 and 6 bits are those of newer chips"),
            (_, 4..7) => Some("swizzles with an atomicity are those of newer chips"),
            _ => None,
        }
    }
}
