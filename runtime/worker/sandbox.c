/* sandbox.c - resource limits and Landlock of the workers (reliability.md 4). */
#include "runtime/worker/sandbox.h"

#include <fcntl.h>
#include <linux/landlock.h>
#include <signal.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Every right that a file system object can have as of Landlock ABI 5; older kernels know fewer. */
static const uint64_t rights_by_abi[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff};

/* What NVRTC opens while it compiles: its builtins library and the C++ runtime, through the
 * loader's cache. */
static const char *const readable[] = {"/usr/lib", "/usr/lib64", "/lib", "/lib64",
                                       "/etc/ld.so.cache"};

static bool set_limit(int what, uint64_t value)
{
    struct rlimit limit = {.rlim_cur = value, .rlim_max = value};

    return setrlimit((__rlimit_resource_t)what, &limit) == 0;
}

bool sandbox_enter(void)
{
    return prctl(PR_SET_PDEATHSIG, SIGKILL) == 0 && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
           close_range(3, ~0u, 0) == 0 && set_limit(RLIMIT_CORE, 0);
}

bool sandbox_limit(uint64_t memory_bytes)
{
    /* A file limit of zero would kill with SIGXFSZ; ignored, the write fails instead. */
    signal(SIGXFSZ, SIG_IGN);
    return set_limit(RLIMIT_FSIZE, 0) && set_limit(RLIMIT_AS, memory_bytes);
}

static void allow(int ruleset, const char *path, uint64_t rights)
{
    int fd = open(path, O_PATH | O_CLOEXEC);

    if (fd < 0) {
        return;
    }
    struct landlock_path_beneath_attr rule = {
        .allowed_access = rights,
        .parent_fd = fd,
    };
    syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0);
    close(fd);
}

/* A ruleset over the rights of `of` that this kernel knows, which are left in *handled; -1 without
 * Landlock. */
static int make_ruleset(uint64_t of, uint64_t *handled)
{
    const long abi = syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION);
    const long known = (long)(sizeof rights_by_abi / sizeof rights_by_abi[0]) - 1;

    if (abi < 1) {
        return -1;
    }
    *handled = of & rights_by_abi[abi > known ? known : abi];
    struct landlock_ruleset_attr attributes = {.handled_access_fs = *handled};
    return (int)syscall(SYS_landlock_create_ruleset, &attributes, sizeof attributes, 0);
}

static bool enforce(int ruleset)
{
    bool locked = syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;

    close(ruleset);
    return locked;
}

bool sandbox_lock_files(const char *folder)
{
    uint64_t handled = 0;
    const int ruleset = make_ruleset(~0ull, &handled);

    if (ruleset < 0) {
        return false;
    }
    for (size_t i = 0; i < sizeof readable / sizeof readable[0]; i++) {
        allow(ruleset, readable[i], LANDLOCK_ACCESS_FS_READ_FILE);
    }
    allow(ruleset, folder, LANDLOCK_ACCESS_FS_READ_FILE);
    return enforce(ruleset);
}

bool sandbox_lock_writing(void)
{
    const uint64_t reading =
        LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
    uint64_t handled = 0;
    const int ruleset = make_ruleset(~reading, &handled);

    if (ruleset < 0) {
        return false;
    }
    /* The nodes that a driver opens, and the names of its threads. */
    allow(ruleset, "/dev", handled);
    allow(ruleset, "/proc", LANDLOCK_ACCESS_FS_WRITE_FILE);
    return enforce(ruleset);
}

void sandbox_allow_cpu(uint64_t seconds)
{
    struct rusage usage = {0};
    struct rlimit limit = {.rlim_max = RLIM_INFINITY};

    getrlimit(RLIMIT_CPU, &limit); /* the hard limit stays: it cannot be raised again */
    getrusage(RUSAGE_SELF, &usage);
    limit.rlim_cur = (rlim_t)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) + seconds + 1;
    setrlimit(RLIMIT_CPU, &limit);
}
