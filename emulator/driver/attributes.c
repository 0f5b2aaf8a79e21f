/* attributes.c - what a launch's attributes ask for: clusters, all CTAs at once, events; and the
 * driver's rules for them. Those that only steer when things happen change nothing on a serial
 * device. */
#include "emulator/driver/shim.h"

enum {
    CLUSTER_PORTABLE = 8, /* CTAs of a cluster that every device takes; more must be allowed */
    CLUSTER_MOST = 16,
    ARCH_CLUSTERS = 90,
    ATTRIBUTE_LAST = CU_LAUNCH_ATTRIBUTE_NVLINK_UTIL_CENTRIC_SCHEDULING,
};

static CUresult read_cluster(const CUlaunchAttributeValue *v, shim_attributes *out)
{
    out->cluster[0] = v->clusterDim.x;
    out->cluster[1] = v->clusterDim.y;
    out->cluster[2] = v->clusterDim.z;
    out->clustered = true;
    return v->clusterDim.x > 0 && v->clusterDim.y > 0 && v->clusterDim.z > 0
               ? CUDA_SUCCESS
               : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}

static CUresult read_event(const shim_context *c, CUevent event, shim_attributes *out)
{
    out->event = event;
    return shim_object_get(c, SHIM_EVENT, event) != NULL ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

static CUresult read_one(const shim_context *c, const CUlaunchAttribute *a, shim_attributes *out)
{
    const CUlaunchAttributeValue *v = &a->value;

    switch (a->id) {
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
        return read_cluster(v, out);
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
        out->cooperative = v->cooperative != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION:
        out->overlaps = v->programmaticStreamSerializationAllowed != 0;
        return CUDA_SUCCESS;
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
        return (unsigned)v->clusterSchedulingPolicyPreference <=
                       CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING
                   ? CUDA_SUCCESS
                   : CUDA_ERROR_INVALID_VALUE;
    case CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_EVENT:
        return read_event(c, v->programmaticEvent.event, out);
    case CU_LAUNCH_ATTRIBUTE_LAUNCH_COMPLETION_EVENT:
        return read_event(c, v->launchCompletionEvent.event, out);
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE: /* of graphs only */
        return v->deviceUpdatableKernelNode.deviceUpdatable ? CUDA_ERROR_INVALID_VALUE
                                                            : CUDA_SUCCESS;
    default:
        return (unsigned)a->id <= ATTRIBUTE_LAST ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    }
}

/* What the function requires goes before what the launch says, and the two must agree. */
static CUresult settle_cluster(const shim_function *f, shim_attributes *a)
{
    const int *required = f->required_cluster;

    if (required[0] > 0 && required[1] > 0 && required[2] > 0) {
        bool agree = true;
        for (int d = 0; d < 3; d++) {
            agree = agree && (!a->clustered || a->cluster[d] == (unsigned)required[d]);
            a->cluster[d] = (unsigned)required[d];
        }
        a->clustered = true;
        return agree ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    if (required[0] > 0 || required[1] > 0 || required[2] > 0) {
        return CUDA_ERROR_INVALID_CLUSTER_SIZE;
    }
    return f->facts.explicit_cluster && !a->clustered ? CUDA_ERROR_INVALID_CLUSTER_SIZE
                                                      : CUDA_SUCCESS;
}

CUresult shim_attributes_read(const shim_function *f, const CUlaunchConfig *config,
                              shim_attributes *out)
{
    CUresult result = CUDA_SUCCESS;

    *out = (shim_attributes){.cluster = {0}};
    for (unsigned i = 0; i < config->numAttrs && result == CUDA_SUCCESS; i++) {
        result = read_one(f->head.context, &config->attrs[i], out);
    }
    return result == CUDA_SUCCESS ? settle_cluster(f, out) : result;
}

unsigned shim_cluster_most(const shim_function *f)
{
    unsigned most = f->non_portable ? CLUSTER_MOST : CLUSTER_PORTABLE;

    if (f->head.context->device->gpu.facts.arch < ARCH_CLUSTERS) {
        return 1;
    }
    return f->facts.max_cluster_rank > 0 && f->facts.max_cluster_rank < most
               ? f->facts.max_cluster_rank
               : most;
}

CUresult shim_cluster_check(const shim_function *f, const CUlaunchConfig *config,
                            const shim_attributes *a)
{
    const unsigned grid[3] = {config->gridDimX, config->gridDimY, config->gridDimZ};
    unsigned most = shim_cluster_most(f), size = 1;

    for (int d = 0; a->clustered && d < 3; d++) {
        if (a->cluster[d] > CLUSTER_MOST || grid[d] % a->cluster[d] != 0) {
            return CUDA_ERROR_INVALID_CLUSTER_SIZE;
        }
        size *= a->cluster[d];
    }
    if (size > 1 && f->head.context->device->gpu.facts.arch < ARCH_CLUSTERS) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    return size <= most ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CLUSTER_SIZE;
}
