/*
 * cpu_ctc.c: the forward-backward algorithm, in logarithms and in float64: see cpu_ctc.h.
 *
 * The sum of a state at a step is over all paths that are there then, with the probability of that step; behind it is the sum
 * over their ends. Only states from which the last two can still be reached are looked at.
 */
#include "ops/cpu/cpu_ctc.h"

#include "base/parallel.h"

#include <math.h>

enum {
    PART_WORK = 1 << 12, /* states of steps that are worth a thread */
};

/* One sequence of a task. */
struct sequence {
    const struct gni_ctc *task;
    int64_t number, steps, states;
    const int64_t *classes;
};

static double emission(const struct sequence *one, int64_t step, int64_t state)
{
    const struct gni_ctc *task = one->task;
    int64_t at = (step * task->sequences + one->number) * task->labels + state;
    return task->is_double ? ((const double *)task->emissions)[at]
                           : (double)((const float *)task->emissions)[at];
}

static void gradient_put(const struct sequence *one, int64_t step, int64_t state, double value)
{
    const struct gni_ctc *task = one->task;
    int64_t at = (step * task->sequences + one->number) * task->labels + state;
    if (task->is_double)
        ((double *)task->emissions)[at] = value;
    else
        ((float *)task->emissions)[at] = (float)value;
}

static double *sums_of(const struct sequence *one, int64_t step)
{
    return one->task->sums + (step * one->task->sequences + one->number) * one->task->labels;
}

/* log(exp(a) + exp(b)) */
static double log_add(double a, double b)
{
    double most = a > b ? a : b, least = a > b ? b : a;
    return least == -INFINITY ? most : most + log1p(exp(least - most));
}

/* Whether a path may come to a class from the one before, without the blank between. */
static bool has_shortcut(const struct sequence *one, int64_t state)
{
    return state >= 2 && state % 2 == 1 && one->classes[state] != one->classes[state - 2];
}

/* The first state from which the end is reached, and behind the last one that is reached, at a step. */
static int64_t first_of(const struct sequence *one, int64_t step)
{
    int64_t first = one->states - 2 * (one->steps - step);
    return first > 0 ? first : 0;
}

static int64_t end_of(const struct sequence *one, int64_t step)
{
    int64_t end = 2 * (step + 1);
    return end < one->states ? end : one->states;
}

static double forward(const struct sequence *one)
{
    if (one->steps == 0)
        return one->states == 1 ? 0 : INFINITY;
    for (int64_t t = 0; t < one->steps; t++) {
        double *sums = sums_of(one, t);
        const double *before = t > 0 ? sums_of(one, t - 1) : NULL;
        int64_t first = first_of(one, t), end = end_of(one, t);
        for (int64_t k = 0; k < one->states; k++) {
            double sum = -INFINITY;
            if (k >= first && k < end && t == 0) {
                sum = 0;
            } else if (k >= first && k < end) {
                sum = k > 0 ? log_add(before[k], before[k - 1]) : before[k];
                if (has_shortcut(one, k))
                    sum = log_add(sum, before[k - 2]);
            }
            sums[k] = sum == -INFINITY ? sum : sum + emission(one, t, k);
        }
    }
    const double *last = sums_of(one, one->steps - 1);
    double all = last[one->states - 1];
    return -(one->states > 1 ? log_add(all, last[one->states - 2]) : all);
}

/* The sums over the ends of paths, behind a step; `next` has them for the step that follows, with its probabilities. */
static void ends_step(const struct sequence *one, const double *next, double *ends)
{
    for (int64_t k = 0; k < one->states; k++) {
        double sum = k + 1 < one->states ? log_add(next[k], next[k + 1]) : next[k];
        if (k + 2 < one->states && has_shortcut(one, k + 2))
            sum = log_add(sum, next[k + 2]);
        ends[k] = sum;
    }
}

static void backward(const struct sequence *one, double loss)
{
    double *next = one->task->rows + 2 * one->number * one->task->labels;
    double *ends = next + one->task->labels;
    for (int64_t t = one->steps - 1; t >= 0; t--) {
        const double *sums = sums_of(one, t);
        if (t == one->steps - 1)
            for (int64_t k = 0; k < one->states; k++)
                ends[k] = k >= one->states - 2 ? 0 : -INFINITY;
        else
            ends_step(one, next, ends);
        for (int64_t k = 0; k < one->states; k++) {
            next[k] = ends[k] == -INFINITY ? -INFINITY : ends[k] + emission(one, t, k);
            double part = sums[k] == -INFINITY ? -INFINITY : sums[k] + ends[k] + loss;
            gradient_put(one, t, k, part == -INFINITY ? 0 : -exp(part));
        }
    }
}

static void sequence_run(const struct gni_ctc *task, int64_t number)
{
    struct sequence one = {task, number, task->input_lengths[number],
                           2 * task->target_lengths[number] + 1,
                           task->classes + number * task->labels};
    double loss = forward(&one);
    if (task->is_double)
        ((double *)task->losses)[number] = loss;
    else
        ((float *)task->losses)[number] = (float)loss;
    if (!task->has_gradients)
        return;
    bool is_possible = loss < INFINITY;
    for (int64_t t = 0; t < task->steps; t++)
        for (int64_t k = 0; k < task->labels; k++)
            if (t >= one.steps || k >= one.states)
                gradient_put(&one, t, k, 0);
            else if (!is_possible)
                gradient_put(&one, t, k, task->is_infinity_zero ? 0 : (double)NAN);
    if (is_possible)
        backward(&one, loss);
}

static void part_run(void *context, size_t begin, size_t end)
{
    for (size_t i = begin; i < end; i++)
        sequence_run(context, (int64_t)i);
}

void gni_cpu_ctc_run(const struct gni_ctc *task)
{
    struct gni_ctc copy = *task;
    int64_t work = task->steps * task->labels, grain = work > 0 ? PART_WORK / work : PART_WORK;
    gni_parallel_for((size_t)task->sequences, grain > 0 ? (size_t)grain : 1, part_run, &copy);
}
