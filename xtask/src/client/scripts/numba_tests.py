"""numba's own tests but for one, behind which nothing would work: it writes ten numbers to an array of one, and that breaks its context."""
import sys

from numba.cuda.tests.cudapy.test_localmem import TestCudaLocalMem
from numba.testing import run_tests

if __name__ == "__main__":
    del TestCudaLocalMem.test_struct_model_type_arr
    sys.exit(0 if run_tests(sys.argv).wasSuccessful() else 1)
