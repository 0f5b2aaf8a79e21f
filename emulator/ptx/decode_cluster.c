/* decode_cluster.c - clusters: barrier.cluster, mapa, getctarank, setmaxnreg, griddepcontrol. */
#include "emulator/ptx/build.h"

bool ptx_decode_cluster_barrier(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}

bool ptx_decode_mapa(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}

bool ptx_decode_getctarank(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}

bool ptx_decode_setmaxnreg(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}

bool ptx_decode_griddepcontrol(ptx_builder *b, ptx_form *f)
{
    (void)b;
    (void)f;
    return false;
}
