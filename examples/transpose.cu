// transpose.cu - y = x^T of a square matrix through shared memory, 32 x 32 words a CTA of 32 x 8
// threads. Its tile has no padding: a column lies in one bank. `hone emu profile` shows what that
// costs; [TILE][TILE + 1] is the cure.
constexpr int TILE = 32, ROWS = 8;

extern "C" __global__ void transpose(float *y, const float *x, unsigned n)
{
    __shared__ float tile[TILE][TILE];
    const unsigned left = blockIdx.x * TILE, top = blockIdx.y * TILE;

    for (unsigned row = threadIdx.y; row < TILE; row += ROWS) {
        tile[row][threadIdx.x] = x[(top + row) * n + left + threadIdx.x];
    }
    __syncthreads();
    for (unsigned row = threadIdx.y; row < TILE; row += ROWS) {
        y[(left + row) * n + top + threadIdx.x] = tile[threadIdx.x][row];
    }
}
