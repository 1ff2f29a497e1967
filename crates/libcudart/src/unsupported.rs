//! Functions that are not supported. Each reports that once with `PTXVM_LOG=warn`.

use crate::api::not_supported;

not_supported! { API:
    __cudaGetProcAddress [13]
    cudaDestroyExternalMemory
    cudaDestroyExternalSemaphore
    cudaDevResourceGenerateDesc [13]
    cudaDevSmResourceSplit [13]
    cudaDevSmResourceSplitByCount [13]
    cudaDeviceGetDevResource [13]
    cudaDeviceGetExecutionCtx [13]
    cudaDeviceGetHostAtomicCapabilities [13]
    cudaDeviceGetNvSciSyncAttributes
    cudaDeviceGetP2PAtomicCapabilities [13]
    cudaDeviceRegisterAsyncNotification
    cudaDeviceUnregisterAsyncNotification
    cudaEGLStreamConsumerAcquireFrame
    cudaEGLStreamConsumerConnect
    cudaEGLStreamConsumerConnectWithFlags
    cudaEGLStreamConsumerDisconnect
    cudaEGLStreamConsumerReleaseFrame
    cudaEGLStreamProducerConnect
    cudaEGLStreamProducerDisconnect
    cudaEGLStreamProducerPresentFrame
    cudaEGLStreamProducerReturnFrame
    cudaEventCreateFromEGLSync
    cudaExecutionCtxDestroy [13]
    cudaExecutionCtxGetDevResource [13]
    cudaExecutionCtxGetDevice [13]
    cudaExecutionCtxGetId [13]
    cudaExecutionCtxRecordEvent [13]
    cudaExecutionCtxStreamCreate [13]
    cudaExecutionCtxSynchronize [13]
    cudaExecutionCtxWaitEvent [13]
    cudaExternalMemoryGetMappedBuffer
    cudaExternalMemoryGetMappedMipmappedArray
    cudaGLGetDevices
    cudaGLMapBufferObject
    cudaGLMapBufferObjectAsync
    cudaGLRegisterBufferObject
    cudaGLSetBufferObjectMapFlags
    cudaGLSetGLDevice
    cudaGLUnmapBufferObject
    cudaGLUnmapBufferObjectAsync
    cudaGLUnregisterBufferObject
    cudaGraphAddExternalSemaphoresSignalNode
    cudaGraphAddExternalSemaphoresWaitNode
    cudaGraphConditionalHandleCreate_v2 [13]
    cudaGraphExecExternalSemaphoresSignalNodeSetParams
    cudaGraphExecExternalSemaphoresWaitNodeSetParams
    cudaGraphExternalSemaphoresSignalNodeGetParams
    cudaGraphExternalSemaphoresSignalNodeSetParams
    cudaGraphExternalSemaphoresWaitNodeGetParams
    cudaGraphExternalSemaphoresWaitNodeSetParams
    cudaGraphNodeGetParams [13]
    cudaGraphicsEGLRegisterImage
    cudaGraphicsGLRegisterBuffer
    cudaGraphicsGLRegisterImage
    cudaGraphicsMapResources
    cudaGraphicsResourceGetMappedEglFrame
    cudaGraphicsResourceGetMappedMipmappedArray
    cudaGraphicsResourceGetMappedPointer
    cudaGraphicsResourceSetMapFlags
    cudaGraphicsSubResourceGetMappedArray
    cudaGraphicsUnmapResources
    cudaGraphicsUnregisterResource
    cudaGraphicsVDPAURegisterOutputSurface
    cudaGraphicsVDPAURegisterVideoSurface
    cudaGreenCtxCreate [13]
    cudaImportExternalMemory
    cudaImportExternalSemaphore
    cudaLaunchCooperativeKernelMultiDevice [12]
    cudaLaunchHostFunc_v2 [13]
    cudaLaunchHostFunc_v2_ptsz [13]
    cudaLogsCurrent [13]
    cudaLogsDumpToFile [13]
    cudaLogsDumpToMemory [13]
    cudaLogsRegisterCallback [13]
    cudaLogsUnregisterCallback [13]
    cudaMemDiscardAndPrefetchBatchAsync [13]
    cudaMemDiscardAndPrefetchBatchAsync_ptsz [13]
    cudaMemDiscardBatchAsync [13]
    cudaMemDiscardBatchAsync_ptsz [13]
    cudaMemGetLocationInfo [13]
    cudaMemPrefetchBatchAsync [13]
    cudaMemPrefetchBatchAsync_ptsz [13]
    cudaMemcpy3DBatchAsync
    cudaMemcpy3DBatchAsync_ptsz
    cudaMemcpy3DWithAttributesAsync [13]
    cudaMemcpy3DWithAttributesAsync_ptsz [13]
    cudaMemcpyArrayToArray
    cudaMemcpyArrayToArray_ptds
    cudaMemcpyBatchAsync
    cudaMemcpyBatchAsync_ptsz
    cudaMemcpyWithAttributesAsync [13]
    cudaMemcpyWithAttributesAsync_ptsz [13]
    cudaSignalExternalSemaphoresAsync
    cudaSignalExternalSemaphoresAsync_ptsz
    cudaSignalExternalSemaphoresAsync_v2 [12]
    cudaSignalExternalSemaphoresAsync_v2_ptsz [12]
    cudaStreamBeginRecaptureToGraph [13]
    cudaStreamBeginRecaptureToGraph_ptsz [13]
    cudaStreamGetDevResource [13]
    cudaStreamGetDevResource_ptsz [13]
    cudaSubgridCreate [13]
    cudaSubgridWorkerGridCreate [13]
    cudaSubgridWorksetCreate [13]
    cudaVDPAUGetDevice
    cudaVDPAUSetVDPAUDevice
    cudaWaitExternalSemaphoresAsync
    cudaWaitExternalSemaphoresAsync_ptsz
    cudaWaitExternalSemaphoresAsync_v2 [12]
    cudaWaitExternalSemaphoresAsync_v2_ptsz [12]
}
