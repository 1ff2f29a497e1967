//! What this library does not have: callbacks, which are machine code of the program, transforms on several devices, and what has no manual.

use mathlib::refused;

use crate::status::Status;

refused! { API: Status;
    __cufftXtSetJITCallback_12_7 cufftDebug cufftXtClearCallback cufftXtExecDescriptor cufftXtExecDescriptorC2C cufftXtExecDescriptorC2R cufftXtExecDescriptorD2Z
    cufftXtExecDescriptorR2C cufftXtExecDescriptorZ2D cufftXtExecDescriptorZ2Z cufftXtFree cufftXtMakePlanGuru64 cufftXtMalloc cufftXtMemcpy
    cufftXtQueryPlan cufftXtSetCallback cufftXtSetCallbackSharedSize cufftXtSetDistribution cufftXtSetGPUs cufftXtSetJITCallback
    cufftXtSetSubformatDefault cufftXtSetWorkArea
}
