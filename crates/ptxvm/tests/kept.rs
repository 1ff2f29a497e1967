//! What is kept with a loaded module serves every launch: code for chunks of other sizes, other paths, other shared memory, and
//! nothing of what an earlier launch was given.

use std::fmt::Write as _;

use ptxvm::{Device, HostPath, Loaded, Module};

/// Shared variables: so many that the gaps between them depend on how much dynamic shared memory there is.
const VARIABLES: usize = 300;

/// Thread i leaves `factor * (i + n)` in the first and the last shared variable and at the end of dynamic shared memory, and adds up what the thread
/// across its block left in all three; n counts the threads before its block.
fn module() -> Module {
    let mut text =
        String::from(".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .b32 dynamic[];\n");
    for i in 0..VARIABLES {
        let _ = writeln!(text, ".shared .b32 v{i}[16];");
    }
    let last = VARIABLES - 1;
    let _ = write!(
        text,
        ".visible .entry kernel(.param .u64 out, .param .u16 factor, .param .s16 addend)
{{
    .reg .u32 %t, %n, %b, %i, %v, %a, %w, %s, %x;  .reg .u64 %o, %e;  .reg .u16 %f;  .reg .s32 %d;
    mov.u32 %t, %tid.x;  mov.u32 %n, %ntid.x;  mov.u32 %b, %ctaid.x;
    mad.lo.u32 %i, %b, %n, %t;
    ld.param.u16 %f, [factor];
    ld.param.s16 %d, [addend];
    cvt.u32.u16 %v, %f;
    mul.lo.u32 %v, %v, %i;
    and.b32 %w, %t, 15;
    shl.b32 %w, %w, 2;
    mov.u32 %a, v0;  add.u32 %a, %a, %w;  st.shared.u32 [%a], %v;
    mov.u32 %a, v{last};  add.u32 %a, %a, %w;  st.shared.u32 [%a], %v;
    mov.u32 %a, dynamic;  add.u32 %a, %a, %w;  mov.u32 %x, %dynamic_smem_size;  add.u32 %a, %a, %x;
    st.shared.u32 [%a+-64], %v;
    bar.sync 0;
    xor.b32 %w, %w, 60;
    mov.u32 %a, v0;  add.u32 %a, %a, %w;  ld.shared.u32 %s, [%a];
    mov.u32 %a, v{last};  add.u32 %a, %a, %w;  ld.shared.u32 %x, [%a];  add.u32 %s, %s, %x;
    mov.u32 %a, dynamic;  add.u32 %a, %a, %w;  mov.u32 %x, %dynamic_smem_size;  add.u32 %a, %a, %x;
    ld.shared.u32 %x, [%a+-64];  add.u32 %s, %s, %x;
    add.u32 %s, %s, %d;
    ld.param.u64 %o, [out];
    mad.wide.u32 %e, %i, 4, %o;
    st.global.u32 [%e], %s;
    ret;
}}
.visible .entry barrier_word(.param .u64 out)
{{
    .reg .u32 %h, %l, %v;  .reg .u64 %a, %b, %o;
    mov.u32 %h, %envreg1;  mov.u32 %l, %envreg2;
    cvt.u64.u32 %a, %h;  shl.b64 %a, %a, 32;  cvt.u64.u32 %b, %l;  or.b64 %a, %a, %b;
    atom.global.add.u32 %v, [%a+4], 7;
    ld.param.u64 %o, [out];
    st.global.u32 [%o], %v;
    ret;
}}
"
    );
    Module::from_ptx(&text).unwrap_or_else(|error| panic!("{error}"))
}

/// One launch with blocks of 16 threads, and what must come out.
fn launch(
    device: &Device,
    module: &Loaded,
    grid: u32,
    dynamic: u64,
    path: HostPath,
    factor: u16,
    addend: i16,
) {
    let out = device.zeros::<u32>(16 * grid as usize).unwrap();
    let launch = module.launch("kernel").grid(grid).block(16).arg(&out).arg(factor).arg(addend);
    let configured = launch.configure(|config| {
        config.dynamic_shared = dynamic;
        config.host_path = Some(path);
    });
    configured.run().unwrap_or_else(|error| panic!("{error}"));
    let expected = (0..16 * grid).map(|i| {
        let across = i / 16 * 16 + (15 - i % 16);
        (3 * u32::from(factor) * across).wrapping_add_signed(addend.into())
    });
    let results = out.read().unwrap();
    assert!(results.iter().copied().eq(expected), "{grid} {dynamic} {path:?} {factor} {addend}: {results:?}");
}

#[test]
fn launches_of_every_kind_take_turns() {
    let (device, module) = (Device::new(), module());
    // What is kept first is what others might get by mistake.
    for sizes in [[64, 4096, 200 << 10], [200 << 10, 4096, 64]] {
        let loaded = device.load(&module).unwrap();
        for round in 0..3u16 {
            for (i, grid) in [1, 2, 7, 64, 3].into_iter().enumerate() {
                for dynamic in sizes {
                    for path in HostPath::ALL.into_iter().filter(|path| path.is_available()) {
                        launch(
                            &device,
                            &loaded,
                            grid,
                            dynamic,
                            path,
                            round * 5 + i as u16,
                            -3 * round as i16,
                        );
                    }
                }
            }
        }
    }
}

#[test]
fn blocks_of_every_size_take_turns() {
    const TEXT: &str = ".version 8.0 .target sm_90 .address_size 64
        .visible .entry kernel(.param .u64 out) {
            .reg .u32 %t, %n, %b, %i;  .reg .u64 %o, %e;
            mov.u32 %t, %tid.x;  mov.u32 %n, %ntid.x;  mov.u32 %b, %ctaid.x;
            mad.lo.u32 %i, %b, %n, %t;
            ld.param.u64 %o, [out];  mad.wide.u32 %e, %i, 4, %o;
            mad.lo.u32 %i, %n, 10000, %i;
            st.global.u32 [%e], %i;
            ret; }";
    let device = Device::new();
    let loaded = device.load(&Module::from_ptx(TEXT).unwrap()).unwrap();
    for block in [1u32, 1024, 33, 512, 64, 1000, 32, 1024, 2] {
        for grid in [1, 9] {
            let out = device.zeros::<u32>((block * grid) as usize).unwrap();
            loaded.launch("kernel").grid(grid).block(block).arg(&out).run().unwrap();
            let expected: Vec<u32> = (0..block * grid).map(|i| block * 10000 + i).collect();
            assert_eq!(out.read().unwrap(), expected, "{grid} blocks of {block}");
        }
    }
}

#[test]
fn cooperative_launches_begin_with_a_barrier_that_nobody_came_to() {
    let (device, module) = (Device::new(), module());
    let loaded = device.load(&module).unwrap();
    for _ in 0..3 {
        let out = device.array(&[1u32]).unwrap();
        loaded.launch("barrier_word").cooperative().arg(&out).run().unwrap();
        assert_eq!(out.read().unwrap(), [0]);
    }
}
