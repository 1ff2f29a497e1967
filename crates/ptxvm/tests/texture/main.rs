//! Textures and surfaces on both engines: what is fetched against an exact model (`model.py`, which made `cases.txt`), surfaces
//! against plain memory, handles and bindings against what they promise, and every form on random texels.

mod fetch;
mod objects;
mod random;
mod surfaces;

use ptxvm::{Channel, Device, Engine, Error, FaultKind, Geometry, Image, Module, TexelFormat};

const ENGINES: [Engine; 2] = [Engine::Interpreter, Engine::Reference];

fn geometry(name: &str) -> Geometry {
    match name {
        "1d" => Geometry::Line,
        "2d" => Geometry::Plane,
        "3d" => Geometry::Volume,
        "a1d" => Geometry::LineArray,
        "a2d" => Geometry::PlaneArray,
        "cube" => Geometry::Cube,
        "acube" => Geometry::CubeArray,
        "2dms" => Geometry::Multisample,
        "a2dms" => Geometry::MultisampleArray,
        _ => panic!("{name}"),
    }
}

const TARGET: &str = ".target sm_80";

/// A kernel whose threads each read so many words, execute the instructions, and write four words.
fn kernel(words: usize, code: &str, target: &str) -> Module {
    // Samplers of their own are for modules that say so.
    let sampler = if target.contains("texmode_independent") { ".global .samplerref samp0;\n" } else { "" };
    let loads: String = (0..words).map(|i| format!("ld.global.u32 %c{i}, [%in+{}];\n", 4 * i)).collect();
    Module::from_ptx(&format!(
        ".version 8.1\n{target}\n.address_size 64\n\
         .global .texref tex0;\n.global .surfref surf0;\n{sampler}\
         .visible .entry test(.param .u64 h, .param .u64 in, .param .u64 out, .param .u64 s)\n{{\n\
         .reg .b64 %h, %s, %in, %out;\n.reg .b32 %c<16>, %d<4>, %i;\n.reg .b16 %q<4>;\n.reg .f32 %f<4>;\n.reg .b64 %w<4>;\n.reg .pred %p<4>;\n\
         ld.param.u64 %h, [h];\nld.param.u64 %s, [s];\nld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n\
         mov.u32 %i, %tid.x;\nmad.wide.u32 %in, %i, {}, %in;\nmad.wide.u32 %out, %i, 16, %out;\n{loads}{code}\n\
         st.global.v4.u32 [%out], {{%d0, %d1, %d2, %d3}};\nret;\n}}\n",
        4 * words
    ))
    .unwrap_or_else(|error| panic!("{code}\n{error}"))
}

/// What `out` holds after a launch of [`kernel`] with a thread for each row.
fn launch(
    device: &Device,
    module: &Module,
    engine: Engine,
    handles: [u64; 2],
    rows: &[Vec<u32>],
) -> Result<Vec<[u32; 4]>, Error> {
    let input = device.array(&rows.concat())?;
    let output = device.array(&vec![0xdead_beefu32; 4 * rows.len()])?;
    let loaded = device.load(module)?;
    let launch = loaded.launch("test").block(rows.len() as u32).engine(engine);
    launch.arg(handles[0]).arg(&input).arg(&output).arg(handles[1]).run()?;
    Ok(output.read()?.as_chunks().0.to_vec())
}

fn kind(result: Result<Vec<[u32; 4]>, Error>) -> FaultKind {
    match result {
        Err(Error::Fault { fault, .. }) => fault.kind,
        other => panic!("{other:?}"),
    }
}

fn format(channel: Channel, channels: u8) -> TexelFormat {
    TexelFormat::new(channel, channels).unwrap()
}

/// All bytes of the first level.
fn contents(image: &Image) -> Vec<u8> {
    let region = image.whole(0).unwrap();
    let [bytes, rows, slices] = region.size;
    let mut data = vec![0; (bytes * rows * slices) as usize];
    image.read_region(&region, &mut data, [bytes, bytes * rows]).unwrap();
    data
}
