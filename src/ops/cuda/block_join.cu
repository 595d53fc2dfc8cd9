/*
 * block_join.cu: results that several blocks share: blockIdx.x is the result, or group of results, and blockIdx.y a block's
 * part of it. The last one to finish joins what all have left behind. Goes behind the definitions of block_join.h.
 */

/* How many blocks have left something, for each result and for each stream that may run the kernel. They are 0 between
 * two launches. */
static __device__ unsigned counters[SLOTS][COUNTERS];

/* Whether this block is the last one; what the others left is visible to it then. The barriers bring all threads under
 * the fences of the first: what the block left comes before its count, and what it reads then comes after it. */
ELEMENT bool is_last(int slot)
{
    __shared__ bool found;
    unsigned *counter = &counters[slot][blockIdx.x];
    __syncthreads();
    if (threadIdx.x == 0) {
        __threadfence();
        found = atomicAdd(counter, 1u) == gridDim.y - 1;
        __threadfence();
        if (found)
            *counter = 0;
    }
    __syncthreads();
    return found;
}
