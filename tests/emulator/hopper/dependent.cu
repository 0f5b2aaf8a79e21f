// dependent.cu - two launches, of which the second may begin before the first has ended.
extern "C" __global__ void first(const u32 *in, u32 *between)
{
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    between[i] = in[i] * 3;
}

extern "C" __global__ void second(const u32 *between, u32 *out)
{
    asm volatile("griddepcontrol.wait;" ::: "memory");
    u32 i = blockIdx.x * blockDim.x + threadIdx.x;
    out[i] = between[i] + 1;
}
