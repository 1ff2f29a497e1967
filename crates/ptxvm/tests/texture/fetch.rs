//! What is fetched, against the exact model.

use std::collections::HashMap;

use ptxvm::{AddressMode, Channel, Device, Filter, Image, ImageDescriptor, Sampler, TexelFormat};

use super::{ENGINES, TARGET, geometry, kernel, launch};

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

#[test]
fn what_is_fetched_is_what_the_model_says() {
    let text = include_str!("cases.txt");
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
