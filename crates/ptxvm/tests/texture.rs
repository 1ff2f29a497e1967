//! Textures and surfaces on both engines: what is fetched against an exact model (`texture/model.py`, which made
//! `texture/cases.txt`), surfaces against plain memory, handles and bindings against what they promise.

use std::collections::HashMap;

use ptxvm::{
    AddressMode, Channel, Device, Engine, Error, FaultKind, Filter, Geometry, Image, ImageDescriptor, Module,
    ObjectError, Region, Sampler, TexelFormat,
};

const ENGINES: [Engine; 2] = [Engine::Interpreter, Engine::Reference];

/// `a=1 b=2`
fn fields(text: &str) -> HashMap<&str, &str> {
    text.split_whitespace().filter_map(|word| word.split_once('=')).collect()
}

fn numbers<T: std::str::FromStr>(text: &str) -> Vec<T> {
    text.split(',').map(|word| word.parse().unwrap_or_else(|_| panic!("{text}"))).collect()
}

fn words(text: &str) -> Vec<u32> {
    text.split([' ', ','])
        .filter(|word| !word.is_empty())
        .map(|word| u32::from_str_radix(word, 16).unwrap())
        .collect()
}

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

fn channel(name: &str) -> Channel {
    match name {
        "u8" => Channel::U8,
        "u16" => Channel::U16,
        "u32" => Channel::U32,
        "s8" => Channel::S8,
        "s16" => Channel::S16,
        "s32" => Channel::S32,
        "f16" => Channel::F16,
        "f32" => Channel::F32,
        _ => panic!("{name}"),
    }
}

/// The image of an `image:` line, filled as the model fills it.
fn image(device: &Device, line: &str) -> Image {
    let names: Vec<&str> = line.split_whitespace().collect();
    let of = fields(line);
    let number = |name: &str| -> u32 { of[name].parse().unwrap() };
    let channel = channel(names[1]);
    let format = TexelFormat::new(channel, number("channels") as u8).unwrap();
    let extent: Vec<u32> = numbers(of["extent"]);
    let descriptor = ImageDescriptor {
        layers: number("layers"),
        levels: number("levels"),
        samples: number("samples"),
        linear: number("linear") != 0,
        ..ImageDescriptor::new(geometry(names[0]), format, [extent[0], extent[1], extent[2]])
    };
    let image = device.image(descriptor).unwrap();
    let mut state = number("seed");
    for level in 0..descriptor.levels {
        let region = image.whole(level).unwrap();
        let [bytes, rows, slices] = region.size;
        let count = (bytes * rows * slices) as usize / channel.bytes();
        let mut data = Vec::new();
        for _ in 0..count {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let word = state ^ state >> 15;
            let word = match channel {
                Channel::F32 => word & 0x807f_ffff | (120 + (word >> 24 & 15)) << 23,
                Channel::F16 => word & 0x83ff | (10 + (word >> 11 & 7)) << 10,
                _ => word,
            };
            data.extend_from_slice(&word.to_le_bytes()[..channel.bytes()]);
        }
        image.write_region(&region, &data, [bytes, bytes * rows]).unwrap();
    }
    image
}

fn sampler(line: &str) -> Sampler {
    let of = fields(line);
    let filter = |name: &str| if of[name] == "linear" { Filter::Linear } else { Filter::Point };
    let mode = |name: &str| match name {
        "wrap" => AddressMode::Wrap,
        "mirror" => AddressMode::Mirror,
        "clamp" => AddressMode::Clamp,
        _ => AddressMode::Border,
    };
    let modes: Vec<AddressMode> = of["address"].split(',').map(mode).collect();
    Sampler {
        address: [modes[0], modes[1], modes[2]],
        filter: filter("filter"),
        mip_filter: filter("mip"),
        normalized: of["normalized"] == "1",
        normalized_float: of["float"] == "1",
        srgb: false,
        border: words(of["border"]).try_into().unwrap(),
        lod_bias: of["bias"].parse().unwrap(),
        lod_min: of["min"].parse().unwrap(),
        lod_max: of["max"].parse().unwrap(),
        seamless: of["seamless"] == "1",
    }
}

const TARGET: &str = ".target sm_80";

/// A kernel whose threads each read so many words, execute the instructions, and write four words.
fn kernel(words: usize, code: &str, target: &str) -> Module {
    let loads: String = (0..words).map(|i| format!("ld.global.u32 %c{i}, [%in+{}];\n", 4 * i)).collect();
    Module::from_ptx(&format!(
        ".version 8.1\n{target}\n.address_size 64\n\
         .global .texref tex0;\n.global .surfref surf0;\n.global .samplerref samp0;\n\
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

#[test]
fn what_is_fetched_is_what_the_model_says() {
    let text = include_str!("texture/cases.txt");
    let mut count = 0;
    for case in text.split("\n\n").filter(|case| !case.trim().is_empty()) {
        let line =
            |name: &str| case.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default().trim();
        let rows = case.lines().filter_map(|line| line.strip_prefix("row:")?.split_once('='));
        let (inputs, expected): (Vec<Vec<u32>>, Vec<Vec<u32>>) =
            rows.map(|(input, output)| (words(input), words(output))).unzip();
        let device = Device::new();
        let image = image(&device, line("image:"));
        let sampler = sampler(line("sampler:"));
        let texture = device.texture(&image, sampler).unwrap();
        let code = line("code:");
        let module = kernel(inputs[0].len(), code, TARGET);
        // With a handle of its own for the sampler: of the texture's only counts what its texels are.
        let alone = device.sampler(sampler);
        let texels = Sampler { normalized_float: sampler.normalized_float, ..Sampler::default() };
        let plain = device.texture(&image, texels).unwrap();
        let independent =
            kernel(inputs[0].len(), &code.replace("[%h,", "[%h, %s,"), ".target sm_80, texmode_independent");
        let both = [([texture.handle(), 0], &module), ([plain.handle(), alone.handle()], &independent)];
        for (engine, (handles, module)) in
            ENGINES.into_iter().flat_map(|engine| both.map(|way| (engine, way)))
        {
            let got = launch(&device, module, engine, handles, &inputs)
                .unwrap_or_else(|error| panic!("{case}\n{engine:?}: {error}"));
            for ((got, expected), input) in got.iter().zip(&expected).zip(&inputs) {
                assert_eq!(
                    &got[..expected.len()],
                    &expected[..],
                    "{}\n{}\n{}\n{code}\n{engine:?} {input:x?}: {got:x?} {expected:x?}",
                    line("case:"),
                    line("image:"),
                    line("sampler:")
                );
            }
        }
        count += 1;
    }
    assert_eq!(count, 217);
}

/// Bytes that differ from each other.
fn pattern(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|i| (i * 37 + i / 251) as u8).collect()
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

fn fill(image: &Image) {
    let region = image.whole(0).unwrap();
    let [bytes, rows, slices] = region.size;
    image.write_region(&region, &pattern(bytes * rows * slices), [bytes, bytes * rows]).unwrap();
}

/// By geometry: extents, layers, and where each of its dimensions stands among the coordinates; layers come first.
const SURFACES: [(&str, [u32; 3], u32); 5] = [
    ("1d", [6, 1, 1], 1),
    ("2d", [6, 3, 1], 1),
    ("3d", [6, 3, 2], 1),
    ("a1d", [6, 1, 1], 3),
    ("a2d", [6, 3, 1], 2),
];

/// Where an access of so many bytes begins in the rows of an image, if it is within; the nearest place otherwise.
fn place(
    extent: [u32; 3],
    layers: u32,
    is_array: bool,
    coordinates: &[i32],
    row: i64,
    size: i64,
) -> (bool, usize) {
    let (slice, rest) =
        if is_array { (i64::from(coordinates[0] as u32), &coordinates[1..]) } else { (0, coordinates) };
    let at = |i: usize| rest.get(i).map_or(0, |&c| i64::from(c));
    let (x, y, z) = (at(0), at(1), if is_array { slice } else { at(2) });
    let slices = i64::from(if is_array { layers } else { extent[2] });
    let height = i64::from(extent[1]);
    let inside = x >= 0 && x + size <= row && (0..height).contains(&y) && (0..slices).contains(&z);
    let near = |c: i64, n: i64| c.clamp(0, n - 1);
    let x = x.clamp(0, row - size) / size * size;
    (inside, ((near(z, slices) * height + near(y, height)) * row + x) as usize)
}

/// Coordinates in and around a surface, one dimension after the other out of range.
fn around(extent: [u32; 3], layers: u32, is_array: bool, dimensions: usize, size: i32) -> Vec<Vec<i32>> {
    let row = 8 * extent[0] as i32;
    let mut all = Vec::new();
    for x in [0, size, row - size, row, -size, i32::MIN, 0x7fff_fff0] {
        for other in [0, 1, -1, 100] {
            let mut coordinates = if is_array { vec![other.min(layers as i32)] } else { Vec::new() };
            coordinates.push(x);
            coordinates.extend(std::iter::repeat_n(if is_array { other / 2 } else { other }, dimensions - 1));
            all.push(coordinates);
        }
    }
    all
}

fn coordinates(count: usize) -> String {
    let names: Vec<String> =
        (0..if count == 3 { 4 } else { count }).map(|i| format!("%c{}", i.min(count - 1))).collect();
    format!("{{{}}}", names.join(", "))
}

#[test]
fn surfaces_are_read_and_written_as_bytes() {
    for ((name, extent, layers), (bytes, vector)) in SURFACES.into_iter().flat_map(|surface| {
        [(1, 1), (2, 1), (4, 1), (8, 1), (1, 4), (4, 2), (4, 4), (8, 2)].map(|size| (surface, size))
    }) {
        let is_array = name.starts_with('a');
        let device = Device::new();
        let mut descriptor = ImageDescriptor::new(geometry(name), format(Channel::U16, 4), extent);
        descriptor.layers = layers;
        let image = device.image(descriptor).unwrap();
        let surface = device.surface(&image).unwrap();
        let (row, size) = (8 * i64::from(extent[0]), i64::from(bytes * vector));
        let rows: Vec<Vec<u32>> = around(extent, layers, is_array, geometry(name).dimensions(), size as i32)
            .into_iter()
            .map(|row| row.into_iter().map(|c| c as u32).collect())
            .collect();
        let dimensions = geometry(name).coordinates();
        let register = |i: u32| match bytes {
            1 | 2 => format!("%q{i}"),
            4 => format!("%d{i}"),
            _ => format!("%w{i}"),
        };
        let list: Vec<String> = (0..vector).map(register).collect();
        let (list, vec) = match vector {
            1 => (list[0].clone(), String::new()),
            n => (format!("{{{}}}", list.join(", ")), format!(".v{n}")),
        };
        // Into %d0 to %d3, as they lie in memory.
        let unpack = match bytes {
            1 => "cvt.u32.u16 %d0, %q0; cvt.u32.u16 %d1, %q1; cvt.u32.u16 %d2, %q2; cvt.u32.u16 %d3, %q3;",
            2 => "cvt.u32.u16 %d0, %q0;",
            4 => "",
            _ => "mov.b64 {%d0, %d1}, %w0; mov.b64 {%d2, %d3}, %w1;",
        };
        for mode in ["clamp", "zero", "trap"] {
            let vector_of = coordinates(dimensions);
            let code =
                format!("suld.b.{name}{vec}.b{}.{mode} {list}, [%h, {vector_of}];\n{unpack}", 8 * bytes);
            let module = kernel(dimensions, &code, TARGET);
            for engine in ENGINES {
                fill(&image);
                let data = contents(&image);
                for (index, coordinates) in rows.iter().enumerate() {
                    let signed: Vec<i32> = coordinates.iter().map(|&c| c as i32).collect();
                    let (inside, start) = place(extent, layers, is_array, &signed, row, size);
                    if mode == "trap" || index == 0 {
                        let one = std::slice::from_ref(coordinates);
                        let result = launch(&device, &module, engine, [surface.handle(), 0], one);
                        assert_eq!(result.is_ok(), inside || mode != "trap", "{code} {signed:?}");
                        if !inside && mode == "trap" {
                            assert_eq!(kind(result), FaultKind::OutOfBounds);
                        }
                    }
                    let _ = start;
                }
                let inside_rows: Vec<Vec<u32>> = rows
                    .iter()
                    .filter(|row_| {
                        let signed: Vec<i32> = row_.iter().map(|&c| c as i32).collect();
                        mode != "trap" || place(extent, layers, is_array, &signed, row, size).0
                    })
                    .cloned()
                    .collect();
                let got = launch(&device, &module, engine, [surface.handle(), 0], &inside_rows).unwrap();
                for (got, coordinates) in got.iter().zip(&inside_rows) {
                    let signed: Vec<i32> = coordinates.iter().map(|&c| c as i32).collect();
                    let (inside, start) = place(extent, layers, is_array, &signed, row, size);
                    let mut expected = vec![0; size as usize];
                    if inside || mode == "clamp" {
                        expected.copy_from_slice(&data[start..start + size as usize]);
                    }
                    let got: Vec<u8> = match bytes {
                        1 | 2 => got
                            .iter()
                            .flat_map(|word| word.to_le_bytes()[..bytes as usize].to_vec())
                            .collect(),
                        _ => got.iter().flat_map(|word| word.to_le_bytes()).collect(),
                    };
                    assert_eq!(got[..size as usize], expected, "{code} {signed:?} {engine:?}");
                }
                // Each thread writes what it has read of another place, one after the other.
                let unused = if bytes == 1 {
                    "mov.b16 %q0, 0x12; mov.b16 %q1, 0x134; mov.b16 %q2, 0x156; mov.b16 %q3, 0x78;"
                } else {
                    "mov.b16 %q0, 0x1234; mov.u32 %d0, 0x11223344; mov.u32 %d1, 0x55667788; mov.u32 %d2, 0x99aabbcc; \
                     mov.u32 %d3, 0xddeeff01; mov.b64 %w0, {%d0, %d1}; mov.b64 %w1, {%d2, %d3};"
                };
                let code = format!(
                    "{unused} sust.b.{name}{vec}.b{}.{mode} [%h, {vector_of}], {list}; mov.u32 %d0, 0; mov.u32 %d1, 0; \
                     mov.u32 %d2, 0; mov.u32 %d3, 0;",
                    8 * bytes
                );
                let store = kernel(dimensions, &code, TARGET);
                launch(&device, &store, engine, [surface.handle(), 0], &inside_rows).unwrap();
                let written: Vec<u8> = match bytes {
                    1 => vec![0x12, 0x34, 0x56, 0x78],
                    2 => vec![0x34, 0x12],
                    _ => [0x1122_3344u32, 0x5566_7788, 0x99aa_bbcc, 0xddee_ff01]
                        .iter()
                        .flat_map(|w| w.to_le_bytes())
                        .collect(),
                };
                let mut expected = data.clone();
                for coordinates in &inside_rows {
                    let signed: Vec<i32> = coordinates.iter().map(|&c| c as i32).collect();
                    let (inside, start) = place(extent, layers, is_array, &signed, row, size);
                    if inside || mode == "clamp" {
                        expected[start..start + size as usize].copy_from_slice(&written[..size as usize]);
                    }
                }
                assert_eq!(contents(&image), expected, "{code} {engine:?}");
            }
        }
    }
}

#[test]
fn formatted_stores_and_reductions_go_by_the_format() {
    let device = Device::new();
    let store = kernel(
        5,
        "sust.p.2d.v4.b32.clamp [%h, {%c0, 1}], {%c1, %c2, %c3, %c4}; mov.u32 %d0, 0; mov.u32 %d1, 0; mov.u32 %d2, 0; mov.u32 %d3, 0;",
        TARGET,
    );
    let one = 1.0f32.to_bits();
    for (channel, channels, words, expected) in [
        (Channel::U8, 4, [300, 7, 0, 255], vec![255, 7, 0, 255]),
        (Channel::S8, 2, [-300i32 as u32, 5, 9, 9], vec![0x80, 5]),
        (Channel::U16, 1, [70000, 0, 0, 0], vec![0xff, 0xff]),
        (Channel::U32, 1, [0x1234_5678, 0, 0, 0], vec![0x78, 0x56, 0x34, 0x12]),
        (Channel::F16, 2, [one, 0, 0, 0], vec![0, 0x3c, 0, 0]),
        (Channel::F32, 4, [one, 2, 3, 4], vec![0, 0, 0x80, 0x3f, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0]),
        (Channel::Unorm8, 4, [one, 0.5f32.to_bits(), 0, (-1.0f32).to_bits()], vec![255, 128, 0, 0]),
        (Channel::Snorm16, 1, [(-1.0f32).to_bits(), 0, 0, 0], vec![0x01, 0x80]),
    ] {
        let image = device
            .image(ImageDescriptor::new(Geometry::Plane, format(channel, channels), [5, 3, 1]))
            .unwrap();
        let surface = device.surface(&image).unwrap();
        for engine in ENGINES {
            image
                .write_region(
                    &image.whole(0).unwrap(),
                    &vec![0xee; image.bytes() as usize],
                    [image.bytes() / 3, image.bytes()],
                )
                .unwrap();
            // The second texel of the second row, and beyond its end.
            let rows = [2u32, 100].map(|x| [&[x], &words[..]].concat());
            launch(&device, &store, engine, [surface.handle(), 0], &rows).unwrap();
            let (size, data) = (expected.len(), contents(&image));
            for (index, texel) in data.chunks(size).enumerate() {
                let wanted = if [7, 9].contains(&index) { expected.clone() } else { vec![0xee; size] };
                assert_eq!(texel, wanted, "{channel:?} {index} {engine:?}");
            }
        }
    }
    for (code, channel, channels, start, expected) in [
        ("sured.b.add.2d.u32.zero [%h, {4, 1}], %c0", Channel::U32, 1, [0, 100], 100 + 1 + 2 + 3 + 4),
        (
            "sured.b.min.2d.s32.zero [%h, {4, 1}], %c0",
            Channel::U32,
            1,
            [0, (-5i32) as u32],
            (-5i32) as u32 as u64,
        ),
        ("sured.b.max.2d.s32.trap [%h, {4, 1}], %c0", Channel::U32, 1, [0, (-5i32) as u32], 4),
        ("sured.b.or.2d.b32.zero [%h, {4, 1}], %c0", Channel::U32, 1, [0, 0x100], 0x107),
        ("sured.b.and.2d.b32.clamp [%h, {4, 1}], %c0", Channel::U32, 1, [0, 0xff], 0),
        ("sured.p.max.2d.b32.zero [%h, {1, 1}], %c0", Channel::S32, 1, [0, (-5i32) as u32], 4),
        (
            "sured.p.max.2d.b32.zero [%h, {1, 1}], %c0",
            Channel::U32,
            1,
            [0, (-5i32) as u32],
            (-5i32) as u32 as u64,
        ),
        (
            "cvt.u64.u32 %w0, %c0; sured.b.add.2d.u64.zero [%h, {8, 1}], %w0",
            Channel::U32,
            2,
            [u32::MAX, 0],
            (1 << 32) + 9,
        ),
        (
            "cvt.u64.u32 %w0, %c0; sured.p.min.2d.b64.zero [%h, {1, 1}], %w0",
            Channel::U32,
            2,
            [u32::MAX, 0],
            1,
        ),
        ("sured.b.add.2d.u32.zero [%h, {4, 7}], %c0", Channel::U32, 1, [0, 100], 100),
    ] {
        let image = device
            .image(ImageDescriptor::new(Geometry::Plane, format(channel, channels), [3, 2, 1]))
            .unwrap();
        let surface = device.surface(&image).unwrap();
        let zeros = "mov.u32 %d0, 0; mov.u32 %d1, 0; mov.u32 %d2, 0; mov.u32 %d3, 0;";
        let module = kernel(1, &format!("{code}; {zeros}"), TARGET);
        for engine in ENGINES {
            let size = image.descriptor().format.bytes() as u64;
            let bytes: Vec<u8> = start.iter().flat_map(|word| word.to_le_bytes()).collect();
            let region = Region { level: 0, start: [size, 1, 0], size: [size, 1, 1] };
            let bytes = if channels == 2 { &bytes[..] } else { &bytes[4..] };
            image.write_region(&region, bytes, [size, size]).unwrap();
            let rows: Vec<Vec<u32>> = (1..=4).map(|value| vec![value]).collect();
            launch(&device, &module, engine, [surface.handle(), 0], &rows).unwrap();
            let mut got = [0; 8];
            image.read_region(&region, &mut got, [size, size]).unwrap();
            assert_eq!(u64::from_le_bytes(got), expected, "{code} {engine:?}");
        }
    }
}

#[test]
fn attributes_are_those_of_the_objects() {
    let device = Device::new();
    let descriptor = ImageDescriptor {
        layers: 12,
        levels: 3,
        ..ImageDescriptor::new(Geometry::CubeArray, format(Channel::Unorm8, 4), [8, 8, 1])
    };
    let image = device.image(descriptor).unwrap();
    let sampler = Sampler {
        address: [AddressMode::Wrap, AddressMode::Mirror, AddressMode::Border],
        filter: Filter::Linear,
        normalized: true,
        ..Sampler::default()
    };
    let texture = device.texture(&image, sampler).unwrap();
    let state = device.sampler(sampler);
    let volume =
        device.image(ImageDescriptor::new(Geometry::Volume, format(Channel::S16, 2), [5, 4, 3])).unwrap();
    let surface = device.surface(&volume).unwrap();
    let unified = [
        ("txq.width.b32 %d0, [%h]", 8),
        ("txq.height.b32 %d0, [%h]", 8),
        ("txq.depth.b32 %d0, [%h]", 0),
        ("txq.level.width.b32 %d0, [%h], 2", 2),
        ("txq.level.height.b32 %d0, [%h], 1", 4),
        ("txq.level.width.b32 %d0, [%h], 7", 0),
        ("txq.channel_data_type.b32 %d0, [%h]", 0x10d2),
        ("txq.channel_order.b32 %d0, [%h]", 0x10b5),
        ("txq.normalized_coords.b32 %d0, [%h]", 1),
        ("txq.array_size.b32 %d0, [%h]", 2),
        ("txq.num_mipmap_levels.b32 %d0, [%h]", 3),
        ("txq.num_samples.b32 %d0, [%h]", 1),
        ("txq.filter_mode.b32 %d0, [%h]", 1),
        ("txq.addr_mode_0.b32 %d0, [%h]", 0),
        ("txq.addr_mode_1.b32 %d0, [%h]", 1),
        ("txq.addr_mode_2.b32 %d0, [%h]", 4),
        ("suq.width.b32 %d0, [%s]", 5),
        ("suq.height.b32 %d0, [%s]", 4),
        ("suq.depth.b32 %d0, [%s]", 3),
        ("suq.channel_data_type.b32 %d0, [%s]", 0x10d8),
        ("suq.channel_order.b32 %d0, [%s]", 0x10b1),
        ("suq.array_size.b32 %d0, [%s]", 0),
        ("suq.memory_layout.b32 %d0, [%s]", 0),
    ];
    let independent = [
        ("txq.force_unnormalized_coords.b32 %d0, [%s]", 0),
        ("txq.addr_mode_1.b32 %d0, [%s]", 1),
        ("txq.filter_mode.b32 %d0, [%s]", 1),
        ("txq.width.b32 %d0, [%h]", 8),
    ];
    let mode = ".target sm_80, texmode_independent";
    let unified = unified.map(|(code, value)| (code, value, TARGET, surface.handle()));
    let independent = independent.map(|(code, value)| (code, value, mode, state.handle()));
    for (code, value, target, other) in unified.into_iter().chain(independent) {
        let module = kernel(1, &format!("{code}; mov.u32 %d1, 0; mov.u32 %d2, 0; mov.u32 %d3, 0;"), target);
        for engine in ENGINES {
            let got =
                launch(&device, &module, engine, [texture.handle(), other], &[vec![0], vec![1]]).unwrap();
            assert_eq!(got, [[value, 0, 0, 0]; 2], "{code} {engine:?}");
        }
    }
}

/// A texture of one texel that is this number.
fn number_texture(device: &Device, value: u32) -> (Image, ptxvm::Texture) {
    let image =
        device.image(ImageDescriptor::new(Geometry::Plane, format(Channel::U32, 1), [1, 1, 1])).unwrap();
    image.write_region(&image.whole(0).unwrap(), &value.to_le_bytes(), [4, 4]).unwrap();
    let texture = device.texture(&image, Sampler::default()).unwrap();
    (image, texture)
}

#[test]
fn variables_and_parameters_are_handles() {
    let device = Device::new();
    let (_first, first) = number_texture(&device, 7);
    let (_second, second) = number_texture(&device, 8);
    let module = Module::from_ptx(
        ".version 8.1\n.target sm_80\n.address_size 64\n.global .texref tex0;\n.global .texref never;\n\
         .visible .entry test(.param .texref given, .param .u64 out, .param .u64 handle)\n{\n\
         .reg .b64 %out, %h, %t;\n.reg .b32 %d<4>, %e;\n.reg .pred %p, %q;\nld.param.u64 %out, [out];\n\
         tex.2d.v4.u32.s32 {%d0, %e, %e, %e}|%p, [tex0, {0, 0}];\n\
         tex.2d.v4.u32.s32 {%d1, _, _, _}, [given, {0, 0}];\n\
         mov.u64 %t, tex0;\ntex.2d.v4.u32.s32 {%d2, _, _, _}, [%t, {0, 0}];\n\
         ld.param.u64 %h, [handle];\n\
         istypep.texref %q, %h;\nselp.u32 %d3, 1, 0, %p;\n@%q add.u32 %d3, %d3, 2;\n\
         tex.2d.v4.u32.s32 {%e, _, _, _}, [%h, {0, 0}];\nshl.b32 %e, %e, 8;\nor.b32 %d3, %d3, %e;\n\
         st.global.v4.u32 [%out], {%d0, %d1, %d2, %d3};\nret;\n}\n\
         .visible .entry unbound(.param .u64 out)\n{\n.reg .b64 %out;\n.reg .b32 %d;\nld.param.u64 %out, [out];\n\
         tex.2d.v4.u32.s32 {%d, _, _, _}, [never, {0, 0}];\nst.global.u32 [%out], %d;\nret;\n}\n",
    )
    .unwrap_or_else(|error| panic!("{error}"));
    let loaded = device.load(&module).unwrap();
    loaded.bind_texture("tex0", &first).unwrap();
    let out = device.zeros::<u32>(4).unwrap();
    for engine in ENGINES {
        let run = || loaded.launch("test").arg(&second).arg(&out).arg(&second).engine(engine).run();
        run().unwrap();
        assert_eq!(out.read().unwrap(), [7, 8, 7, 8 << 8 | 3], "{engine:?}");
        loaded.bind_texture("tex0", &second).unwrap();
        run().unwrap();
        assert_eq!(out.read().unwrap(), [8, 8, 8, 8 << 8 | 3], "{engine:?}");
        loaded.bind_texture("tex0", &first).unwrap();
        let unbound = loaded.launch("unbound").arg(&out).engine(engine).run();
        let Err(Error::Fault { fault, .. }) = unbound else { panic!("{unbound:?}") };
        assert_eq!(fault.kind, FaultKind::InvalidHandle);
        assert!(fault.notes[0].0.contains("`never` is not bound"), "{:?}", fault.notes);
    }
    let missing = loaded.bind_texture("nothing", &first).unwrap_err();
    assert!(matches!(missing, Error::Texture(ObjectError::NoVariable)));
    let other = number_texture(&Device::new(), 1).1;
    assert!(matches!(loaded.bind_texture("tex0", &other), Err(Error::OtherDevice)));
}

#[test]
fn handles_that_mean_nothing_fault() {
    let device = Device::new();
    let (image, texture) = number_texture(&device, 7);
    let surface = device.surface(&image).unwrap();
    let linear = device
        .texture_at(image.address(), ImageDescriptor::linear(format(Channel::U32, 1), 1), Sampler::default())
        .unwrap();
    let handle = number_texture(&device, 8).1.handle();
    let buffer = device.allocate(64, "texels").unwrap();
    let dangling = device
        .texture_at(
            buffer.address(),
            ImageDescriptor::pitched(format(Channel::U32, 1), 2, 2, 32),
            Sampler::default(),
        )
        .unwrap();
    drop(buffer);
    let load = kernel(1, "tex.2d.v4.u32.s32 {%d0, %d1, %d2, %d3}, [%h, {0, 0}];", TARGET);
    let store = kernel(
        1,
        "mov.u32 %d0, 5; mov.u32 %d1, 0; mov.u32 %d2, 0; mov.u32 %d3, 0; sust.b.2d.b32.clamp [%h, {%c0, 0}], %d0;",
        TARGET,
    );
    let reduce = kernel(
        1,
        "mov.u32 %d0, 5; mov.u32 %d1, 0; mov.u32 %d2, 0; mov.u32 %d3, 0; sured.p.add.2d.b32.clamp [%h, {0, 0}], %d0;",
        TARGET,
    );
    for engine in ENGINES {
        let faults = |module: &Module, handle: u64, row: u32| {
            kind(launch(&device, module, engine, [handle, 0], &[vec![row], vec![row]]))
        };
        assert_eq!(
            launch(&device, &load, engine, [texture.handle(), 0], &[vec![0]]).unwrap(),
            [[7, 0, 0, 1]]
        );
        for bad in [0, 1, image.address(), handle, surface.handle(), linear.handle(), u64::MAX] {
            assert_eq!(faults(&load, bad, 0), FaultKind::InvalidHandle, "{bad:#x}");
        }
        assert_eq!(faults(&load, dangling.handle(), 0), FaultKind::UseAfterFree);
        assert_eq!(faults(&store, texture.handle(), 0), FaultKind::InvalidHandle);
        assert_eq!(faults(&store, surface.handle(), 2), FaultKind::Misaligned);
        launch(&device, &store, engine, [surface.handle(), 0], &[vec![0]]).unwrap();
        assert_eq!(contents(&image), 5u32.to_le_bytes());
        image.write_region(&image.whole(0).unwrap(), &7u32.to_le_bytes(), [4, 4]).unwrap();
        let floats =
            device.image(ImageDescriptor::new(Geometry::Plane, format(Channel::F32, 1), [1, 1, 1])).unwrap();
        let floats = device.surface(&floats).unwrap();
        assert_eq!(faults(&reduce, floats.handle(), 0), FaultKind::InvalidHandle);
    }
    let mipmap = ImageDescriptor {
        levels: 2,
        ..ImageDescriptor::new(Geometry::Plane, format(Channel::U8, 1), [4, 4, 1])
    };
    let mipmap = device.image(mipmap).unwrap();
    assert!(matches!(device.surface(&mipmap), Err(Error::Texture(ObjectError::NotASurface))));
    assert!(device.surface(&mipmap.level(1).unwrap()).is_ok());
    let outside = device.texture_at(
        image.address(),
        ImageDescriptor::linear(format(Channel::U32, 1), 1000),
        Sampler::default(),
    );
    assert!(matches!(outside, Err(Error::Texture(ObjectError::Memory(FaultKind::OutOfBounds)))));
}

#[test]
fn a_launch_uses_several_textures_at_once() {
    let device = Device::new();
    let all: Vec<_> = (0..5).map(|value| number_texture(&device, 100 + value)).collect();
    // Every thread has a handle of its own, and one of four does nothing.
    let code = "mov.b64 %h, {%c0, %c1}; and.b32 %d1, %i, 3; setp.eq.u32 %p0, %d1, 3; mov.u32 %d0, 1; mov.u32 %d1, 0;\n\
                mov.u32 %d2, 0; mov.u32 %d3, 0; @!%p0 tex.2d.v4.u32.s32 {%d0, _, _, _}, [%h, {0, 0}];";
    let module = kernel(2, code, TARGET);
    let rows: Vec<Vec<u32>> = (0..100)
        .map(|i| {
            let handle = if i % 4 == 3 { 0 } else { all[i % 5].1.handle() };
            vec![handle as u32, (handle >> 32) as u32]
        })
        .collect();
    for engine in ENGINES {
        let got = launch(&device, &module, engine, [0, 0], &rows).unwrap();
        for (i, got) in got.iter().enumerate() {
            assert_eq!(got[0], if i % 4 == 3 { 1 } else { 100 + i as u32 % 5 }, "{i} {engine:?}");
        }
    }
}

#[test]
fn regions_are_copied_row_by_row() {
    let device = Device::new();
    let cases = [
        (
            ImageDescriptor {
                levels: 3,
                ..ImageDescriptor::new(Geometry::Volume, format(Channel::U8, 2), [8, 6, 5])
            },
            1,
        ),
        (
            ImageDescriptor {
                layers: 4,
                ..ImageDescriptor::new(Geometry::PlaneArray, format(Channel::U8, 2), [4, 3, 1])
            },
            0,
        ),
    ];
    for (descriptor, level) in cases {
        let image = device.image(descriptor).unwrap();
        let whole = image.whole(level).unwrap();
        let [bytes, rows, slices] = whole.size;
        let mut expected = pattern(bytes * rows * slices);
        image.write_region(&whole, &expected, [bytes, bytes * rows]).unwrap();
        // A part of it, out of and into memory with gaps.
        let region = Region { level, start: [2, 1, 1], size: [4, 2, 1] };
        let mut part = vec![0xee; 40];
        image.read_region(&region, &mut part, [16, 100]).unwrap();
        let at = |byte: u64, row: u64, slice: u64| ((slice * rows + row) * bytes + byte) as usize;
        assert_eq!(part[..4], expected[at(2, 1, 1)..][..4]);
        assert_eq!(part[16..20], expected[at(2, 2, 1)..][..4]);
        assert_eq!((part[4], part[20]), (0xee, 0xee));
        image.write_region(&region, &[1; 20], [16, 100]).unwrap();
        for row in 1..3 {
            expected[at(2, row, 1)..][..4].fill(1);
        }
        let mut all = vec![0; expected.len()];
        image.read_region(&whole, &mut all, [bytes, bytes * rows]).unwrap();
        assert_eq!(all, expected);
        let address = image.address_of(level, [2, 1, 1]).unwrap();
        let mut same = [0; 4];
        device.read_at(address, &mut same).unwrap();
        assert_eq!(same, [1; 4]);
        for region in [
            Region { level: 9, ..region },
            Region { start: [bytes - 1, 0, 0], ..region },
            Region { start: [0, 0, slices], ..region },
            Region { start: [u64::MAX, 0, 0], ..region },
        ] {
            assert!(image.write_region(&region, &[0; 1000], [16, 100]).is_err(), "{region:?}");
        }
        assert!(image.write_region(&region, &[1; 19], [16, 100]).is_err());
        assert!(image.read_region(&region, &mut [0; 64], [u64::MAX, 100]).is_err());
    }
}

/// An image whose channels are all this number.
fn constant(device: &Device, name: &str, channels: u8, extent: [u32; 3], layers: u32, value: f32) -> Image {
    let descriptor = ImageDescriptor {
        layers,
        ..ImageDescriptor::new(geometry(name), format(Channel::F32, channels), extent)
    };
    let image = device.image(descriptor).unwrap();
    let region = image.whole(0).unwrap();
    let [bytes, rows, slices] = region.size;
    let data = value.to_le_bytes().repeat((bytes * rows * slices / 4) as usize);
    image.write_region(&region, &data, [bytes, bytes * rows]).unwrap();
    image
}

/// `texture/forms.cu`, compiled by nvcc: every texture holds one number, surfaces are read where they were written.
#[test]
fn what_nvcc_makes_of_textures_runs() {
    let module =
        Module::from_ptx(include_str!("texture/forms.ptx")).unwrap_or_else(|error| panic!("{error}"));
    for engine in ENGINES {
        let device = Device::new();
        let sampler = Sampler { filter: Filter::Linear, normalized: true, ..Sampler::default() };
        let texture = |name: &str, channels: u8, extent: [u32; 3], layers: u32, value: f32| {
            let image = constant(&device, name, channels, extent, layers, value);
            device.texture(&image, sampler).unwrap()
        };
        let numbers: Vec<u8> = (0..10).flat_map(|i: i32| (10 * i).to_le_bytes()).collect();
        let linear = device.allocate(40, "linear").unwrap();
        linear.write(0, &numbers).unwrap();
        let linear_texture = device
            .texture_at(
                linear.address(),
                ImageDescriptor::linear(format(Channel::S32, 1), 10),
                Sampler::default(),
            )
            .unwrap();
        let bytes =
            device.image(ImageDescriptor::new(Geometry::Plane, format(Channel::U8, 4), [1, 1, 1])).unwrap();
        bytes.write_region(&bytes.whole(0).unwrap(), &[8, 9, 10, 11], [4, 4]).unwrap();
        let bytes = device.texture(&bytes, Sampler::default()).unwrap();
        let image = |name: &str, format: TexelFormat, extent: [u32; 3], layers: u32| {
            let descriptor =
                ImageDescriptor { layers, ..ImageDescriptor::new(geometry(name), format, extent) };
            device.surface(&device.image(descriptor).unwrap()).unwrap()
        };
        let out = device.zeros::<f32>(32).unwrap();
        let launch = loaded_launch(&device, &module, engine)
            .arg(&texture("1d", 1, [4, 1, 1], 1, 1.0))
            .arg(&texture("2d", 1, [4, 4, 1], 1, 2.0))
            .arg(&texture("3d", 1, [4, 4, 4], 1, 3.0))
            .arg(&texture("a1d", 1, [4, 1, 1], 3, 4.0))
            .arg(&texture("a2d", 4, [4, 4, 1], 3, 5.0))
            .arg(&texture("cube", 1, [4, 4, 1], 6, 6.0))
            .arg(&texture("acube", 1, [4, 4, 1], 18, 7.0))
            .arg(&linear_texture)
            .arg(&bytes)
            .arg(&image("2d", format(Channel::F32, 1), [4, 4, 1], 1))
            .arg(&image("3d", format(Channel::F32, 4), [2, 2, 2], 1))
            .arg(&image("a2d", format(Channel::U8, 4), [4, 4, 1], 3))
            .arg(&image("cube", format(Channel::F32, 2), [4, 4, 1], 6));
        launch.arg(&out).arg(0.25f32).arg(0.75f32).arg(0.5f32).arg(2i32).run().unwrap();
        let expected = [
            1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 20.0, 9.0, 4.0, 3.0, 6.0, 8.0, 2.0, 0.25, 3.0, 7.0, 3.0, 0.0,
            5.0,
        ];
        assert_eq!(out.read().unwrap()[..20], expected, "{engine:?}");
    }
}

fn loaded_launch(device: &Device, module: &Module, engine: Engine) -> ptxvm::Launch {
    device.load(module).unwrap().launch("forms").engine(engine)
}

#[test]
fn loads_do_not_cross_stores_to_surfaces() {
    let device = Device::new();
    let image =
        device.image(ImageDescriptor::new(Geometry::Line, format(Channel::U32, 1), [64, 1, 1])).unwrap();
    let (surface, texture) =
        (device.surface(&image).unwrap(), device.texture(&image, Sampler::default()).unwrap());
    // %in is the image's own memory: what was loaded before the store is old, what is fetched behind it new. Then the same
    // with a plain store.
    let code = "ld.global.u32 %c1, [%in];\nshl.b32 %c2, %i, 2;\nsust.b.1d.b32.trap [%s, {%c2}], 5;\nadd.u32 %d0, %c1, 1;\n\
                tex.1d.v4.u32.s32 {%d1, _, _, _}, [%h, {%i}];\nadd.u32 %c3, %d1, 4;\nst.global.u32 [%in], %c3;\n\
                tex.1d.v4.u32.s32 {%d2, _, _, _}, [%h, {%i}];\nsuld.b.1d.b32.trap %d3, [%s, {%c2}];";
    let module = kernel(1, code, TARGET);
    for engine in ENGINES {
        image.write_region(&image.whole(0).unwrap(), &[1; 256], [256, 256]).unwrap();
        let out = device.zeros::<u32>(256).unwrap();
        let launch = device.load(&module).unwrap().launch("test").block(64).engine(engine);
        launch.arg(&texture).arg(image.address()).arg(&out).arg(&surface).run().unwrap();
        let expected = [0x0101_0102, 5, 9, 9].repeat(64);
        assert_eq!(out.read().unwrap(), expected, "{engine:?}");
    }
}

/// Threads, addresses and sizes of an access.
type Touched = Vec<(u32, u64, u64)>;

/// An observer that notes which bytes are touched, by kind.
#[derive(Default)]
struct Notes(Vec<(ptxvm::AccessKind, Touched)>);

impl ptxvm::LaunchObserver for Notes {
    fn access(&mut self, access: &ptxvm::AccessEvent) -> std::ops::ControlFlow<()> {
        use ptxvm::AccessKind::{TexelAtomic, TexelLoad, TexelStore};
        if matches!(access.kind, TexelLoad | TexelStore | TexelAtomic) {
            let lanes = access.lanes.iter().map(|lane| (lane.thread, lane.address, lane.bytes));
            self.0.push((access.kind, lanes.collect()));
        }
        std::ops::ControlFlow::Continue(())
    }
}

#[test]
fn observers_are_told_of_texels() {
    use ptxvm::AccessKind::{TexelAtomic, TexelLoad, TexelStore};
    let device = Device::new();
    let image =
        device.image(ImageDescriptor::new(Geometry::Line, format(Channel::F32, 1), [8, 1, 1])).unwrap();
    let sampler = Sampler { filter: Filter::Linear, ..Sampler::default() };
    let (surface, texture) = (device.surface(&image).unwrap(), device.texture(&image, sampler).unwrap());
    let code = "mov.b32 %f0, 0f40000000;\ntex.1d.v4.f32.f32 {%d0, %d1, %d2, %d3}, [%h, {%f0}];\nshl.b32 %c1, %i, 2;\n\
                sust.b.1d.b32.zero [%s, {%c1}], %d0;\nsured.b.add.1d.u32.trap [%s, {28}], 1;";
    let notes = std::sync::Arc::new(std::sync::Mutex::new(Notes::default()));
    let module = kernel(1, code, TARGET);
    let input = device.zeros::<u32>(9).unwrap();
    let out = device.zeros::<u32>(36).unwrap();
    let launch = device.load(&module).unwrap().launch("test").block(9).observe(std::sync::Arc::clone(&notes));
    launch.arg(&texture).arg(&input).arg(&out).arg(&surface).run().unwrap();
    let at = |thread: u32, texel: u64| (thread, image.address() + 4 * texel, 4);
    let notes = notes.lock().unwrap();
    // Between the texels 1 and 2; the last thread stores nowhere.
    assert_eq!(notes.0[0], (TexelLoad, (0..9).flat_map(|thread| [at(thread, 1), at(thread, 2)]).collect()));
    assert_eq!(notes.0[1], (TexelStore, (0..8).map(|thread| at(thread, thread.into())).collect()));
    assert_eq!(notes.0[2], (TexelAtomic, (0..9).map(|thread| at(thread, 7)).collect()));
}

/// Numbers that look random, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 = self.0.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
        (self.0 >> 33) as u32
    }

    fn below(&mut self, n: u32) -> u32 {
        self.next() % n
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len() as u32) as usize]
    }

    /// A coordinate: small integers and small `.f32` numbers, and some that are neither.
    fn word(&mut self) -> u32 {
        match self.below(8) {
            0 => self.next() << 1,
            1 => f32::NAN.to_bits(),
            2..=4 => self.below(24).wrapping_sub(8),
            _ => ((self.below(2000) as f32 - 600.0) / 128.0).to_bits(),
        }
    }
}

fn random_image(device: &Device, geometry: Geometry, is_surface: bool, random: &mut Random) -> Image {
    let channels = [
        Channel::U8,
        Channel::U16,
        Channel::U32,
        Channel::S8,
        Channel::S16,
        Channel::S32,
        Channel::Unorm8,
        Channel::Snorm16,
        Channel::F16,
        Channel::F32,
    ];
    let format = format(random.of(&channels), random.of(&[1, 2, 4]));
    let n = 1 + random.below(7);
    let extent = match geometry.dimensions() {
        1 => [n, 1, 1],
        2 if geometry.is_cube() => [n, n, 1],
        2 => [n, 1 + random.below(5), 1],
        _ => [n, 1 + random.below(5), 1 + random.below(3)],
    };
    let single = is_surface || geometry.is_multisample();
    let descriptor = ImageDescriptor {
        layers: match geometry {
            Geometry::CubeArray => 12,
            Geometry::Cube => 6,
            _ if geometry.is_array() => 3,
            _ => 1,
        },
        samples: if geometry.is_multisample() { 4 } else { 1 },
        levels: if single { 1 } else { 1 + extent.iter().max().map_or(0, |n| n.ilog2()) },
        ..ImageDescriptor::new(geometry, format, extent)
    };
    let image = device.image(descriptor).unwrap();
    let data: Vec<u8> = (0..image.bytes()).map(|_| random.next() as u8).collect();
    device.write_at(image.address(), &data).unwrap();
    image
}

fn random_sampler(random: &mut Random) -> Sampler {
    let modes = [AddressMode::Wrap, AddressMode::Mirror, AddressMode::Clamp, AddressMode::Border];
    let filters = [Filter::Point, Filter::Linear];
    let mut flag = || random.below(2) == 1;
    let (normalized, normalized_float, srgb, seamless) = (flag(), flag(), flag(), flag());
    Sampler {
        address: [random.of(&modes), random.of(&modes), random.of(&modes)],
        filter: random.of(&filters),
        mip_filter: random.of(&filters),
        normalized,
        normalized_float,
        srgb,
        seamless,
        border: [1, 2.0f32.to_bits(), random.next(), 4],
        ..Sampler::default()
    }
}

/// What a launch left: its fault, registers, texels.
type Left = (Option<FaultKind>, Vec<u32>, Vec<u8>);

/// Every row of the table in many spellings, on random texels, samplers and coordinates: both engines, in teams of blocks and in
/// shuffled warps, must leave the same registers and texels, or fault in the same way.
#[test]
fn engines_agree_on_every_form() {
    use isa::enumerate::{ENTRY_DECLARATIONS, instruction, spellings};
    let opcodes = ["tex", "tld4", "txq", "suld", "sust", "sured", "suq"];
    let mut random = Random(1);
    let (mut launches, mut ended) = (0, 0);
    for (index, form) in isa::FORMS.iter().enumerate() {
        let opcode = form.opcode.name();
        if !opcodes.contains(&opcode) {
            continue;
        }
        let legal: Vec<_> = spellings(isa::FormId(index as u16)).filter(|s| s.is_legal()).collect();
        for spelling in legal.iter().step_by(legal.len().div_ceil(24)) {
            let is_surface = opcode.starts_with("su");
            let device = Device::new();
            let geometries = [Geometry::Line, Geometry::Plane, Geometry::PlaneArray];
            let geometry = Geometry::of(&spelling.picks).unwrap_or_else(|| random.of(&geometries));
            let image = random_image(&device, geometry, is_surface, &mut random);
            let object = match is_surface {
                true => device.surface(&image).map(|surface| ptxvm::Arg::from(&surface)).unwrap(),
                false => {
                    let texture = device.texture(&image, random_sampler(&mut random)).unwrap();
                    ptxvm::Arg::from(&texture)
                }
            };
            let loads: String = (0..9)
                .map(|i| {
                    format!(
                        "ld.global.b32 %b32_{i}, [%at+{}]; cvt.u16.u32 %b16_{i}, %b32_{i};\n\
                         mov.b64 %b64_{i}, {{%b32_{i}, %b32_{i}}}; ld.global.b8 %b8_{i}, [%at+{}];\n",
                        4 * i,
                        4 * i
                    )
                })
                .collect();
            let stores: String = (0..8)
                .map(|i| {
                    format!(
                        "st.global.b32 [%at+{}], %b32_{i}; st.global.b64 [%at+{}], %b64_{i};\n\
                         st.global.b16 [%at+{}], %b16_{i}; st.global.b8 [%at+{}], %b8_{i};\n",
                        16 * i,
                        16 * i + 8,
                        16 * i + 4,
                        16 * i + 6
                    )
                })
                .collect();
            let text = instruction(spelling, 0);
            let registers = ENTRY_DECLARATIONS.replace(".reg .b128 %b128_<9>;", "");
            let module = Module::from_ptx(&format!(
                ".version 8.1\n.target sm_90\n.address_size 64\n.visible .entry e(.param .u64 h, .param .u64 data)\n{{\n\
                 {registers}\n.reg .b64 %at;\n.reg .b32 %i, %lane;\n.reg .pred %skip;\n\
                 mov.u32 %i, %ctaid.x; mov.u32 %lane, %tid.x; mad.lo.u32 %i, %i, 16, %lane;\n\
                 ld.param.u64 %at, [data]; mad.wide.u32 %at, %i, 128, %at;\n{loads}ld.param.u64 %b64_8, [h];\n\
                 and.b32 %i, %i, 7; setp.eq.u32 %skip, %i, 5;\n@!%skip {text}\n{stores}ret;\n}}\n"
            ));
            // The example's gradients are too long for some geometries, and offsets are not for cubes.
            let Ok(module) = module else { continue };
            let words: Vec<u32> = (0..32 * 32).map(|_| random.word()).collect();
            let start: Vec<u8> = {
                let mut bytes = vec![0; image.bytes() as usize];
                device.read_at(image.address(), &mut bytes).unwrap();
                bytes
            };
            let loaded = device.load(&module).unwrap();
            let mut results = Vec::new();
            for way in 0..3 {
                device.write_at(image.address(), &start).unwrap();
                let data = device.array(&words).unwrap();
                let engine = if way == 0 { Engine::Reference } else { Engine::Interpreter };
                let launch = loaded.launch("e").grid(2).block(16).engine(engine).configure(|config| {
                    config.threads = Some(1);
                    config.schedule = (way == 2).then_some(7);
                });
                let end = match launch.arg(object.clone()).arg(&data).run() {
                    Ok(_) => None,
                    Err(Error::Fault { fault, .. }) => Some((fault.kind, fault.notes)),
                    Err(error) => panic!("{text}: {error}"),
                };
                let mut texels = vec![0; start.len()];
                device.read_at(image.address(), &mut texels).unwrap();
                // Which threads had been when one faulted is another matter.
                results.push(match end {
                    None => (None, data.read().unwrap(), texels),
                    fault => (fault.map(|(kind, _)| kind), Vec::new(), Vec::new()),
                });
            }
            launches += 1;
            ended += usize::from(results[0].0.is_none());
            // Stores of several threads to one texel race.
            let races = opcode == "sust";
            let same = |a: &Left, b: &Left| a.0 == b.0 && a.1 == b.1 && (races || a.2 == b.2);
            assert!(
                same(&results[0], &results[1]),
                "{text} {:?}\n{:x?}\n{:x?}",
                image.descriptor(),
                results[0],
                results[1]
            );
            assert!(same(&results[0], &results[2]), "shuffled: {text} {:?}", image.descriptor());
        }
    }
    assert!(launches > 500 && ended > 300, "{launches} {ended}");
}
