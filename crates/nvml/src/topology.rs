//! How devices hang together: each is alone on its bus, all buses are at one bridge, and each device reaches the memory of the others.

use std::ffi::{c_int, c_uint};

use crate::api::api;
use crate::pointers::{Out, write_list};
use crate::state::{Handle, device, handle, number, same_for_all};
use crate::status::Status;

/// `NVML_TOPOLOGY_INTERNAL`: of a device and itself.
const INTERNAL: c_uint = 0;
/// `NVML_TOPOLOGY_HOSTBRIDGE`.
const BRIDGE: c_uint = 30;
/// `NVML_P2P_STATUS_NOT_SUPPORTED`.
const NO_WAY: c_uint = 5;
/// `NVML_P2P_CAPS_INDEX_NVLINK`.
const LINK: c_uint = 2;

api! { API:
    /// What is common to the places of two devices: the bridge of the host.
    nvmlDeviceGetTopologyCommonAncestor (one: Handle, other: Handle, level: Out<c_uint>) {
        level.write(if number(one)? == number(other)? { INTERNAL } else { BRIDGE })
    }
    /// The devices that are as near to one as a level says: all others behind the bridge.
    nvmlDeviceGetTopologyNearestGpus (of: Handle, level: c_uint, count: Out<c_uint>, places: Out<Handle>) {
        let (own, all) = (number(of)?, device(of)?.count);
        let near = (0..all).filter(|other| level == BRIDGE && *other != own).map(handle);
        write_list(count, places, near.collect())
    }
    /// Whether a device reaches another one: it reads, writes and does atomics, without NVLink.
    nvmlDeviceGetP2PStatus (one: Handle, other: Handle, way: c_uint, status: Out<c_uint>) {
        number(one).and(number(other))?;
        match way {
            LINK => status.write(NO_WAY),
            0..=4 => status.write(0),
            _ => Err(Status::INVALID_ARGUMENT),
        }
    }
    /// Whether two devices are on one board: no two are.
    nvmlDeviceOnSameBoard (one: Handle, other: Handle, result: Out<c_int>) {
        result.write((number(one)? == number(other)?).into())
    }
    /// Whether a board has several devices: none has.
    nvmlDeviceGetMultiGpuBoard (of: Handle, result: Out<c_uint>) {
        same_for_all(of, result, 0)
    }
    /// A number of the board: that of the device's bus, in bits 8 to 15.
    nvmlDeviceGetBoardId (of: Handle, id: Out<c_uint>) {
        id.write(devices::bus(number(of)?) << 8)
    }
}
