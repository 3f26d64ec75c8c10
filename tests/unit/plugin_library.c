/* A plug-in for tests: a linear model of targets, with squared loss; the options say how it
 * misbehaves. A version or a size that is none is defined when it is compiled. */
#define _GNU_SOURCE
#include <fenv.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "plugin/dml/objective.h"

#ifndef HEAD
#define HEAD DML_OBJECTIVE_HEAD
#endif

static char mode[64];

static int is(const char *text) {
    return strcmp(mode, text) == 0;
}

static void misbehave(const char *where) {
    char crash[64], loop[64], leave[64];
    snprintf(crash, sizeof crash, "crash in %s", where);
    snprintf(loop, sizeof loop, "loop in %s", where);
    snprintf(leave, sizeof leave, "exit in %s", where);
    if (is(crash))
        *(volatile int *)0 = 1;
    if (is(leave))
        _Exit(3);
    for (volatile int forever = is(loop); forever;)
        ;
}

/* Descriptors that are not its own: it has opened none. */
static void touch_descriptors(void) {
    for (int descriptor = 3; descriptor < 20; descriptor++) {
        if (is("write to descriptors") && write(descriptor, "some text", 9) < 0)
            continue;
        if (is("shorten descriptors") && ftruncate(descriptor, 0) < 0)
            continue;
        if (is("close descriptors"))
            close(descriptor);
    }
}

/* In its new process it answers at once. */
static int forks(void) {
    if (is("fork and return") && fork() == 0)
        return 1;
    if (is("fork and wait")) {
        pid_t forked = fork();
        if (forked == 0)
            _exit(0);
        waitpid(forked, NULL, 0);
    }
    if (is("fork and be slow to end")) { /* the kernel frees what it has touched */
        const char *path = getenv("FORKED");
        pid_t forked = fork();
        if (forked == 0) {
            const size_t bytes = 256u << 20;
            FILE *file = fopen(path, "w");
            mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE,
                 -1, 0);
            fprintf(file, "%d", (int)getpid());
            fclose(file);
            for (;;)
                pause();
        }
        while (access(path, F_OK))
            usleep(1000);
    }
    if (is("fork and crash")) {
        if (fork() == 0)
            for (;;)
                pause();
        *(volatile int *)0 = 1;
    }
    return 0;
}

/* The arrays end with `loss[count]` and `gradient[features]`. */
static void write_beyond(const struct dml_rows *rows, double *loss, double *gradient) {
    double *volatile to = is("write below the gradient")       ? gradient - 1
                          : is("write behind the gradient")    ? gradient + rows->features + 1
                          : is("write far below the gradient") ? gradient - 100000
                          : is("write far behind the loss")    ? loss + 50000
                          : is("write behind the loss")        ? loss + rows->count
                          : is("write a weight")               ? (double *)rows->weight
                          : is("write a parameter behind")     ? (double *)rows->value - 100000
                                                               : NULL;
    if (to)
        *to = 7;
}

static int begin(const char *options, struct dml_form *form, void **state,
                 char error[DML_ERROR_BYTES]) {
    (void)state;
    snprintf(mode, sizeof mode, "%s", options);
    misbehave("open");
    if (is("unknown")) {
        snprintf(error, DML_ERROR_BYTES, "there is no option `unknown`");
        return 1;
    }
    form->labels = is("labels") ? 77 : is("classes") ? DML_LABELS_CLASSES : DML_LABELS_TARGET;
    form->prediction = is("classes") ? DML_PREDICTS_SCORE : DML_PREDICTS_VALUE;
    return 0;
}

static int tensors(void *state, const struct dml_data *data,
                   struct dml_tensor list[DML_TENSORS_MAX], uint32_t *count,
                   char error[DML_ERROR_BYTES]) {
    (void)state, (void)error;
    misbehave("tensors");
    list[0] = (struct dml_tensor){"w", data->features, data->outputs, 1, 1, DML_START_ZERO, 0, 0};
    list[1] = (struct dml_tensor){"b", 1, data->outputs, 0, 0, DML_START_CONSTANT, 0, 0.5};
    if (is("same names"))
        strcpy(list[1].name, "w");
    if (is("size by process"))
        list[0].rows += (uint64_t)getenv("HOME")[0] % 2;
    *count = is("many") ? 33 : 2;
    return 0;
}

static double margin(const struct dml_rows *rows, uint32_t i, const double *parameters) {
    double sum = parameters[rows->features];
    if (rows->start)
        for (uint64_t v = rows->start[i]; v < rows->start[i + 1]; v++)
            sum += parameters[rows->column[v]] * rows->value[v];
    else
        for (uint32_t j = 0; j < rows->features; j++)
            sum += parameters[j] * rows->value[(uint64_t)i * rows->features + j];
    return sum;
}

static void add(const struct dml_rows *rows, uint32_t i, double factor, double *gradient) {
    gradient[rows->features] += factor;
    if (rows->start)
        for (uint64_t v = rows->start[i]; v < rows->start[i + 1]; v++)
            gradient[rows->column[v]] += factor * rows->value[v];
    else
        for (uint32_t j = 0; j < rows->features; j++)
            gradient[j] += factor * rows->value[(uint64_t)i * rows->features + j];
}

static int chunk(void *state, const struct dml_data *data, const struct dml_rows *rows,
                 const double *parameters, double *loss, double *gradient,
                 char error[DML_ERROR_BYTES]) {
    static int calls;
    (void)state, (void)data;
    misbehave("chunk");
    touch_descriptors();
    if (is("leave the group"))
        setpgid(0, getpgid(getppid()));
    if (forks())
        return 0;
    write_beyond(rows, loss, gradient);
    if (is("refuse")) {
        snprintf(error, DML_ERROR_BYTES, "these rows are not for me");
        return 1;
    }
    for (uint32_t i = 0; i < rows->count; i++) {
        double residual = margin(rows, i, parameters) - rows->label[i];
        loss[i] = residual * residual / 2;
        if (gradient)
            add(rows, i, (is("no weights") ? 1 : rows->weight[i]) * residual, gradient);
    }
    if (gradient && is("wrong gradient"))
        gradient[rows->features] *= -1;
    if (gradient && is("small gradient"))
        gradient[0] += 1e-3 * gradient[0];
    if (is("round up"))
        fesetround(FE_UPWARD);
    if (is("other sums"))
        loss[0] += ++calls;
    if (is("nan loss") || is("infinite loss"))
        loss[0] = is("nan loss") ? NAN : INFINITY;
    if (is("least loss"))
        loss[0] = -INFINITY;
    if (gradient && is("nan gradient"))
        gradient[0] = NAN;
    return 0;
}

static int predict(void *state, const struct dml_data *data, const struct dml_rows *rows,
                   const double *parameters, double *prediction, char error[DML_ERROR_BYTES]) {
    (void)state, (void)error;
    misbehave("predict");
    for (uint64_t v = 1; rows->start && is("rising") && v < rows->start[1]; v++)
        if (rows->column[v] <= rows->column[v - 1])
            return 1;
    for (uint32_t i = 0; i < rows->count; i++)
        prediction[i] = margin(rows, i, parameters);
    if (is("write behind the prediction"))
        prediction[rows->count * data->outputs] = 7;
    return 0;
}

#ifndef NO_SYMBOL
const struct dml_objective dml_objective = {HEAD, "test", begin, tensors, chunk, predict};
#endif
