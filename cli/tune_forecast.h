/* tune_forecast.h - `hone tune --dry-run`: what a sweep would cost. */
#ifndef HONE_CLI_TUNE_FORECAST_H
#define HONE_CLI_TUNE_FORECAST_H

#include "tuner/sweep.h"

/* Forecast the sweep against the store at `path`, which need not be there and is not changed, and
 * print one line, or JSON. */
hone_status tune_forecast(const sweep_options *options, const char *path, bool json,
                          hone_error *error);

#endif
