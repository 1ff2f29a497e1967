//! What each device is.

use std::ffi::{c_char, c_int, c_uint, c_ulonglong};

use devices::{uuid, uuid_text};

use crate::api::api;
use crate::pointers::{In, Out, Text, field, write_text};
use crate::state::{Handle, device, devices, find, handle, number, same_for_all};
use crate::status::Status;

/// The vendor's number on the bus. The device's, in the upper half, is 0, which no real one has.
const NVIDIA: c_uint = 0x10de;

/// `nvmlPciInfo_t` up to the version that the manual first had.
#[repr(C)]
struct Place1 {
    id: [c_char; 16],
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    kind: c_uint,
}

/// The second version. What follows it there is reserved, and not written.
#[repr(C)]
struct Place2 {
    place: Place1,
    subsystem: c_uint,
}

/// `nvmlPciInfo_t`.
#[repr(C)]
struct Place3 {
    place: Place2,
    id: [c_char; 32],
}

/// `nvmlPciInfoExt_v1_t`.
#[derive(Clone, Copy)]
#[repr(C)]
struct PlaceExt {
    version: c_uint,
    domain: c_uint,
    bus: c_uint,
    device: c_uint,
    kind: c_uint,
    subsystem: c_uint,
    base_class: c_uint,
    sub_class: c_uint,
    id: [c_char; 32],
}

/// `nvmlUUID_v1_t`: of type 1 a text, of type 2 bytes.
#[derive(Clone, Copy)]
#[repr(C)]
struct Uuid {
    version: c_uint,
    kind: c_uint,
    value: [u8; 41],
}

/// `nvmlDeviceAttributes_t`.
#[repr(C)]
struct Attributes {
    multiprocessors: c_uint,
    copy_engines: c_uint,
    others: [c_uint; 6],
    mebibytes: c_ulonglong,
}

fn place(number: u32) -> Place1 {
    let id = devices::bus_id(number);
    Place1 { id: field(&id), domain: 0, bus: devices::bus(number), device: 0, kind: NVIDIA }
}

/// The place as NVML writes it now, with eight digits for the domain.
fn long_id(number: u32) -> String {
    format!("0000{}", devices::bus_id(number))
}

/// The bus that a place names, such as `00000000:01:00.0`, `0000:01:00.0`, `1:0.0` or `01:00`, in domain 0, for the one device there.
fn bus_of(id: &str) -> Option<u32> {
    let id = id.trim();
    let (id, function) = id.rsplit_once('.').unwrap_or((id, "0"));
    let numbers = id.split(':').map(|part| u32::from_str_radix(part, 16).ok());
    match numbers.chain([function.parse().ok()]).collect::<Option<Vec<_>>>()?[..] {
        [0, bus, 0, 0] | [bus, 0, 0] => Some(bus),
        _ => None,
    }
}

/// What the name of a product begins with tells its brand.
fn brand(name: &str) -> c_uint {
    match name {
        _ if name.starts_with("Tesla") => 2,
        _ if name.contains("GeForce") => 5,
        _ if name.starts_with("NVIDIA") => 14,
        _ => 0,
    }
}

/// `NVML_DEVICE_ARCH_*`.
fn architecture(capability: u32) -> c_uint {
    match capability {
        50..60 => 3,
        60..70 => 4,
        70..75 => 5,
        75..80 => 6,
        80..89 => 7,
        89 => 8,
        90..100 => 9,
        100..=121 => 10,
        _ => c_uint::MAX,
    }
}

/// Lanes for single precision in a multiprocessor: the CUDA C++ Programming Guide's table of arithmetic throughput.
fn cores(capability: u32) -> c_uint {
    match capability {
        60 | 70..=80 => 64,
        _ => 128,
    }
}

/// Whether a GPU could be split: those of data centres since sm_80, which here are not.
fn has_parts(capability: u32) -> bool {
    matches!(capability, 80 | 90 | 100 | 103)
}

/// Lets go on only for a device that supports what the program asks for.
fn only_if(is_supported: bool) -> Result<(), Status> {
    if is_supported { Ok(()) } else { Err(Status::NOT_SUPPORTED) }
}

api! { API:
    /// How many devices there are, whatever `CUDA_VISIBLE_DEVICES` hides from CUDA.
    nvmlDeviceGetCount_v2 nvmlDeviceGetCount (count: Out<c_uint>) {
        count.write(devices()?.count)
    }
    /// The device of a number.
    nvmlDeviceGetHandleByIndex_v2 nvmlDeviceGetHandleByIndex (wanted: c_uint, result: Out<Handle>) {
        if wanted >= devices()?.count {
            return Err(Status::INVALID_ARGUMENT);
        }
        result.write(handle(wanted))
    }
    /// The device with a UUID, as `nvmlDeviceGetUUID` writes it.
    nvmlDeviceGetHandleByUUID (wanted: Text, result: Out<Handle>) {
        devices()?;
        let wanted = wanted.name()?;
        result.write(find(|number| uuid_text(number).eq_ignore_ascii_case(wanted))?)
    }
    /// The device with a UUID, as text or bytes.
    nvmlDeviceGetHandleByUUIDV (wanted: In<Uuid>, result: Out<Handle>) {
        devices()?;
        let Uuid { version, kind, value } = wanted.read()?;
        if version != size_of::<Uuid>() as c_uint | 1 << 24 {
            return Err(Status::ARGUMENT_VERSION_MISMATCH);
        }
        let end = value.iter().position(|&byte| byte == 0).unwrap_or(value.len());
        result.write(match kind {
            1 => find(|number| uuid_text(number).as_bytes().eq_ignore_ascii_case(&value[..end]))?,
            2 => find(|number| uuid(number) == value[..16])?,
            _ => return Err(Status::INVALID_ARGUMENT),
        })
    }
    /// The device at a place on the bus.
    nvmlDeviceGetHandleByPciBusId_v2 nvmlDeviceGetHandleByPciBusId (wanted: Text, result: Out<Handle>) {
        devices()?;
        let bus = bus_of(wanted.name()?).ok_or(Status::NOT_FOUND)?;
        result.write(find(|number| devices::bus(number) == bus)?)
    }
    /// The device with a serial number: none has one.
    nvmlDeviceGetHandleBySerial (wanted: Text, _result: Out<Handle>) {
        devices()?;
        wanted.name()?;
        Err(Status::NOT_FOUND)
    }
    /// The name of the product that the device emulates, or the one that `PTXVM_DEVICE_NAME` gives.
    nvmlDeviceGetName (of: Handle, name: Out<c_char>, length: c_uint) {
        write_text(name, length, &device(of)?.name)
    }
    /// What tells a device from others: the same as `cuDeviceGetUuid` tells.
    nvmlDeviceGetUUID (of: Handle, result: Out<c_char>, length: c_uint) {
        write_text(result, length, &uuid_text(number(of)?))
    }
    /// The number of a device.
    nvmlDeviceGetIndex nvmlDeviceGetMinorNumber nvmlDeviceGetModuleId (of: Handle, result: Out<c_uint>) {
        result.write(number(of)?)
    }
    /// The place on the bus: the same as `cuDeviceGetPCIBusId` tells.
    nvmlDeviceGetPciInfo_v3 (of: Handle, result: Out<Place3>) {
        let number = number(of)?;
        result.write(Place3 { place: Place2 { place: place(number), subsystem: 0 }, id: field(&long_id(number)) })
    }
    /// The place on the bus: the second form of the structure.
    nvmlDeviceGetPciInfo_v2 (of: Handle, result: Out<Place2>) {
        result.write(Place2 { place: place(number(of)?), subsystem: 0 })
    }
    /// The place on the bus: the first form of the structure.
    nvmlDeviceGetPciInfo (of: Handle, result: Out<Place1>) {
        result.write(place(number(of)?))
    }
    /// The place on the bus, and that it is a 3D controller.
    nvmlDeviceGetPciInfoExt (of: Handle, result: Out<PlaceExt>) {
        let number = number(of)?;
        let version = size_of::<PlaceExt>() as c_uint | 1 << 24;
        if result.read()?.version != version {
            return Err(Status::ARGUMENT_VERSION_MISMATCH);
        }
        let Place1 { domain, bus, device, kind, .. } = place(number);
        let id = field(&long_id(number));
        result.write(PlaceExt { version, domain, bus, device, kind, subsystem: 0, base_class: 3, sub_class: 2, id })
    }
    /// The kind of bus: PCIe.
    nvmlDeviceGetBusType (of: Handle, result: Out<c_uint>) {
        same_for_all(of, result, 2)
    }
    /// The brand of the product.
    nvmlDeviceGetBrand (of: Handle, result: Out<c_uint>) {
        result.write(brand(&device(of)?.name))
    }
    /// The generation of the chip.
    nvmlDeviceGetArchitecture (of: Handle, result: Out<c_uint>) {
        result.write(architecture(device(of)?.chip.capability))
    }
    /// The compute capability, as `cuDeviceGetAttribute` tells it.
    nvmlDeviceGetCudaComputeCapability (of: Handle, major: Out<c_int>, minor: Out<c_int>) {
        let chip = &device(of)?.chip;
        major.write(chip.major() as c_int)?;
        minor.write(chip.minor() as c_int)
    }
    /// How many lanes for single precision the device has.
    nvmlDeviceGetNumGpuCores (of: Handle, result: Out<c_uint>) {
        let chip = &device(of)?.chip;
        result.write(chip.multiprocessors * cores(chip.capability))
    }
    /// The width of the bus to memory in bits.
    nvmlDeviceGetMemoryBusWidth (of: Handle, result: Out<c_uint>) {
        result.write(device(of)?.chip.memory_bus)
    }
    /// Multiprocessors, copy engines and mebibytes of a device.
    nvmlDeviceGetAttributes_v2 nvmlDeviceGetAttributes (of: Handle, result: Out<Attributes>) {
        let devices = device(of)?;
        let (multiprocessors, mebibytes) = (devices.chip.multiprocessors, devices.memory >> 20);
        // As many engines as attribute 40 of the driver says.
        result.write(Attributes { multiprocessors, copy_engines: 3, others: [0; 6], mebibytes })
    }
    /// Who may use the device: everybody.
    nvmlDeviceGetComputeMode (of: Handle, mode: Out<c_uint>) {
        same_for_all(of, mode, 0)
    }
    /// Whether the driver stays when nobody uses it: it is nowhere then.
    nvmlDeviceGetPersistenceMode (of: Handle, mode: Out<c_uint>) {
        same_for_all(of, mode, 0)
    }
    /// Whether a display is connected, or drawn to: none is.
    nvmlDeviceGetDisplayMode nvmlDeviceGetDisplayActive (of: Handle, result: Out<c_uint>) {
        same_for_all(of, result, 0)
    }
    /// Whether the device is one of a virtual machine: no.
    nvmlDeviceGetVirtualizationMode (of: Handle, mode: Out<c_uint>) {
        same_for_all(of, mode, 0)
    }
    /// Whether memory corrects errors: that of data centres does, as `cuDeviceGetAttribute` tells it.
    nvmlDeviceGetEccMode (of: Handle, current: Out<c_uint>, pending: Out<c_uint>) {
        only_if(device(of)?.chip.has_ecc())?;
        current.write(1)?;
        pending.write(1)
    }
    /// Whether memory corrects errors unless somebody changes that.
    nvmlDeviceGetDefaultEccMode (of: Handle, result: Out<c_uint>) {
        only_if(device(of)?.chip.has_ecc())?;
        result.write(1)
    }
    /// How many errors of memory there have been: none.
    nvmlDeviceGetTotalEccErrors (of: Handle, _kind: c_uint, _counter: c_uint, count: Out<c_ulonglong>) {
        only_if(device(of)?.chip.has_ecc())?;
        count.write(0)
    }
    /// How many errors there have been in a part of memory: none.
    nvmlDeviceGetMemoryErrorCounter (of: Handle, _kind: c_uint, _counter: c_uint, _part: c_uint, count: Out<c_ulonglong>) {
        only_if(device(of)?.chip.has_ecc())?;
        count.write(0)
    }
    /// Whether the device is split into parts (MIG): those that could be are not.
    nvmlDeviceGetMigMode (of: Handle, current: Out<c_uint>, pending: Out<c_uint>) {
        only_if(has_parts(device(of)?.chip.capability))?;
        current.write(0)?;
        pending.write(0)
    }
    /// Into how many parts the device may be split: it may not.
    nvmlDeviceGetMaxMigDeviceCount (of: Handle, count: Out<c_uint>) {
        same_for_all(of, count, 0)
    }
    /// A part of a device: there is none.
    nvmlDeviceGetMigDeviceHandleByIndex (of: Handle, _index: c_uint, _part: Out<Handle>) {
        only_if(has_parts(device(of)?.chip.capability))?;
        Err(Status::NOT_FOUND)
    }
    /// Whether a handle is one of a part of a device: none is.
    nvmlDeviceIsMigDeviceHandle (of: Handle, result: Out<c_uint>) {
        same_for_all(of, result, 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_can_be_written_in_several_ways() {
        for id in ["00000000:0A:00.0", "0000:0a:00.0", "0:a:0.0", "a:00.0", "0A:00"] {
            assert_eq!(bus_of(id), Some(10), "{id}");
        }
        for id in ["", "x", "0001:0a:00.0", "0000:0a:01.0", "0000:0a:00.1", "0a"] {
            assert_eq!(bus_of(id), None, "{id}");
        }
    }
}
