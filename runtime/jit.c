/* jit.c - a thread for each compile worker, a queue of requests before them and one of answers
 * behind. */
#include "runtime/jit.h"

#include "runtime/jit_answer.h"
#include "runtime/paths.h"
#include "runtime/worker.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define JIT_MAX_PENDING  4096
#define JIT_MAX_WORKERS  256
#define JIT_DEADLINE_MS  60000
#define JIT_CPU_SECONDS  60
#define JIT_MEMORY_BYTES (4ull << 30)

/* NVRTC keeps some memory of every compile; a fresh process after this many costs less than a
 * thousandth. */
#define JIT_JOBS_PER_WORKER 500

typedef struct jit_job {
    struct jit_job *next;
    jit_request request;
    bool describe; /* start a worker to learn NVRTC's version; compile nothing */
    jit_done done;
} jit_job;

typedef struct jit_queue {
    jit_job *first, **last;
} jit_queue;

struct jit {
    jit_options options;
    char program[PATHS_MAX];
    kernel_cache *cache; /* NULL: none */
    pthread_mutex_t lock;
    pthread_cond_t asked, answered;
    jit_queue requests, answers;
    size_t pending; /* submitted, not yet taken by jit_wait */
    bool closing, described;
    jit_version version;
    pthread_t threads[JIT_MAX_WORKERS];
    int cancel_fd; /* an eventfd: closing ends what still compiles */
    int threads_len;
};

/* What one thread works with. */
typedef struct jit_slot {
    jit *j;
    int index;
    worker w;
    jit_version version; /* from its hello */
} jit_slot;

/* A compile for kernel_cache_make. */
typedef struct jit_make {
    jit_slot *slot;
    const jit_request *request;
    bool timed_out;
} jit_make;

static const char *const program_folders[] = {
    ".", "../runtime", "../../runtime", "../libexec", "../../libexec", "../../../libexec", NULL};

/* All that a compiler inherits. */
static const char *const inherited[] = {"HONE_CUDA_PATH", "CUDA_HOME", "CUDA_PATH",
                                        "LD_LIBRARY_PATH", NULL};

static void queue_push(jit_queue *q, jit_job *job)
{
    job->next = NULL;
    *q->last = job;
    q->last = &job->next;
}

static jit_job *queue_pop(jit_queue *q)
{
    jit_job *job = q->first;

    if (job != NULL) {
        q->first = job->next;
        q->last = q->first != NULL ? q->last : &q->first;
    }
    return job;
}

/* Keep the first worker's version; all others must be the same, since the cache's keys hold it. */
static hone_status adopt_version(jit *j, const jit_version *version, hone_error *error)
{
    bool same = true;

    pthread_mutex_lock(&j->lock);
    if (j->described) {
        same = strcmp(j->version.build, version->build) == 0 &&
               j->version.nvrtc_version == version->nvrtc_version;
    } else {
        j->version = *version;
        j->described = true;
    }
    pthread_mutex_unlock(&j->lock);
    return same ? HONE_OK
                : status_set(error, HONE_ENVIRONMENT, version->library, 0,
                             "NVRTC was replaced while compiling; run again");
}

static hone_status slot_start(jit_slot *s, hone_error *error)
{
    hone_status status = HONE_OK;
    uint8_t *hello = NULL;
    size_t hello_len = 0;
    char memory[32];
    const worker_program program = {s->j->program, "the compiler", inherited, memory};

    if (s->w.pid > 0 && s->w.jobs < JIT_JOBS_PER_WORKER) {
        return HONE_OK;
    }
    worker_stop(&s->w);
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)s->j->options.memory_bytes);
    TRY(worker_start(&s->w, &program, s->j->cancel_fd, &hello, &hello_len, error));
    TRY(jit_answer_hello(hello, hello_len, &s->version, error));
    TRY(adopt_version(s->j, &s->version, error));
done:
    free(hello);
    if (status != HONE_OK) {
        worker_stop(&s->w);
    }
    return status;
}

static bool build_message(const jit_request *request, uint32_t cpu_seconds, wire_writer *w)
{
    wire_begin(w, WIRE_COMPILE);
    wire_put_text(w, request->name);
    wire_put_text(w, request->source.source);
    wire_put_u64(w, request->source.headers_len);
    for (size_t i = 0; i < request->source.headers_len; i++) {
        wire_put_text(w, request->source.names[i]);
        wire_put_text(w, request->source.headers[i]);
    }
    wire_put_u64(w, request->entries_len);
    for (size_t i = 0; i < request->entries_len; i++) {
        wire_put_text(w, request->entries[i]);
    }
    wire_put_u64(w, (uint64_t)request->arch);
    wire_put_u64(w, (uint64_t)request->max_registers);
    wire_put_u64(w, request->lineinfo);
    wire_put_u64(w, cpu_seconds);
    return wire_end(w);
}

/* kernel_make_fn: one exchange with this slot's worker. */
static hone_status make_entry(void *context, kernel_entry *out, hone_error *error)
{
    hone_status status = HONE_OK;
    jit_make *make = context;
    jit_slot *s = make->slot;
    wire_writer message = {.failed = false};
    uint8_t *answer = NULL;
    size_t len = 0;
    bool spent = false;

    TRY(slot_start(s, error));
    if (!build_message(make->request, s->j->options.cpu_seconds, &message)) {
        status = status_set(error, HONE_LIMIT, make->request->name, 0,
                            "source and headers are over %u MiB", WIRE_MAX_BYTES >> 20);
        goto done;
    }
    TRY(worker_exchange(&s->w, &message, s->j->options.deadline_ms, &answer, &len, &make->timed_out,
                        error));
    TRY(jit_answer_read(make->request, &s->version, answer, len, out, &spent, error));
done:
    if (spent) {
        worker_stop(&s->w);
    }
    free(answer);
    wire_free(&message);
    return status;
}

static hone_status run_request(jit_slot *s, jit_job *job, hone_error *error)
{
    hone_status status = HONE_OK;
    jit *j = s->j;
    kernel_entry entry = {.cubin = NULL};
    jit_make make = {.slot = s, .request = &job->request};
    uint8_t key[DIGEST_BYTES];
    bool made = false, described;
    compiled *c = NULL;

    pthread_mutex_lock(&j->lock);
    described = j->described;
    pthread_mutex_unlock(&j->lock);
    if (!described || job->describe) {
        TRY(slot_start(s, error));
    }
    if (job->describe) {
        goto done;
    }
    jit_answer_key(&job->request, &j->version, key); /* immutable once described */
    /* Whoever holds the key compiles within our own limits, so that twice its deadline is enough to
     * wait. */
    TRY(kernel_cache_make(j->cache, key, 2 * j->options.deadline_ms, make_entry, &make, &entry,
                          &made, error));
    TRY(jit_answer_adopt(&job->request, &entry, &c, error));
    c->from_cache = !made;
    c->nvrtc_version = j->version.nvrtc_version;
    memcpy(c->key, key, sizeof key);
    job->done.answer = c;
done:
    job->done.timed_out = make.timed_out;
    kernel_entry_free(&entry);
    return status;
}

static void *serve(void *context)
{
    jit_slot *s = context;
    jit *j = s->j;

    s->w = (worker){.fd = -1};
    pthread_mutex_lock(&j->lock);
    while (!j->closing) {
        jit_job *job = queue_pop(&j->requests);
        if (job == NULL) {
            pthread_cond_wait(&j->asked, &j->lock);
            continue;
        }
        pthread_mutex_unlock(&j->lock);
        job->done.status = run_request(s, job, &job->done.error);
        pthread_mutex_lock(&j->lock);
        queue_push(&j->answers, job);
        pthread_cond_broadcast(&j->answered);
    }
    pthread_mutex_unlock(&j->lock);
    worker_stop(&s->w);
    free(s);
    return NULL;
}

static hone_status start_threads(jit *j, hone_error *error)
{
    while (j->threads_len < j->options.workers) {
        jit_slot *s = calloc(1, sizeof *s);
        if (s != NULL) {
            *s = (jit_slot){.j = j, .index = j->threads_len};
        }
        if (s == NULL || pthread_create(&j->threads[j->threads_len], NULL, serve, s) != 0) {
            free(s);
            return status_set(error, HONE_NO_MEMORY, NULL, 0, "a thread for a compile worker");
        }
        j->threads_len++;
    }
    return HONE_OK;
}

/* Memory of the machine that a compiler is counted with: templates take up to half of it. */
#define JIT_WORKER_BYTES (1ull << 30)

/* One for each core, but no more than the machine's memory has room for. */
static int default_workers(void)
{
    const long cores = sysconf(_SC_NPROCESSORS_ONLN), pages = sysconf(_SC_PHYS_PAGES);
    const uint64_t bytes = pages > 0 ? (uint64_t)pages * (uint64_t)sysconf(_SC_PAGE_SIZE) : 0;
    const uint64_t room = bytes / JIT_WORKER_BYTES, wanted = cores > 0 ? (uint64_t)cores : 1;

    return (int)(room == 0 ? 1 : wanted < room ? wanted : room);
}

static void fill_options(const jit_options *given, jit_options *out)
{
    jit_options o = given != NULL ? *given : (jit_options){.workers = 0};

    o.workers = o.workers > 0 ? o.workers : default_workers();
    o.workers = o.workers < JIT_MAX_WORKERS ? o.workers : JIT_MAX_WORKERS;
    o.deadline_ms = o.deadline_ms > 0 ? o.deadline_ms : JIT_DEADLINE_MS;
    o.cpu_seconds = o.cpu_seconds > 0 ? o.cpu_seconds : JIT_CPU_SECONDS;
    o.memory_bytes = o.memory_bytes > 0 ? o.memory_bytes : JIT_MEMORY_BYTES;
    *out = o;
}

/* The user's own cache is a convenience: a home that cannot be written, as in a read-only image,
 * costs compiles, not service. One that was asked for by its path, or that others may write, is an
 * error. */
static hone_status open_cache(jit *j, hone_error *error)
{
    hone_status status = HONE_OK;

    if (j->options.no_cache) {
        return HONE_OK;
    }
    status = kernel_cache_open(j->options.cache_path, 0, &j->cache, error);
    if (j->options.cache_path == NULL &&
        (status == HONE_IO || status == HONE_STORE_IO || status == HONE_ENVIRONMENT)) {
        j->cache = NULL;
        return HONE_OK;
    }
    return status;
}

hone_status jit_open(const jit_options *options, jit **out, hone_error *error)
{
    hone_status status = HONE_OK;
    pthread_condattr_t monotonic;
    jit *j = calloc(1, sizeof *j);

    if (j == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a compiler");
    }
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&j->lock, NULL);
    pthread_cond_init(&j->asked, NULL);
    pthread_cond_init(&j->answered, &monotonic);
    pthread_condattr_destroy(&monotonic);
    j->requests.last = &j->requests.first;
    j->answers.last = &j->answers.first;
    fill_options(options, &j->options);
    j->cancel_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (j->cancel_fd < 0) {
        status = status_set(error, HONE_NO_MEMORY, NULL, 0, "an eventfd: %s", strerror(errno));
        goto done;
    }
    const char *named = j->options.worker;
    if (named != NULL && strlen(named) < sizeof j->program) {
        memcpy(j->program, named, strlen(named) + 1);
    } else if (!paths_find("hone-worker", "HONE_WORKER", program_folders, j->program)) {
        status = status_set(
            error, HONE_ENVIRONMENT, "hone-worker", 0,
            "the compile worker is not found; install it in libexec or name it in HONE_WORKER");
        goto done;
    }
    TRY(open_cache(j, error));
    *out = j;
    j = NULL;
done:
    jit_close(j);
    return status;
}

static void free_queue(jit_queue *q)
{
    for (jit_job *job = queue_pop(q); job != NULL; job = queue_pop(q)) {
        compiled_free(job->done.answer);
        free(job);
    }
}

void jit_close(jit *j)
{
    if (j == NULL) {
        return;
    }
    pthread_mutex_lock(&j->lock);
    j->closing = true;
    pthread_cond_broadcast(&j->asked);
    pthread_mutex_unlock(&j->lock);
    if (j->cancel_fd >= 0) {
        eventfd_write(j->cancel_fd, 1);
    }
    for (int i = 0; i < j->threads_len; i++) {
        pthread_join(j->threads[i], NULL);
    }
    free_queue(&j->requests);
    free_queue(&j->answers);
    kernel_cache_close(j->cache);
    if (j->cancel_fd >= 0) {
        close(j->cancel_fd);
    }
    pthread_cond_destroy(&j->answered);
    pthread_cond_destroy(&j->asked);
    pthread_mutex_destroy(&j->lock);
    free(j);
}

static hone_status submit(jit *j, const jit_request *request, uint64_t tag, hone_error *error)
{
    hone_status status = HONE_OK;
    jit_job *job = calloc(1, sizeof *job);

    if (job == NULL) {
        return status_set(error, HONE_NO_MEMORY, NULL, 0, "a compile request");
    }
    if (j->pending >= JIT_MAX_PENDING) {
        status = status_set(error, HONE_LIMIT, NULL, 0, "%d compiles are under way; wait for some",
                            JIT_MAX_PENDING);
        goto done;
    }
    TRY(start_threads(j, error));
    job->done.tag = tag;
    job->describe = request == NULL;
    if (request != NULL) {
        job->request = *request;
    }
    j->pending++;
    pthread_mutex_lock(&j->lock);
    queue_push(&j->requests, job);
    pthread_cond_signal(&j->asked);
    pthread_mutex_unlock(&j->lock);
    job = NULL;
done:
    free(job);
    return status;
}

hone_status jit_submit(jit *j, const jit_request *request, uint64_t tag, hone_error *error)
{
    if (request->entries_len == 0 || request->entries_len > JIT_MAX_ENTRIES) {
        return status_set(error, HONE_BAD_ARGUMENT, request->name, 0,
                          "%zu kernels; a request has 1 to %d", request->entries_len,
                          JIT_MAX_ENTRIES);
    }
    return submit(j, request, tag, error);
}

hone_status jit_wait(jit *j, int timeout_ms, jit_done *out, bool *got, hone_error *error)
{
    struct timespec until;
    jit_job *job = NULL;
    int result = 0;

    (void)error;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += timeout_ms % 1000 * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&j->lock);
    while (j->pending > 0 && (job = queue_pop(&j->answers)) == NULL && result != ETIMEDOUT) {
        result = timeout_ms < 0 ? pthread_cond_wait(&j->answered, &j->lock)
                                : pthread_cond_timedwait(&j->answered, &j->lock, &until);
    }
    pthread_mutex_unlock(&j->lock);
    *got = job != NULL;
    if (job != NULL) {
        j->pending--;
        *out = job->done;
        free(job);
    }
    return HONE_OK;
}

size_t jit_pending(const jit *j)
{
    return j->pending;
}

/* Submit one request and take its answer. */
static hone_status run_one(jit *j, const jit_request *request, compiled **out, hone_error *error)
{
    hone_status status = HONE_OK;
    jit_done done = {.tag = 0};
    bool got = false;

    if (j->pending > 0) {
        return status_set(error, HONE_BAD_ARGUMENT, NULL, 0,
                          "other compiles are under way; take them first");
    }
    TRY(submit(j, request, 0, error));
    TRY(jit_wait(j, -1, &done, &got, error));
    status = done.status;
    if (status != HONE_OK) {
        status_set(error, status, done.error.source, done.error.line, "%s", done.error.message);
    } else if (out != NULL) {
        *out = done.answer;
    }
done:
    return status;
}

hone_status jit_compile(jit *j, const jit_request *request, compiled **out, hone_error *error)
{
    return run_one(j, request, out, error);
}

hone_status jit_describe(jit *j, jit_version *out, hone_error *error)
{
    hone_status status = HONE_OK;

    if (!j->described) {
        TRY(run_one(j, NULL, NULL, error));
    }
    *out = j->version;
done:
    return status;
}
