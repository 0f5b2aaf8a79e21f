/* main.c - the hone program: finds the command and hands the rest of the line to it. */
#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} commands[] = {
    {"devices", "list the GPUs that are here and those that can be emulated", command_devices},
    {"models", "list LLM architectures, or show what one asks of a rank", command_models},
    {"space", "count the legal configs of templates for a problem", command_space},
    {"compile", "compile a candidate and print what ptxas reports", command_compile},
    {"verify", "compare candidates with float64 references", command_verify},
    {"bench", "prove and time one candidate of a problem", command_bench},
    {"tune", "prove and time candidates, keep the winners", command_tune},
    {"emu", "run, profile or check any kernel on an emulated GPU", command_emu},
    {"report", "print winners, what bounds them, and what was rejected", command_report},
    {"lookup", "print what serving would launch for a problem", command_lookup},
    {"store", "check a store, or list its candidates", command_store},
    {"convert", "convert a checkpoint's weights, or check its scales", command_convert},
    {NULL, NULL, NULL},
};

static void usage(FILE *to)
{
    fputs("Usage: hone COMMAND [OPTION...]\n\n", to);
    for (size_t i = 0; commands[i].name != NULL; i++) {
        fprintf(to, "  %-10s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\n`hone COMMAND --help` says more.\n", to);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        usage(stderr);
        return CLI_USAGE;
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "help") == 0) {
        usage(stdout);
        return CLI_DONE;
    }
    for (size_t i = 0; commands[i].name != NULL; i++) {
        if (strcmp(argv[1], commands[i].name) == 0) {
            return commands[i].run(argc - 1, argv + 1);
        }
    }
    fprintf(stderr, "hone: no command '%s'; `hone --help` lists them\n", argv[1]);
    return CLI_USAGE;
}
