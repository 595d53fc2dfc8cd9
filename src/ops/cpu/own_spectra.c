/*
 * own_spectra.c: our own eigenvalues and singular values for where there is no LAPACK.
 *
 * A symmetric matrix becomes tridiagonal by Householder's reflections, and diagonal by the implicit QL method (Bowdler,
 * Martin, Reinsch and Wilkinson, 1968). Singular values are found by Jacobi's rotations of pairs of columns (Hestenes, 1958),
 * which computes small ones as exactly as large ones.
 */
#include "ops/cpu/cpu_solvers.h"

#include <float.h>
#include <math.h>
#include <string.h>

enum {
    TURNS_MOST = 60,  /* of QL for one eigenvalue */
    SWEEPS_MOST = 60, /* of Jacobi's over all pairs */
};

/* ---- symmetric matrices ----------------------------------------------------------------------------------- */

/* Row i of v is reflected: what is left of it is an element of the subdiagonal, and the scale of the reflection in d[i]. */
static void row_reflect(int64_t n, int64_t i, double *v, double *d, double *e)
{
    double scale = 0, h = 0;
    for (int64_t k = 0; k < i; k++)
        scale += fabs(d[k]);
    if (scale == 0) {
        e[i] = d[i - 1];
        for (int64_t j = 0; j < i; j++) {
            d[j] = v[(i - 1) * n + j];
            v[i * n + j] = v[j * n + i] = 0;
        }
        d[i] = 0;
        return;
    }
    for (int64_t k = 0; k < i; k++) {
        d[k] /= scale;
        h += d[k] * d[k];
    }
    double f = d[i - 1], g = f > 0 ? -sqrt(h) : sqrt(h);
    e[i] = scale * g;
    h -= f * g;
    d[i - 1] = f - g;
    memset(e, 0, (size_t)i * sizeof *e);
    for (int64_t j = 0; j < i; j++) {
        v[j * n + i] = d[j];
        double sum = e[j] + v[j * n + j] * d[j];
        for (int64_t k = j + 1; k < i; k++) {
            sum += v[k * n + j] * d[k];
            e[k] += v[k * n + j] * d[j];
        }
        e[j] = sum;
    }
    double both = 0;
    for (int64_t j = 0; j < i; j++) {
        e[j] /= h;
        both += e[j] * d[j];
    }
    for (int64_t j = 0; j < i; j++)
        e[j] -= both / (h + h) * d[j];
    for (int64_t j = 0; j < i; j++) {
        for (int64_t k = j; k < i; k++)
            v[k * n + j] -= d[j] * e[k] + e[j] * d[k];
        d[j] = v[(i - 1) * n + j];
        v[i * n + j] = 0;
    }
    d[i] = h;
}

/* v becomes the reflections, d the diagonal, e the subdiagonal from e[1] on. */
static void tridiagonal_make(int64_t n, double *v, double *d, double *e)
{
    memcpy(d, v + (n - 1) * n, (size_t)n * sizeof *d);
    for (int64_t i = n - 1; i > 0; i--)
        row_reflect(n, i, v, d, e);
    for (int64_t i = 0; i < n - 1; i++) {
        v[(n - 1) * n + i] = v[i * n + i];
        v[i * n + i] = 1;
        double h = d[i + 1];
        if (h != 0) {
            for (int64_t k = 0; k <= i; k++)
                d[k] = v[k * n + i + 1] / h;
            for (int64_t j = 0; j <= i; j++) {
                double g = 0;
                for (int64_t k = 0; k <= i; k++)
                    g += v[k * n + i + 1] * v[k * n + j];
                for (int64_t k = 0; k <= i; k++)
                    v[k * n + j] -= g * d[k];
            }
        }
        for (int64_t k = 0; k <= i; k++)
            v[k * n + i + 1] = 0;
    }
    for (int64_t j = 0; j < n; j++) {
        d[j] = v[(n - 1) * n + j];
        v[(n - 1) * n + j] = 0;
    }
    v[n * n - 1] = 1;
    e[0] = 0;
}

/* One turn of QL on the part from l to m; `shift` is the sum of all shifts. */
static void ql_turn(int64_t n, int64_t l, int64_t m, double *v, double *d, double *e, double *shift)
{
    double g = d[l], p = (d[l + 1] - g) / (2 * e[l]), r = p < 0 ? -hypot(p, 1) : hypot(p, 1);
    d[l] = e[l] / (p + r);
    d[l + 1] = e[l] * (p + r);
    double next = d[l + 1], h = g - d[l], below = e[l + 1];
    for (int64_t i = l + 2; i < n; i++)
        d[i] -= h;
    *shift += h;
    double c = 1, c2 = 1, c3 = 1, s = 0, s2 = 0;
    p = d[m];
    for (int64_t i = m - 1; i >= l; i--) {
        c3 = c2;
        c2 = c;
        s2 = s;
        g = c * e[i];
        h = c * p;
        r = hypot(p, e[i]);
        e[i + 1] = s * r;
        s = e[i] / r;
        c = p / r;
        p = c * d[i] - s * g;
        d[i + 1] = h + s * (c * g + s * d[i]);
        for (int64_t k = 0; k < n; k++) {
            h = v[k * n + i + 1];
            v[k * n + i + 1] = s * v[k * n + i] + c * h;
            v[k * n + i] = c * v[k * n + i] - s * h;
        }
    }
    p = -s * s2 * c3 * below * e[l] / next;
    e[l] = s * p;
    d[l] = c * p;
}

/* 0, or the number of the eigenvalue that was not found, from 1 on. */
static int32_t diagonal_make(int64_t n, double *v, double *d, double *e)
{
    double shift = 0, size = 0;
    memmove(e, e + 1, (size_t)(n - 1) * sizeof *e);
    e[n - 1] = 0;
    for (int64_t l = 0; l < n; l++) {
        size = fmax(size, fabs(d[l]) + fabs(e[l]));
        int64_t m = l;
        while (m < n - 1 && fabs(e[m]) > DBL_EPSILON * size)
            m++;
        for (int turn = 0; m > l && fabs(e[l]) > DBL_EPSILON * size; turn++) {
            if (turn == TURNS_MOST)
                return (int32_t)(l + 1);
            ql_turn(n, l, m, v, d, e, &shift);
        }
        d[l] += shift;
        e[l] = 0;
    }
    return 0;
}

/* Columns `first` and `second` of a matrix by rows change places. */
static void columns_exchange(int64_t n, double *v, int64_t first, int64_t second)
{
    for (int64_t k = 0; k < n; k++) {
        double kept = v[k * n + first];
        v[k * n + first] = v[k * n + second];
        v[k * n + second] = kept;
    }
}

int32_t gni_own_eigh(int64_t n, double *v, double *values, double *scratch)
{
    tridiagonal_make(n, v, values, scratch);
    int32_t info = diagonal_make(n, v, values, scratch);
    for (int64_t i = 0; i < n - 1; i++) { /* ascending */
        int64_t smallest = i;
        for (int64_t j = i + 1; j < n; j++)
            if (values[j] < values[smallest])
                smallest = j;
        if (smallest == i)
            continue;
        double kept = values[i];
        values[i] = values[smallest];
        values[smallest] = kept;
        columns_exchange(n, v, i, smallest);
    }
    return info;
}

/* ---- singular values ------------------------------------------------------------------------------------------ */

static double dot(const double *x, const double *y, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += x[i] * y[i];
    return sum;
}

/* Scaled by the largest element: squares neither overflow nor vanish. */
static double length_of(const double *x, int64_t count)
{
    double largest = 0, sum = 0;
    for (int64_t i = 0; i < count; i++)
        largest = fmax(largest, fabs(x[i]));
    for (int64_t i = 0; i < count && largest > 0; i++)
        sum += (x[i] / largest) * (x[i] / largest);
    return largest * sqrt(sum);
}

static void rotate(double *x, double *y, int64_t count, double c, double s)
{
    for (int64_t i = 0; i < count; i++) {
        double kept = x[i];
        x[i] = c * kept - s * y[i];
        y[i] = s * kept + c * y[i];
    }
}

/* Makes two columns orthogonal, the longer one first; whether they were not. */
static bool pair_turn(int64_t rows, int64_t columns, double *a, double *v, int64_t p, int64_t q)
{
    double *x = a + p * rows, *y = a + q * rows;
    double xx = dot(x, x, rows), yy = dot(y, y, rows), xy = dot(x, y, rows);
    bool is_ordered = xx >= yy,
         is_orthogonal = !(fabs(xy) > DBL_EPSILON * (double)rows * sqrt(xx) * sqrt(yy));
    if (is_orthogonal && is_ordered)
        return false;
    double c = 0, s = 1; /* exchange */
    if (!is_orthogonal) {
        double zeta = (yy - xx) / (2 * xy);
        double t = (zeta < 0 ? -1 : 1) / (fabs(zeta) + hypot(zeta, 1));
        c = 1 / hypot(t, 1);
        s = c * t;
    }
    rotate(x, y, rows, c, s);
    rotate(v + p * columns, v + q * columns, columns, c, s);
    return true;
}

/* Elements are divided by the largest one, so that squares do not overflow. */
int32_t gni_own_jacobi(int64_t rows, int64_t columns, double *a, double *v, double *values)
{
    double largest = 0;
    for (int64_t i = 0; i < rows * columns; i++)
        largest = fmax(largest, fabs(a[i]));
    for (int64_t i = 0; i < rows * columns && largest > 0; i++)
        a[i] /= largest;
    memset(v, 0, (size_t)(columns * columns) * sizeof *v);
    for (int64_t i = 0; i < columns; i++)
        v[i * (columns + 1)] = 1;
    bool is_turned = true;
    for (int sweep = 0; is_turned && sweep < SWEEPS_MOST; sweep++) {
        is_turned = false;
        for (int64_t p = 0; p < columns - 1; p++)
            for (int64_t q = p + 1; q < columns; q++)
                is_turned |= pair_turn(rows, columns, a, v, p, q);
    }
    for (int64_t j = 0; j < columns; j++) {
        values[j] = length_of(a + j * rows, rows) * largest;
        for (int64_t i = 0; i < rows; i++)
            a[j * rows + i] *= largest;
    }
    for (int64_t i = 0; i < columns - 1; i++) { /* descending: squares may be too small to tell */
        int64_t found = i;
        for (int64_t j = i + 1; j < columns; j++)
            if (values[j] > values[found])
                found = j;
        if (found == i)
            continue;
        double kept = values[i];
        values[i] = values[found];
        values[found] = kept;
        rotate(a + i * rows, a + found * rows, rows, 0, 1);
        rotate(v + i * columns, v + found * columns, columns, 0, 1);
    }
    return is_turned;
}

void gni_own_complete(double *q, int64_t rows, int64_t from, int64_t to)
{
    for (int64_t j = from; j < to; j++) {
        double *column = q + j * rows, least = INFINITY;
        int64_t place = 0;
        for (int64_t i = 0; i < rows; i++) { /* the axis that the others have the least of */
            double sum = 0;
            for (int64_t k = 0; k < j; k++)
                sum += q[k * rows + i] * q[k * rows + i];
            if (sum < least) {
                least = sum;
                place = i;
            }
        }
        memset(column, 0, (size_t)rows * sizeof *column);
        column[place] = 1;
        for (int turn = 0; turn < 2; turn++) {
            for (int64_t k = 0; k < j; k++) {
                double part = dot(q + k * rows, column, rows);
                for (int64_t i = 0; i < rows; i++)
                    column[i] -= part * q[k * rows + i];
            }
            double length = sqrt(dot(column, column, rows));
            for (int64_t i = 0; i < rows; i++)
                column[i] /= length;
        }
    }
}
