//! What this library does not have: callbacks, which are machine code of the program, and transforms on several devices.

use mathlib::refused;

use crate::status::Status;

refused! { API: Status;
    cufftXtClearCallback cufftXtExecDescriptor cufftXtExecDescriptorC2C cufftXtExecDescriptorC2R cufftXtExecDescriptorD2Z
    cufftXtExecDescriptorR2C cufftXtExecDescriptorZ2D cufftXtExecDescriptorZ2Z cufftXtFree cufftXtMalloc cufftXtMemcpy
    cufftXtQueryPlan cufftXtSetCallback cufftXtSetCallbackSharedSize cufftXtSetDistribution cufftXtSetGPUs cufftXtSetJITCallback
    cufftXtSetSubformatDefault cufftXtSetWorkArea
}
