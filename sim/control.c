/*
 * control.c: faults that tests order, findings that they read, and what is alive. See control.h.
 */
#include "sim.h"

#include "control.h"
#include "engine.h"
#include "setting.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int sim_nvrtc_fault(const char *function);
bool sim_nvrtc_refuses(const char *source);
void sim_nvrtc_wait(const char *source);

#define DECLARE(result, name, arguments) SIM_EXPORT result sim_control_##name arguments;
SIM_CONTROLS(DECLARE)
#undef DECLARE

/* ---- calls and faults ----------------------------------------------------------------------- */

static const char *const names[] = {
#define NAME(name, symbol, version, need, arguments, lost) #name,
    GNI_CUDA_FUNCTIONS(NAME)
#undef NAME
};

enum {
    NAME_COUNT = sizeof names / sizeof *names
};

static long call_counts[NAME_COUNT];

static struct {
    char function[64]; /* "": any */
    long countdown;    /* calls until it strikes, counting that one; 0: never */
    CUresult result;
    bool is_persistent;
    int count;
} fault;

static bool is_lookup(const char *function)
{
    return strncmp(function, "cuGetError", 10) == 0;
}

static bool is_sticky(CUresult result)
{
    return result == CUDA_ERROR_ILLEGAL_ADDRESS || result == CUDA_ERROR_ECC_UNCORRECTABLE ||
           (result >= CUDA_ERROR_HARDWARE_STACK_ERROR && result <= CUDA_ERROR_LAUNCH_FAILED) ||
           result == CUDA_ERROR_ASSERT || result == CUDA_ERROR_LAUNCH_TIMEOUT;
}

CUresult sim_fault_take(const char *function)
{
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (strcmp(names[i], function) == 0)
            call_counts[i]++;
    bool is_meant =
        fault.function[0] != '\0' ? strcmp(fault.function, function) == 0 : !is_lookup(function);
    if (fault.countdown == 0 || !is_meant)
        return CUDA_SUCCESS;
    if (fault.countdown > 1) {
        fault.countdown--;
        return CUDA_SUCCESS;
    }
    fault.countdown = fault.is_persistent ? 1 : 0;
    fault.count++;
    if (is_sticky(fault.result))
        for (int i = 0; i < sim.device_count; i++)
            sim_context_lose(&sim.contexts[i], fault.result);
    return fault.result;
}

/* NVRTC's functions ask this one; see nvrtc.c. */
int sim_nvrtc_fault(const char *function)
{
    pthread_mutex_lock(&sim.mutex);
    bool is_meant = strcmp(fault.function, function) == 0; /* only by name: "any" is the driver's */
    CUresult result = is_meant ? sim_fault_take(function) : CUDA_SUCCESS;
    pthread_mutex_unlock(&sim.mutex);
    return (int)result;
}

void sim_control_fail(const char *function, int nth, int result, int is_persistent)
{
    pthread_mutex_lock(&sim.mutex);
    (void)snprintf(fault.function, sizeof fault.function, "%s", function != NULL ? function : "");
    fault.countdown = nth;
    fault.result = (CUresult)result;
    fault.is_persistent = is_persistent != 0;
    fault.count = 0;
    pthread_mutex_unlock(&sim.mutex);
}

static char refused[128]; /* "": nothing is */

bool sim_nvrtc_refuses(const char *source)
{
    pthread_mutex_lock(&sim.mutex);
    bool is_refused = refused[0] != '\0' && strstr(source, refused) != NULL;
    pthread_mutex_unlock(&sim.mutex);
    return is_refused;
}

void sim_control_refuse(const char *text)
{
    pthread_mutex_lock(&sim.mutex);
    (void)snprintf(refused, sizeof refused, "%s", text != NULL ? text : "");
    pthread_mutex_unlock(&sim.mutex);
}

static char held[128]; /* "": nothing is */
static int held_count;
static pthread_cond_t held_changed = PTHREAD_COND_INITIALIZER;

void sim_nvrtc_wait(const char *source)
{
    pthread_mutex_lock(&sim.mutex);
    while (held[0] != '\0' && strstr(source, held) != NULL) {
        held_count++;
        pthread_cond_wait(&held_changed, &sim.mutex);
        held_count--;
    }
    pthread_mutex_unlock(&sim.mutex);
}

void sim_control_hold(const char *text)
{
    pthread_mutex_lock(&sim.mutex);
    (void)snprintf(held, sizeof held, "%s", text != NULL ? text : "");
    pthread_cond_broadcast(&held_changed);
    pthread_mutex_unlock(&sim.mutex);
}

int sim_control_held_count(void)
{
    pthread_mutex_lock(&sim.mutex);
    int count = held_count;
    pthread_mutex_unlock(&sim.mutex);
    return count;
}

int sim_control_fault_count(void)
{
    pthread_mutex_lock(&sim.mutex);
    int count = fault.count;
    pthread_mutex_unlock(&sim.mutex);
    return count;
}

long sim_control_call_count(const char *function)
{
    long count = 0;
    pthread_mutex_lock(&sim.mutex);
    for (size_t i = 0; i < NAME_COUNT; i++)
        if (function != NULL ? strcmp(names[i], function) == 0 : !is_lookup(names[i]))
            count += call_counts[i];
    pthread_mutex_unlock(&sim.mutex);
    return count;
}

/* ---- the machine ---------------------------------------------------------------------------- */

void sim_control_schedule(int kind, uint64_t seed)
{
    pthread_mutex_lock(&sim.mutex);
    sim.schedule = kind == 1 ? SIM_LAZY : kind == 2 ? SIM_RANDOM : SIM_EAGER;
    sim.seed = sim.random = seed;
    sim.order_hash = 0;
    sim.order_base = sim.last_number;
    pthread_mutex_unlock(&sim.mutex);
}

bool sim_control_memory(size_t nbytes)
{
    bool is_set = true;
    pthread_mutex_lock(&sim.mutex);
    for (int i = 0; i < sim.device_count; i++)
        is_set = is_set && sim.used_bytes[i] <= nbytes && nbytes <= sim_memory_limit(i);
    if (is_set)
        sim.memory_bytes = nbytes;
    pthread_mutex_unlock(&sim.mutex);
    return is_set;
}

static int list_count(const struct gni_list *list)
{
    int count = 0;
    gni_list_each (link, list)
        count++;
    return count;
}

int sim_control_live_allocations(void)
{
    pthread_mutex_lock(&sim.mutex);
    int count =
        (int)sim_range_count(SIM_RANGE_PLAIN, SIM_RANGE_REGISTERED) + list_count(&sim.physicals);
    pthread_mutex_unlock(&sim.mutex);
    return count;
}

int sim_control_live_objects(void)
{
    pthread_mutex_lock(&sim.mutex);
    int count = list_count(&sim.events) + list_count(&sim.modules) + list_count(&sim.graphs) +
                list_count(&sim.execs);
    gni_list_each (link, &sim.streams) {
        const struct CUstream_st *stream = gni_container_of(link, struct CUstream_st, link);
        count += !stream->is_implicit && !stream->is_destroyed;
    }
    pthread_mutex_unlock(&sim.mutex);
    return count;
}

int sim_control_pending(void)
{
    pthread_mutex_lock(&sim.mutex);
    int count = sim_pending_count();
    pthread_mutex_unlock(&sim.mutex);
    return count;
}

uint64_t sim_control_order_hash(void)
{
    pthread_mutex_lock(&sim.mutex);
    uint64_t hash = sim.order_hash;
    pthread_mutex_unlock(&sim.mutex);
    return hash;
}

int sim_control_is_active(int device)
{
    pthread_mutex_lock(&sim.mutex);
    bool is_active = sim.contexts[device].retain_count > 0;
    pthread_mutex_unlock(&sim.mutex);
    return is_active;
}

/* ---- findings ------------------------------------------------------------------------------- */

enum {
    FINDINGS_KEPT = 64
};

static char findings[FINDINGS_KEPT][1400];
static int finding_count;

void sim_finding(const char *format, ...)
{
    char text[sizeof findings[0]];
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    enum {
        ABORT = 1,
        SILENT
    };
    int mode = sim_setting_choice("SIM_GPU_FINDINGS");
    if (mode != SILENT)
        fprintf(stderr, "simulated GPU: %s (schedule %s, seed %llu, op %llu)\n", text,
                sim.schedule == SIM_EAGER  ? "eager"
                : sim.schedule == SIM_LAZY ? "lazy"
                                           : "random",
                (unsigned long long)sim.seed, (unsigned long long)sim.last_number);
    if (mode == ABORT)
        abort();
    if (finding_count < FINDINGS_KEPT)
        memcpy(findings[finding_count], text, sizeof text);
    finding_count++;
}

struct sim_label sim_op_label(const struct sim_op *op)
{
    static const char *const kinds[] = {"a kernel", "a copy",        "a fill", "a record",
                                        "a wait",   "an allocation", "a free", "a graph"};
    struct sim_label label;
    const char *what =
        op->kind == SIM_OP_KERNEL ? op->function->kernel->expression : kinds[op->kind];
    char where[32] = "the default stream";
    if (!op->stream->is_legacy)
        (void)snprintf(where, sizeof where, "stream %llu", (unsigned long long)op->stream->id);
    (void)snprintf(label.text, sizeof label.text, "%s%.40s on %s (op %llu)",
                   op->kind == SIM_OP_KERNEL ? "kernel " : "", what, where,
                   (unsigned long long)op->number);
    return label;
}

int sim_control_finding_count(void)
{
    pthread_mutex_lock(&sim.mutex);
    int count = finding_count;
    pthread_mutex_unlock(&sim.mutex);
    return count;
}

const char *sim_control_finding_text(int index)
{
    pthread_mutex_lock(&sim.mutex);
    bool is_kept = index >= 0 && index < finding_count && index < FINDINGS_KEPT;
    pthread_mutex_unlock(&sim.mutex);
    return is_kept ? findings[index] : "";
}

void sim_control_reset_findings(void)
{
    pthread_mutex_lock(&sim.mutex);
    finding_count = 0;
    pthread_mutex_unlock(&sim.mutex);
}
