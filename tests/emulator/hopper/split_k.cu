// split_k.cu - D[m, n] += A[m, k] B[k, n] in fp32: CTAs along z take a part of k each and add their
// tile to D by the engine's reduction. Two parts on zeros give the same bits in either order.
enum { TILE = 32 };

extern "C" __global__ void __launch_bounds__(256)
split_k(const float *a, const float *b, const __grid_constant__ TensorMap d, int4 shape)
{
    __shared__ __align__(128) float tile[TILE][TILE];
    int m = shape.x, n = shape.y, k = shape.z, part = k / (int)gridDim.z;
    int from = (int)blockIdx.z * part;
    for (int i = (int)threadIdx.x; i < TILE * TILE; i += 256) {
        int row = (int)blockIdx.x * TILE + i / TILE, col = (int)blockIdx.y * TILE + i % TILE;
        float sum = 0;
        for (int p = from; p < from + part && row < m && col < n; p++) {
            sum += a[row * k + p] * b[p * n + col];
        }
        tile[i / TILE][i % TILE] = sum;
    }
    fence_async();
    __syncthreads();
    if (threadIdx.x == 0) {
        tensor_add(&d, shared_at(tile), (int)blockIdx.y * TILE, (int)blockIdx.x * TILE);
        bulk_commit();
        bulk_wait<0>();
    }
}
