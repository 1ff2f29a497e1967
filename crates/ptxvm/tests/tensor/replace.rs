//! Maps that kernels make.

use ptxvm::tensor_map::{Element, Fill, Swizzle, TensorMap};
use ptxvm::{Array, Device, Module};

use super::ENGINES;

/// Begins with zeros in shared memory, replaces every field, hands the map to global memory, and copies a box with it.
const TEXT: &str = "\
.version 8.6
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 tensor, .param .u64 map, .param .u64 out)
{
    .shared .align 128 .b8 made[128];
    .shared .align 128 .b8 tile[1024];
    .shared .align 8 .b64 bar;
    .reg .b64 %tensor, %map, %out, %stride, %to;
    .reg .b32 %i, %at, %v, %one, %sixteen, %eight, %x, %y, %made;
    .reg .pred %p;
    ld.param.u64 %tensor, [tensor];
    ld.param.u64 %map, [map];
    ld.param.u64 %out, [out];
    mov.u32 %i, %tid.x;
    shl.b32 %at, %i, 2;
    mov.u32 %made, made;
    add.u32 %at, %at, %made;
    mov.u32 %v, 0;
    st.shared.b32 [%at], %v;
    setp.ne.u32 %p, %i, 0;
    bar.warp.sync -1;
    @%p bra made_it;
    mbarrier.init.shared.b64 [bar], 1;
    mov.u32 %one, 1;
    mov.u32 %sixteen, 16;
    mov.u32 %eight, 8;
    mov.u64 %stride, 64;
    tensormap.replace.tile.global_address.shared::cta.b1024.b64 [made], %tensor;
    tensormap.replace.tile.rank.shared::cta.b1024.b32 [made], 1;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [made], 0, %eight;
    tensormap.replace.tile.box_dim.shared::cta.b1024.b32 [made], 1, %eight;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [made], 0, %sixteen;
    tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [made], 1, %sixteen;
    tensormap.replace.tile.global_stride.shared::cta.b1024.b64 [made], 0, %stride;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [made], 0, %one;
    tensormap.replace.tile.element_stride.shared::cta.b1024.b32 [made], 1, %one;
    tensormap.replace.tile.elemtype.shared::cta.b1024.b32 [made], 7;
    tensormap.replace.tile.interleave_layout.shared::cta.b1024.b32 [made], 0;
    tensormap.replace.tile.swizzle_mode.shared::cta.b1024.b32 [made], 1;
    tensormap.replace.tile.fill_mode.shared::cta.b1024.b32 [made], 1;
made_it:
    bar.warp.sync -1;
    tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%map], [made], 128;
    fence.proxy.tensormap::generic.acquire.gpu [%map], 128;
    fence.proxy.async;
    @%p bra copied;
    mov.u32 %x, 12;
    mov.u32 %y, -1;
    mbarrier.arrive.expect_tx.shared.b64 _, [bar], 256;
    cp.async.bulk.prefetch.tensor.2d.L2.global [%map, {%x, %y}];
    cp.async.bulk.tensor.2d.shared::cta.global.tile.mbarrier::complete_tx::bytes [tile], [%map, {%x, %y}], [bar];
wait:
    mbarrier.try_wait.parity.shared.b64 %p, [bar], 0;
    @!%p bra wait;
copied:
    bar.warp.sync -1;
    mov.u32 %v, tile;
    shl.b32 %at, %i, 3;
    add.u32 %v, %v, %at;
    cvt.u64.u32 %to, %at;
    add.u64 %to, %to, %out;
    { .reg .b64 %w; ld.shared.b64 %w, [%v]; st.global.b64 [%to], %w; }
    ret;
}
";

#[test]
fn kernels_make_maps_of_zeros() {
    let module = Module::from_ptx(TEXT).unwrap_or_else(|error| panic!("{error}"));
    for engine in ENGINES {
        let device = Device::new();
        let numbers: Vec<f32> = (0..256).map(|i| i as f32).collect();
        let tensor = device.array(&numbers).unwrap();
        let place: Array<u8> = device.array(&[0xcc; 128]).unwrap();
        let out = device.array(&[0u32; 64]).unwrap();
        let loaded = device.load(&module).unwrap();
        loaded.launch("test").block(32u32).engine(engine).arg(&tensor).arg(&place).arg(&out).run().unwrap();
        let expected = TensorMap {
            swizzle: Swizzle::Bytes32,
            fill: Fill::Nan,
            ..TensorMap::tiled(Element::F32, tensor.address(), &[16, 16], &[8, 8])
        };
        let made: [u8; 128] = place.read().unwrap().try_into().unwrap();
        assert_eq!(
            TensorMap::from_bytes(&made).map(|map| TensorMap { strides: [64, 1024, 0, 0], ..map }).unwrap(),
            TensorMap { strides: [64, 1024, 0, 0], ..expected }
        );
        // Row -1 is not there, nor are columns 16 to 19; in lines of four rows the halves of the second line change places.
        let row = |y: i32| -> Vec<u32> {
            let at = |x: i32| match y {
                0.. if x < 16 => ((16 * y + x) as f32).to_bits(),
                _ => 0x7ff7_7ff7,
            };
            let all: Vec<u32> = (12..20).map(at).collect();
            if y + 1 >= 4 { [&all[4..], &all[..4]].concat() } else { all }
        };
        let expected: Vec<u32> = (-1..7).flat_map(row).collect();
        assert_eq!(out.read().unwrap(), expected, "{engine:?}");
    }
}

/// Each of two blocks replaces a field of its own of the same map, and looks whether it is there still.
const SIDE_BY_SIDE: &str = "\
.version 8.6
.target sm_90a
.address_size 64
.visible .entry test(.param .u64 map, .param .u64 lost)
{
    .reg .b64 %map, %mine, %lost;
    .reg .b32 %block, %i, %v;
    .reg .pred %second, %p;
    ld.param.u64 %map, [map];
    ld.param.u64 %lost, [lost];
    mov.u32 %block, %ctaid.x;
    setp.ne.u32 %second, %block, 0;
    mad.wide.u32 %mine, %block, 8, %map;
    mov.u32 %i, 0;
again:
    add.u32 %i, %i, 1;
    @%second bra other;
    tensormap.replace.tile.global_dim.global.b1024.b32 [%map], 0, %i;
    bra.uni replaced;
other:
    tensormap.replace.tile.global_dim.global.b1024.b32 [%map], 1, %i;
replaced:
    ld.relaxed.gpu.global.u32 %v, [%mine+48];
    setp.ne.u32 %p, %v, %i;
    @%p red.global.add.u32 [%lost], 1;
    setp.lt.u32 %p, %i, 5000;
    @%p bra again;
    ret;
}
";

#[test]
fn fields_are_replaced_side_by_side() {
    let module = Module::from_ptx(SIDE_BY_SIDE).unwrap_or_else(|error| panic!("{error}"));
    for engine in ENGINES {
        let device = Device::new();
        let (map, lost) = (device.array(&[0u64; 16]).unwrap(), device.array(&[0u32]).unwrap());
        let loaded = device.load(&module).unwrap();
        loaded.launch("test").grid(2u32).engine(engine).arg(&map).arg(&lost).run().unwrap();
        assert_eq!(
            (&map.read().unwrap()[6..8], lost.read().unwrap()[0]),
            (&[5000, 5000][..], 0),
            "{engine:?}"
        );
    }
}
