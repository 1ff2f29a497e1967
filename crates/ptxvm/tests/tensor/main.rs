//! Copies of boxes of tensors on both engines: random maps against a model, clusters, maps that kernels make, what faults, and what
//! an H100 answered.

mod faults;
#[cfg(not(target_family = "wasm"))]
mod hardware;
mod model;
mod random;
mod replace;

use ptxvm::{Arg, Array, Device, Engine, Error, Module, tensor_map::TensorMap};

use model::{SHARED, UNTOUCHED};

const ENGINES: [Engine; 2] = [Engine::Interpreter, Engine::Reference];

/// What a kernel does with the box.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    Load,
    Store,
    Reduce(&'static str),
}

/// What of the tensor is copied.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pattern {
    Tile,
    Columns,
    /// Columns along the width, of which the offsets are the halo and the offset; 128 of them, or what the map says.
    Wide {
        of_128: bool,
    },
    /// Four rows of a matrix.
    Rows,
}

const WIDE: [Pattern; 2] = [Pattern::Wide { of_128: false }, Pattern::Wide { of_128: true }];

/// A kernel of one warp: its first thread copies the box between the tensor and `tile`, which comes from `out` and goes there.
fn kernel(direction: Direction, rank: usize, pattern: Pattern) -> Module {
    let count = if pattern == Pattern::Rows { 5 } else { rank };
    let coordinates = ["%c0", "%c1", "%c2", "%c3", "%c4"][..count].join(", ");
    let mode = match (pattern, direction) {
        (Pattern::Tile, _) => ".tile",
        (Pattern::Columns, Direction::Load) => ".im2col",
        (Pattern::Columns, _) => ".im2col_no_offs",
        (Pattern::Wide { of_128: false }, _) => ".im2col::w",
        (Pattern::Wide { of_128: true }, _) => ".im2col::w::128",
        (Pattern::Rows, Direction::Load) => ".tile::gather4",
        (Pattern::Rows, _) => ".tile::scatter4",
    };
    let copy = match direction {
        Direction::Load => {
            let offsets = match pattern {
                Pattern::Columns => format!(", {{{}}}", ["%o0", "%o1", "%o2"][..rank - 2].join(", ")),
                Pattern::Wide { .. } => ", {%o0, %o1}".to_owned(),
                _ => String::new(),
            };
            format!(
                "cp.async.bulk.tensor.{rank}d.shared::cluster.global{mode}.mbarrier::complete_tx::bytes \
                 [%at], [%map, {{{coordinates}}}], [bar]{offsets};"
            )
        }
        Direction::Store => format!(
            "cp.async.bulk.tensor.{rank}d.global.shared::cta{mode}.bulk_group [%map, {{{coordinates}}}], [%at];"
        ),
        Direction::Reduce(operation) => format!(
            "cp.reduce.async.bulk.tensor.{rank}d.global.shared::cta.{operation}{mode}.bulk_group \
             [%map, {{{coordinates}}}], [%at];"
        ),
    };
    let after = match direction {
        Direction::Load => {
            "mbarrier.arrive.expect_tx.shared.b64 _, [bar], %bytes;\n\
             wait: mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;\n@!%p bra wait;\n"
        }
        _ => "cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\n",
    };
    let text = format!(
        ".version 8.6\n.target sm_100a\n.address_size 64\n\
         .visible .entry test(.param .align 64 .b8 map[128], .param .u64 place, .param .u64 out, .param .u32 at, .param .u32 bytes)\n{{\n\
         .shared .align 1024 .b8 tile[{SHARED}];\n.shared .align 8 .b64 bar;\n\
         .reg .b64 %map, %place, %out, %to;\n.reg .b32 %c<5>, %v<4>, %at, %bytes, %i, %s, %tile;\n.reg .b16 %o<3>;\n.reg .pred %p;\n\
         mov.b64 %map, map;\ncvta.param.u64 %map, %map;\n\
         ld.param.u64 %place, [place];\nld.param.u64 %out, [out];\nld.param.u32 %at, [at];\nld.param.u32 %bytes, [bytes];\n\
         ld.global.b32 %c0, [%place];\nld.global.b32 %c1, [%place+4];\nld.global.b32 %c2, [%place+8];\n\
         ld.global.b32 %c3, [%place+12];\nld.global.b32 %c4, [%place+16];\n\
         ld.global.b16 %o0, [%place+20];\nld.global.b16 %o1, [%place+24];\nld.global.b16 %o2, [%place+28];\n\
         mov.u32 %tile, tile;\nadd.u32 %at, %at, %tile;\n\
         mov.u32 %i, %tid.x;\nshl.b32 %i, %i, 4;\n\
         fill: cvt.u64.u32 %to, %i;\nadd.u64 %to, %to, %out;\nld.global.v4.b32 {{%v0, %v1, %v2, %v3}}, [%to];\n\
         add.u32 %s, %tile, %i;\nst.shared.v4.b32 [%s], {{%v0, %v1, %v2, %v3}};\n\
         add.u32 %i, %i, 512;\nsetp.lt.u32 %p, %i, {SHARED};\n@%p bra fill;\n\
         mov.u32 %i, %tid.x;\nsetp.ne.u32 %p, %i, 0;\n@!%p mbarrier.init.shared.b64 [bar], 1;\n\
         fence.proxy.async;\nbar.sync 0;\n@%p bra done;\n{copy}\n{after}\
         done: bar.sync 0;\nmov.u32 %i, %tid.x;\nshl.b32 %i, %i, 4;\n\
         dump: add.u32 %s, %tile, %i;\nld.shared.v4.b32 {{%v0, %v1, %v2, %v3}}, [%s];\n\
         cvt.u64.u32 %to, %i;\nadd.u64 %to, %to, %out;\nst.global.v4.b32 [%to], {{%v0, %v1, %v2, %v3}};\n\
         add.u32 %i, %i, 512;\nsetp.lt.u32 %p, %i, {SHARED};\n@%p bra dump;\nret;\n}}\n"
    );
    Module::from_ptx(&text).unwrap_or_else(|error| panic!("{text}\n{error}"))
}

/// What a copy is about.
#[derive(Clone, Debug)]
struct Copy {
    /// Its address counts from the beginning of the tensor's memory.
    map: TensorMap,
    at: [i32; 5],
    offsets: [u16; 3],
    /// Where the box begins in shared memory.
    place: u32,
    /// Bytes that the mbarrier object waits for.
    bytes: u32,
}

/// A copy between these bytes of global and of shared memory, which are then what it left.
fn launch(
    device: &Device,
    module: &Module,
    engine: Engine,
    copy: &Copy,
    memory: &mut Vec<u8>,
    shared: &mut Vec<u8>,
) -> Result<(), Error> {
    let tensor: Array<u8> = device.array(memory)?;
    let tile = device.array(shared)?;
    let mut words: Vec<u32> = copy.at.map(|at| at as u32).to_vec();
    words.extend(copy.offsets.map(u32::from));
    let words = device.array(&words)?;
    let map = TensorMap { address: tensor.address() + copy.map.address, ..copy.map };
    let loaded = device.load(module)?;
    let launch = loaded.launch("test").block(32u32).engine(engine);
    let launch = launch.arg(Arg::bytes(map.to_bytes())).arg(&words).arg(&tile);
    launch.arg(copy.place).arg(copy.bytes).run()?;
    (*memory, *shared) = (tensor.read()?, tile.read()?);
    Ok(())
}

/// Shared memory that nobody has written.
fn untouched() -> Vec<u8> {
    vec![UNTOUCHED; SHARED]
}
