//! `--schedule`: blocks take turns at any time, also those that wait for nobody.

use ptxvm::{Device, Error, Module};

/// Each block reads a counter, works a little, and writes the next number: an update is lost where another block came between.
const LOSES_UPDATES: &str = "
.version 7.0
.target sm_80
.address_size 64
.visible .entry count(.param .u64 counter) {
    .reg .u64 %counter;
    .reg .u32 %x, %i;
    .reg .pred %p;
    ld.param.u64 %counter, [counter];
    ld.global.u32 %x, [%counter];
    mov.u32 %i, 0;
LOOP:
    add.u32 %i, %i, 1;
    setp.lt.u32 %p, %i, 4;
    @%p bra LOOP;
    add.u32 %x, %x, 1;
    st.global.u32 [%counter], %x;
    ret;
}";

#[test]
fn blocks_give_way_where_they_wait_for_nobody() -> Result<(), Error> {
    let device = Device::new();
    let loaded = device.load(&Module::from_ptx(LOSES_UPDATES)?)?;
    let mut is_lost = false;
    for seed in 0..16 {
        let counter = device.zeros::<u32>(1)?;
        let launch = loaded.launch("count").grid(2).block(1).arg(&counter);
        launch.configure(|config| config.schedule = Some(seed)).run()?;
        is_lost |= counter.read()?[0] == 1;
    }
    assert!(is_lost, "no schedule loses an update");
    Ok(())
}
