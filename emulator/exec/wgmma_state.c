/* wgmma_state.c - what a warp keeps from one wgmma to the next. */
#include "emulator/exec/wgmma.h"

#include <stdlib.h>
#include <string.h>

wgmma_pending *wgmma_state(warp *w)
{
    if (w->wgmma == NULL) {
        w->wgmma = aligned_alloc(_Alignof(wgmma_pending), sizeof *w->wgmma);
        if (w->wgmma == NULL) {
            w->run->out_of_memory = true;
            return NULL;
        }
        memset(w->wgmma, 0, sizeof *w->wgmma);
    }
    return w->wgmma;
}

void wgmma_close(warp *w)
{
    if (w->wgmma != NULL) {
        free(w->wgmma->kept);
    }
    free(w->wgmma);
    w->wgmma = NULL;
}
