//! Registers, parameters and memory, as an editor shows them.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ptxvm::debug::{RegId, Space, SpecialRegister, Stop};
use serde_json::{Value, json};

use crate::session::Session;
use crate::show;
use crate::value::{self, Lane, WARP};

/// What a number that the editor was given stands for.
#[derive(Clone, Debug)]
pub enum Handle {
    /// A call of a lane, counted outwards from the innermost.
    Frame { lane: Lane, depth: usize },
    /// Its registers.
    Registers { lane: Lane, depth: usize },
    /// The registers of all lanes of its warp.
    Grid { lane: Lane, depth: usize },
    /// One of them.
    Row { lane: Lane, depth: usize, register: RegId },
    /// The special registers of a lane.
    Special { lane: Lane },
    /// The parameters of its function.
    Parameters { lane: Lane, depth: usize },
}

/// The lanes of a warp that are in a function: their threads.
fn threads(stop: &Stop<'_, '_>, lane: Lane, depth: usize) -> Vec<usize> {
    let function = |thread| Some(stop.call(lane.block, thread, depth)?.function().name.as_str());
    let own = function(lane.thread);
    let first = lane.warp() * WARP;
    (first..(first + WARP).min(stop.threads()))
        .filter(|&thread| own.is_some() && function(thread) == own)
        .collect()
}

fn variable(name: &str, value: &str, ty: &str) -> Value {
    json!({"name": name, "value": value, "type": ty, "variablesReference": 0, "evaluateName": name})
}

/// What a handle contains. `add` gives a handle its number.
pub fn of(
    session: &Session,
    stop: &mut Stop<'_, '_>,
    handle: &Handle,
    add: &mut dyn FnMut(Handle) -> u64,
) -> Vec<Value> {
    match *handle {
        Handle::Frame { .. } => Vec::new(),
        Handle::Registers { lane, depth } => {
            let registers = show::registers(session, stop, lane, depth);
            let shown = registers.iter().map(|(name, value)| match value {
                value::Value::Bits(ty, bits) => {
                    let mut shown = variable(name, &value.to_string(), &ty.to_string());
                    if ty.bits() == 64 {
                        shown["memoryReference"] = json!(format!("{bits:#x}"));
                    }
                    shown
                }
                other => variable(name, &other.to_string(), ""),
            });
            shown.collect()
        }
        Handle::Grid { lane, depth } => {
            let threads = threads(stop, lane, depth);
            let all: Vec<Vec<_>> = threads
                .iter()
                .map(|&thread| show::registers(session, stop, Lane { thread, ..lane }, depth))
                .collect();
            let Some(own) = all.first() else { return Vec::new() };
            let rows = own.iter().enumerate().map(|(index, (name, first))| {
                let is_uniform = all.iter().all(|registers| registers[index].1 == *first);
                let value = if is_uniform {
                    format!("{first} in all lanes")
                } else {
                    let some = all.iter().take(4).map(|registers| registers[index].1.short());
                    format!("{}, ...", some.collect::<Vec<_>>().join(", "))
                };
                let register = RegId(index as u32);
                let number = add(Handle::Row { lane, depth, register });
                json!({"name": name, "value": value, "variablesReference": number, "indexedVariables": threads.len()})
            });
            rows.collect()
        }
        Handle::Row { lane, depth, register } => {
            let rows = threads(stop, lane, depth).into_iter().filter_map(|thread| {
                let call = stop.call(lane.block, thread, depth)?;
                let ty = session.program.registers(call.function(), call.body()).ty(register);
                let value = value::Value::Bits(ty, call.register(register)).to_string();
                Some(json!({"name": format!("lane {}", thread % WARP), "value": value, "variablesReference": 0}))
            });
            rows.collect()
        }
        Handle::Special { lane } => {
            let shown = ["tid", "ntid", "ctaid", "nctaid"]
                .iter()
                .flat_map(|name| [0, 1, 2].map(|axis| SpecialRegister::element(&format!("%{name}"), axis)));
            let others = ["%laneid", "%warpid", "%clock64"].map(SpecialRegister::from_name);
            let shown = shown.chain(others).flatten().filter_map(|special| {
                let value = stop.special(lane.block, lane.thread, special)?;
                let value = value::Value::Bits(special.ty(), value.into()).to_string();
                Some(variable(special.name(), &value, &special.ty().to_string()))
            });
            shown.collect()
        }
        Handle::Parameters { lane, depth } => parameters(stop, lane, depth),
    }
}

fn parameters(stop: &mut Stop<'_, '_>, lane: Lane, depth: usize) -> Vec<Value> {
    let Some(call) = stop.call(lane.block, lane.thread, depth) else { return Vec::new() };
    let function = call.function();
    let params: Vec<_> = function.params.iter().enumerate().collect();
    let mut all = Vec::new();
    for (index, param) in params {
        let name = ptxvm::short_param(&function.name, &param.name);
        let symbol = ptxvm::debug::Symbol::Param(index as u32);
        let value = match param.register {
            Some(register) => {
                let call = stop.call(lane.block, lane.thread, depth);
                call.map_or(Ok(0), |call| Ok(call.register(register)))
            }
            None => match stop.address(lane.block, lane.thread, depth, symbol) {
                Some((space, at)) => {
                    let bytes = param.bytes.min(16) as usize;
                    let data = stop.read(lane.block, lane.thread, space, at, bytes);
                    data.map(|data| data.iter().rev().fold(0, |bits, byte| bits << 8 | u128::from(*byte)))
                }
                None => continue,
            },
        };
        let shown = match &value {
            Ok(bits) => value::Value::Bits(param.ty, *bits).to_string(),
            Err(error) => error.clone(),
        };
        let mut row = variable(name, &shown, &ptxvm::describe(param));
        if let Ok(bits) = value
            && param.bytes == 8
        {
            row["memoryReference"] = json!(format!("{bits:#x}"));
        }
        all.push(row);
    }
    all
}

/// `readMemory`: bytes at a generic address.
///
/// # Errors
/// If the request names no address.
pub fn memory(session: &Session, stop: &mut Stop<'_, '_>, arguments: &Value) -> Result<Value, String> {
    let reference = arguments["memoryReference"].as_str().unwrap_or_default();
    let start = u64::from_str_radix(reference.trim_start_matches("0x"), 16)
        .map_err(|_| format!("`{reference}` is no address"))?;
    let start = start.wrapping_add_signed(arguments["offset"].as_i64().unwrap_or(0));
    let count = arguments["count"].as_u64().unwrap_or(0).min(1 << 20) as usize;
    let Lane { block, thread } = session.focus;
    // As many bytes as there are: `there` can be read, `beyond` cannot.
    let mut read = |bytes| stop.read(block, thread, Space::Generic, start, bytes).ok();
    let mut data = read(count);
    let (mut there, mut beyond) = (0, count);
    while data.is_none() && there + 1 < beyond {
        let middle = there.midpoint(beyond);
        *(if read(middle).is_some() { &mut there } else { &mut beyond }) = middle;
    }
    let data = data.take().or_else(|| read(there)).unwrap_or_default();
    Ok(json!({
        "address": format!("{start:#x}"),
        "data": STANDARD.encode(&data),
        "unreadableBytes": count - data.len(),
    }))
}
