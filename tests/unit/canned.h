/* Small made-up blocks of rows, and their loss and gradient in extended precision. */
#ifndef DML_TESTS_UNIT_CANNED_H
#define DML_TESTS_UNIT_CANNED_H

#include "objective/block.h"
#include "objective/shape.h"

enum { CANNED_ROWS = 700, CANNED_FEATURES = 37, CANNED_OUTPUTS_MAX = 11 };
enum { CANNED_VALUES = CANNED_ROWS * CANNED_FEATURES };
enum { CANNED_LISTS = 8 }; /* of classes: list i has class k if bit k % 3 of i is set */
enum { CANNED_PARAMETERS = (CANNED_FEATURES + 1) * CANNED_OUTPUTS_MAX };

/* The shape of a canned block; behind `bias` the parameters of the loss. */
#define CANNED_SHAPE(KIND, outputs_, bias, ...)                                                    \
    {                                                                                              \
        .kind = OBJECTIVE_##KIND, .features = CANNED_FEATURES, .outputs = (outputs_),              \
        .intercept = (bias), .loss = {                                                             \
            {__VA_ARGS__}                                                                          \
        }                                                                                          \
    }

struct canned {
    struct objective_shape shape;
    struct rows rows;
    uint32_t start[CANNED_ROWS + 1];
    uint32_t feature[CANNED_VALUES];
    uint8_t byte[CANNED_VALUES];
    float narrow[CANNED_VALUES];
    double wide[CANNED_VALUES]; /* the values whatever the type */
    double label[CANNED_ROWS];
    uint32_t list_start[CANNED_LISTS + 1], list_class[CANNED_LISTS * CANNED_OUTPUTS_MAX];
    struct label_lists lists;   /* in `rows` for LABEL_LISTS */
    double weight[CANNED_ROWS]; /* 1, and not in `rows`, until canned_weigh() */
    double parameters[CANNED_PARAMETERS];
    double absolute_sum[CANNED_FEATURES + 1];
    uint64_t count[CANNED_FEATURES + 1];
    int16_t exponent[CANNED_FEATURES + 1];
    int uniform;
};

/* Random values, labels and parameters; about half of the values of a sparse row are left out.
 * Column j is multiplied by scale[j], and its parameters divided by it, if `scale` is given. */
struct canned *canned_new(struct objective_shape shape, bool dense, enum value_type type,
                          const double *scale, uint64_t seed);

/* Gives the rows weights of about 10^−decades to 10^decades, and some of 0. */
void canned_weigh(struct canned *canned, double decades, uint64_t seed);

/* Where the weight of feature `j` and output `k` is among the parameters; j = CANNED_FEATURES:
 * where the intercept is. */
uint64_t canned_place(const struct objective_shape *shape, uint64_t j, uint32_t k);

/* The feature of a parameter. */
uint64_t canned_column(const struct objective_shape *shape, uint64_t parameter);

/* The lists of LABEL_LISTS for so many classes. */
void canned_list(uint32_t classes, uint32_t start[CANNED_LISTS + 1], uint32_t *class);
static inline bool canned_has(double list, size_t class) {
    return (size_t)list >> class % 3 & 1;
}

/* Chooses the exponents from the values; done by canned_new(), and again after changing them. */
void canned_measure(struct canned *canned);

/* All, those that always have one output, or those whose curvature devices compute. */
enum canned_losses { CANNED_ALL, CANNED_OF_ONE_OUTPUT, CANNED_OF_CURVATURE };

/* Fails unless each loss of the list is the kind of one of the shapes; without `several`, each that
 * always has one output. */
void canned_assert_every_loss(const struct objective_shape *shapes, size_t count,
                              enum canned_losses which);

/* Margins of a row, turned into derivatives; returns its loss. From the definitions, as all below.
 */
long double canned_loss(const struct objective_shape *shape, double label, long double *m);

/* The second derivative at a margin, of losses with one output; that of the parabola which touches
 * huber and quantile. */
long double canned_second(const struct objective_shape *shape, double label, long double m);

/* s is outputs × outputs: the second derivatives of a row's loss by its margins m. */
void canned_second_matrix(const struct objective_shape *shape, const long double *m, double label,
                          long double *s);

/* The margins of a row, one an output. */
void canned_margins(const struct canned *canned, uint32_t row, long double *m);

/* Loss, and gradient of n doubles, straight from the definitions. */
long double canned_reference(const struct canned *canned, long double *gradient);

/* The gradient that objective_block() finds, undone from fixed point. */
struct objective_result canned_gradient(const struct canned *canned, bool uniform,
                                        int derivative_exponent, double *gradient);

#endif
