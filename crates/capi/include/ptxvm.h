/* ptxvm: runs NVIDIA PTX kernels on a CPU.
 *
 * Pointers of this process are device addresses: a kernel reads and writes what they point to, in place and unchecked.
 * What goes wrong is written to stderr with the kernel and the line; nothing aborts the process.
 * Link with libptxvm_c.so, or with libptxvm_c.a and -lpthread -ldl -lm.
 */
#ifndef PTXVM_H
#define PTXVM_H

#ifdef __cplusplus
extern "C" {
#endif

/* What ptxvm_run returns. */
#define PTXVM_OK 0         /* everything went well */
#define PTXVM_BAD_PTX 1    /* the PTX is wrong */
#define PTXVM_BAD_LAUNCH 2 /* the launch is wrong: arguments, extents, shared memory */
#define PTXVM_FAULT 3      /* a thread faulted */
#define PTXVM_DEFECT 4     /* a defect of the library itself */

/* Runs the first kernel of a PTX text and waits until it has ended.
 *
 *   ptx           NUL-terminated PTX. It is compiled when it is first seen.
 *   n_args        number of arguments: as many as the kernel has parameters
 *   args          args[i] IS the value of parameter i (it does not point to it): a pointer, or an integer or the bits
 *                 of a float in its low bytes
 *   block_*       threads of a block
 *   grid_*        blocks
 *   shared_bytes  dynamic shared memory of a block
 *
 * Threads may call it at the same time.
 */
int ptxvm_run(const char *ptx, int n_args, void **args, int block_x, int block_y, int block_z, int grid_x, int grid_y,
              int grid_z, int shared_bytes);

/* The same under the name and with the signature of gpuocelot's function. */
void ptx_run(const char *ptx, int n_args, void **args, int block_x, int block_y, int block_z, int grid_x, int grid_y,
             int grid_z, int shared_bytes);

#ifdef __cplusplus
}
#endif

#endif
