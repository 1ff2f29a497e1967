//! Surfaces, and memory of images, against plain memory.

use ptxvm::{Channel, Device, FaultKind, Geometry, Image, ImageDescriptor, Region, Sampler};

use super::{ENGINES, TARGET, contents, format, geometry, kernel, kind, launch};

/// Bytes that differ from each other.
fn pattern(bytes: u64) -> Vec<u8> {
    (0..bytes).map(|i| (i * 37 + i / 251) as u8).collect()
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
