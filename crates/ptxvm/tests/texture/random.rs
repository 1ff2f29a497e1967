//! Every form on random texels: both engines agree.

use ptxvm::{
    AddressMode, Channel, Device, Engine, Error, FaultKind, Filter, Geometry, Image, ImageDescriptor, Module,
    Sampler,
};

use super::format;

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
