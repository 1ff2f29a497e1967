//! Textures and surfaces on the command line.

mod common;

use common::Folder;

const KERNEL: &str = ".version 8.0\n.target sm_80\n.address_size 64\n.global .texref picture;\n\
    .visible .entry test(.param .u64 given, .param .u64 surface, .param .u64 out)\n{\n\
    .reg .u64 %t, %s, %out;\n.reg .u32 %i, %b;\n.reg .f32 %x, %y, %z, %r, %unused;\n\
    ld.param.u64 %t, [given];\nld.param.u64 %s, [surface];\nld.param.u64 %out, [out];\n\
    mov.u32 %i, %tid.x;\ncvt.rn.f32.u32 %x, %i;\nmul.f32 %x, %x, 0.25;\nmov.f32 %y, 0.5;\n\
    tex.2d.v4.f32.f32 {%r, %unused, %unused, %unused}, [%t, {%x, %y}];\n\
    shl.b32 %b, %i, 2;\nsust.b.2d.b32.trap [%s, {%b, 1}], %r;\n\
    tex.2d.v4.f32.f32 {%z, %unused, %unused, %unused}, [picture, {%x, %y}];\n\
    mad.wide.u32 %out, %i, 4, %out;\nst.global.f32 [%out], %z;\nret;\n}\n";

fn folder() -> Folder {
    let folder = Folder::new();
    folder.write("k.ptx", KERNEL);
    let numbers: Vec<u8> = [1.0f32, 2.0, 4.0, 8.0].iter().flat_map(|number| number.to_le_bytes()).collect();
    folder.write("x.bin", numbers);
    folder
}

#[test]
fn arguments_bindings_and_outputs() {
    let folder = folder();
    // Half of a texel is blended, and the border where normalised coordinates are past 1.
    let outcome = folder.run(
        "run k.ptx --block 6 --arg texture(@x.bin:f32,extent=1x4,filter=linear) --arg surface(f32[3x6]=9) --arg f32[6] \
         --bind picture=texture(@x.bin:f32,extent=1x4,address=border,border=0.5,normalized) --print 1 --print 2",
    );
    assert_eq!(outcome.code, Some(0), "{}", outcome.transcript());
    let text = &outcome.stdout;
    assert!(text.contains("[1, 1, 1, 1.25, 1.5, 1.75]"), "{text}");
    assert!(text.contains("[1, 2, 4, 8, 0.5, 0.5]"), "{text}");
}

#[test]
fn what_is_wrong_is_said() {
    let folder = folder();
    let rest = "--arg u64[1] --arg u64[1]";
    for (arg, code, part) in [
        ("texture(f64[3])", 2, "no texels of f64"),
        ("texture(f32[0x3])", 2, "extent"),
        ("texture(f32[3],levels=9)", 2, "mipmap levels"),
        ("texture(f32[3],filter=cubic)", 2, "point, linear"),
        ("texture(@none.npy)", 1, "none.npy"),
    ] {
        folder.fails(&format!("run k.ptx --arg {arg} {rest}"), code, &[part]);
    }
    let fault = "run k.ptx --arg texture(f32[2x2]) --arg surface(f32[2x2]) --arg f32[1]";
    folder.fails(fault, 3, &["`picture` is not bound"]);
    folder.fails(&format!("{fault} --bind picture"), 2, &["NAME=texture"]);
    folder.fails(&format!("{fault} --bind other=texture(f32[2x2])"), 2, &["no such texture"]);
    folder.fails(&format!("{fault} --bind picture=sampler(normalized)"), 2, &["no such texture"]);
}
