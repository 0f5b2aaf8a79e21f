/* plan_rule.h - how scales are made; apart from plan.h, so that what launches kernels can have it:
 * there `plan` is a launch's. */
#ifndef HONE_CONVERT_PLAN_RULE_H
#define HONE_CONVERT_PLAN_RULE_H

/* How a requantised block's scale follows from its largest magnitude. */
typedef enum plan_rule {
    PLAN_CEIL = 1,    /* the power of two at or above amax / 448 */
    PLAN_AMAX = 2,    /* amax / 448, fp32 */
    PLAN_NEAREST = 3, /* the nearest power of two, which saturates: to see what that costs */
} plan_rule;

#endif
