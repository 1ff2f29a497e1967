//! Textures, surfaces and samplers as objects: their attributes, handles, bindings, and who is told of accesses.

use ptxvm::{
    AddressMode, Channel, Device, Engine, Error, FaultKind, Filter, Geometry, Image, ImageDescriptor, Module,
    ObjectError, Sampler, TexelFormat,
};

use super::{ENGINES, TARGET, contents, format, geometry, kernel, kind, launch};

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
        ("txq.width.b32 %d0, [%s]", 5),
        ("txq.depth.b32 %d0, [%s]", 3),
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
        // For one launch alone, and then not.
        let launch = loaded.launch("test").arg(&second).arg(&out).arg(&second).engine(engine);
        launch.configure(|config| config.bindings = vec![("tex0".into(), second.handle())]).run().unwrap();
        assert_eq!(out.read().unwrap(), [8, 8, 8, 8 << 8 | 3], "{engine:?}");
        run().unwrap();
        assert_eq!(out.read().unwrap(), [7, 8, 7, 8 << 8 | 3], "{engine:?}");
        let unbound = loaded.launch("unbound").arg(&out).engine(engine).run();
        let Err(Error::Fault { fault, .. }) = unbound else { panic!("{unbound:?}") };
        assert_eq!(fault.kind, FaultKind::InvalidHandle);
        assert!(fault.notes[0].0.contains("`never` is not bound"), "{:?}", fault.notes);
    }
    let missing = loaded.bind_texture("nothing", &first).unwrap_err();
    assert!(matches!(missing, Error::Texture(ObjectError::NoVariable)));
    for (name, handle, wanted) in
        [("nothing", first.handle(), ObjectError::NoVariable), ("tex0", 12345, ObjectError::NoObject)]
    {
        let launch = loaded.launch("unbound").arg(&out);
        let refused = launch.configure(|config| config.bindings = vec![(name.into(), handle)]).run();
        assert!(matches!(refused, Err(Error::Texture(error)) if error == wanted), "{name}");
    }
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

/// `forms.cu`, compiled by nvcc: every texture holds one number, surfaces are read where they were written.
#[test]
fn what_nvcc_makes_of_textures_runs() {
    let module = Module::from_ptx(include_str!("forms.ptx")).unwrap_or_else(|error| panic!("{error}"));
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

/// Threads, addresses and sizes of an access.
type Touched = Vec<(u32, u64, u64)>;

/// An observer that notes which bytes are touched, by kind.
#[derive(Default)]
struct Notes(Vec<(ptxvm::observe::AccessKind, Touched)>);

impl ptxvm::LaunchObserver for Notes {
    fn access(&mut self, access: &ptxvm::observe::AccessEvent) -> std::ops::ControlFlow<()> {
        use ptxvm::observe::AccessKind::{TexelAtomic, TexelLoad, TexelStore};
        if matches!(access.kind, TexelLoad | TexelStore | TexelAtomic) {
            let lanes = access.lanes.iter().map(|lane| (lane.thread, lane.address, lane.bytes));
            self.0.push((access.kind, lanes.collect()));
        }
        std::ops::ControlFlow::Continue(())
    }
}

#[test]
fn observers_are_told_of_texels() {
    use ptxvm::observe::AccessKind::{TexelAtomic, TexelLoad, TexelStore};
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
