//! What this library does not have: windows, one-sided access and what kernels communicate by, changes of a communicator that runs, simulation.

use mathlib::refused;

use crate::status::Status;

refused! { API: Status;
    ncclAlltoAll ncclCommGetUniqueId ncclCommGrow ncclCommMemStats ncclCommQueryProperties ncclCommResume ncclCommRevoke ncclCommShrink ncclCommSuspend
    ncclCommWindowDeregister ncclDevCommCreate ncclDevCommDestroy
    ncclCommWindowRegister ncclGather ncclGroupSimulateEnd ncclPutSignal ncclScatter ncclSignal ncclWaitSignal ncclWinGetUserPtr
    ncclGetLsaDevicePointer ncclGetLsaMultimemDevicePointer ncclGetMultimemDevicePointer ncclGetPeerDevicePointer
    ncclGinBarrierCreateRequirement ncclGinInboxA2ACreateRequirement ncclGinOutboxCreateRequirement
    ncclLLA2ACreateRequirement ncclLsaBarrierCreateRequirement
}
