/* cli.h - what the commands of the hone program share: exit codes and one function a command. */
#ifndef HONE_CLI_CLI_H
#define HONE_CLI_CLI_H

#include "core/status.h"

/* Exit codes. */
enum {
    CLI_DONE = 0,
    CLI_FAILED = 1,      /* a problem ended without a winner, or a check failed */
    CLI_USAGE = 2,       /* wrong usage or input */
    CLI_ENVIRONMENT = 3, /* the environment lacks something */
};

int command_models(int argc, char **argv);
int command_devices(int argc, char **argv);
int command_space(int argc, char **argv);
int command_report(int argc, char **argv);
int command_store(int argc, char **argv);
int command_compile(int argc, char **argv);
int command_lookup(int argc, char **argv);
int command_tune(int argc, char **argv);
int command_verify(int argc, char **argv);
int command_bench(int argc, char **argv);
int command_emu(int argc, char **argv);
int command_convert(int argc, char **argv);

#endif
