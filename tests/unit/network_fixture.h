/* Small made-up chunks of a network's rows, and its loss in extended precision. */
#ifndef DML_TESTS_UNIT_NETWORK_FIXTURE_H
#define DML_TESTS_UNIT_NETWORK_FIXTURE_H

#include "objective/block.h"
#include "objective/shape.h"
#include "tests/unit/canned.h"

enum { NET_ROWS_MAX = 2600, NET_FEATURES_MAX = 40, NET_PARAMETERS_MAX = 4000 };
enum { NET_VALUES_MAX = NET_ROWS_MAX * NET_FEATURES_MAX };

struct net {
    struct objective_shape shape;
    struct layout layout;
    uint64_t n; /* parameters */
    struct rows rows;
    uint32_t start[NET_ROWS_MAX + 1], feature[NET_VALUES_MAX];
    uint8_t byte[NET_VALUES_MAX];
    float narrow[NET_VALUES_MAX];
    double wide[NET_VALUES_MAX]; /* the values whatever the type */
    double label[NET_ROWS_MAX];
    double weight[NET_ROWS_MAX]; /* 1, and in `rows` only if a test puts it there */
    uint32_t list_start[CANNED_LISTS + 1], list_class[CANNED_LISTS * CANNED_OUTPUTS_MAX];
    struct label_lists lists;
    double parameters[NET_PARAMETERS_MAX];
    int16_t *exponent; /* objective_exponents() of these rows alone */
};

/* How rows may be stored. */
enum { NET_FORMATS = 8 };
struct net_format {
    bool dense;
    enum value_type type;
};
extern const struct net_format net_formats[NET_FORMATS];

/* Random values, of sparse rows about half of them, and parameters from the start of the shape, and
 * biases that are not 0. */
struct net *net_new(struct objective_shape shape, uint32_t rows, bool dense, enum value_type type,
                    uint64_t seed);
void net_free(struct net *net);

/* Chooses the exponents anew, after values or weights have changed. */
void net_measure(struct net *net);

/* A shape with these layers, whose loss has its defaults and, if it has an output a class, 3. */
struct objective_shape net_shape(enum objective_kind kind, enum activation activation,
                                 enum precision precision);

/* The loss of a row at parameters; and that of all rows. */
long double net_row_loss(const struct net *net, const long double *parameters, uint32_t i);
long double net_loss(const struct net *net, const long double *parameters);

/* Runs objective_block() twice, first without sums for the maxima: gradient of n doubles. */
struct objective_result net_gradient(const struct net *net, double *gradient);

/* Once, with these bounds; `sum` may be NULL. */
struct objective_result net_block(const struct net *net, const struct bounds *bounds, int64_t *sum);
struct bounds net_bounds(const struct maxima *maxima); /* the least that hold */

#endif
