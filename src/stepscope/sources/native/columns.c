/* Spans of one field -> a column: numbers and times here, texts in `text_columns.c`. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "numbers.h"
#include "text_columns.h"

enum column {
    COLUMN_TEXT,
    COLUMN_JSON,
    COLUMN_INT,
    COLUMN_FLOAT,
    COLUMN_TIME,
    COLUMN_SMALL,
    COLUMN_DURATION,
    COLUMN_TIME_NS,
    COLUMN_TICKS,
    COLUMN_TIME_MS,
    COLUMN_FINITE,
    COLUMN_CUT,
    COLUMN_CUT_SMALL,
    COLUMN_US,
    COLUMN_MS,
    COLUMN_KIB,
    COLUMN_MIB,
    COLUMN_GIB
};

/* What numbers of a CSV table are multiplied by before they are rounded to whole ones, from `COLUMN_US` on. */
static const double FACTORS[] = {1e3, 1e6, 0x1p10, 0x1p20, 0x1p30};

#define LONGEST_US 604800e6 /* a week: `trace_events/columns.py` says why */

/* Whether Python could take a text for a whole number, e.g. with spaces around it or with digits of another script. */
static int may_be_number(const uint8_t *p, uint32_t length) {
    for (uint32_t k = 0; k < length; k++)
        if (!is_digit(p[k]) && p[k] < 0x80 && p[k] > ' ' && p[k] != '-') return 0;
    return length > 0;
}

/* An argument that is a whole number, also as text or with decimals that are 0; the rest is null. As `fixed_value`. */
static int int_value(const uint8_t *p, span s, int64_t *out) {
    double number;
    if (whole_number(p, LENGTH(s), out)) return 1;
    if (KIND(s) == STRING) return may_be_number(p, LENGTH(s)) ? REFUSED : 0;
    if (LENGTH(s) > 18 || !float_number(p, LENGTH(s), &number)) return REFUSED;
    if (number != floor(number)) return 0;
    if (fabs(number) >= 9e15) return REFUSED;
    *out = (int64_t)number;
    return 1;
}

/* Decimal microseconds of at most a week as whole nanoseconds, to the nearest even one; 0 for anything else. */
static int duration_ns(const uint8_t *p, uint32_t length, int64_t *out) {
    double us;
    if (!float_number(p, length, &us) || !(us >= 0 && us <= LONGEST_US)) return 0;
    *out = (int64_t)rint(us * 1000);
    return 1;
}

/* A number of a CSV table as its column keeps it; null for what does not fit. As `in_our_unit` of `csv_files/values.py`. */
static int table_number(double number, int column, void *out) {
    if (column == COLUMN_FINITE) {
        memcpy(out, &number, sizeof number);
        return isfinite(number) != 0;
    }
    number = column >= COLUMN_US ? rint(number * FACTORS[column - COLUMN_US]) : trunc(number);
    if (!(number >= -0x1p63 && number < 0x1p63)) return 0;
    *(int64_t *)out = (int64_t)number;
    return 1;
}

/* Decimal places by which the unit of a column of times is above the nanosecond; -1 for other columns. */
static int places_of(int column) {
    switch (column) {
    case COLUMN_TIME_NS: return 0;
    case COLUMN_TICKS: return 1;
    case COLUMN_TIME: return 3;
    case COLUMN_TIME_MS: return 6;
    default: return -1;
    }
}

/* Put a value at `out`; 1 for a value, 0 for null, `REFUSED` if it is for Python to judge. */
static int fixed_value(const uint8_t *text, span s, int column, void *out) {
    const uint8_t *p = text + START(s);
    int places = places_of(column);
    switch (KIND(s)) {
    case ABSENT:
    case LITERAL_NULL:
        return 0;
    case NUMBER:
    case STRING:
        break;
    case ESCAPED:
        return REFUSED;
    default: /* not a number, and no time is that */
        return places >= 0 ? REFUSED : 0;
    }
    if (places >= 0) return exact_time(p, LENGTH(s), places, out) ? 1 : REFUSED;
    if (column == COLUMN_INT || column == COLUMN_SMALL) return int_value(p, s, out);
    if (column == COLUMN_DURATION) return KIND(s) == NUMBER && duration_ns(p, LENGTH(s), out) ? 1 : REFUSED;
    if (KIND(s) != NUMBER || !float_number(p, LENGTH(s), out)) return REFUSED;
    return column >= COLUMN_FINITE ? table_number(*(double *)out, column, out) : 1;
}

/* As int32, in the same room: what does not fit becomes null, in addition to `nulls`. */
static int64_t narrow(int64_t *values, uint8_t *validity, int64_t rows, int64_t nulls) {
    int32_t *small = (int32_t *)values;
    for (int64_t i = 0; i < rows; i++) {
        int64_t value = values[i];
        if (value < INT32_MIN || value > INT32_MAX) {
            validity[i >> 3] &= (uint8_t)~(1 << (i & 7));
            nulls++, value = 0;
        }
        memcpy(small + i, &(int32_t){(int32_t)value}, sizeof *small);
    }
    return nulls;
}

static int is_small(int32_t column) { return column == COLUMN_SMALL || column == COLUMN_CUT_SMALL; }

static int32_t fixed_column(const scan *s, const uint8_t *text, int32_t slot, const int32_t *order, int64_t rows,
                            int32_t column, struct ArrowArray *array) {
    union {
        int64_t whole;
        double decimal;
    } *values = malloc(((size_t)rows + 1) * sizeof *values);
    uint8_t *validity = new_validity(rows);
    int64_t nulls = 0;
    int status = NO_MEMORY;
    if (!validity || !values) goto fail;
    for (int64_t i = 0; i < rows; i++) {
        status = fixed_value(text, s->spans[order[i] * s->width + slot], column, &values[i]);
        if (status < 0) goto fail;
        if (status) set_valid(validity, i);
        else nulls++, values[i].whole = 0;
    }
    if (is_small(column)) nulls = narrow(&values->whole, validity, rows, nulls);
    return give_column(array, rows, nulls, 2, (void *[]){validity, values});
fail:
    free(validity), free(values);
    return status;
}

/* A column without any value, of texts (16 bytes) or numbers (8). */
static int32_t absent_column(int64_t rows, size_t size, struct ArrowArray *array) {
    void *values = calloc((size_t)rows + 1, size);
    uint8_t *validity = new_validity(rows), *data = malloc(1);
    int64_t *sizes = calloc(1, sizeof *sizes);
    if (!values || !validity || !sizes || !data) {
        free(values), free(validity), free(sizes), free(data);
        return NO_MEMORY;
    }
    if (size == 16) return give_column(array, rows, rows, 4, (void *[]){validity, values, data, sizes});
    free(sizes), free(data);
    return give_column(array, rows, rows, 2, (void *[]){validity, values});
}

/* One field of the rows `order[from ... from + rows)` as an Arrow array of int64, int32, float64 or string views. */
EXPORT int32_t ss_column(const scan *s, const uint8_t *text, int32_t field, int64_t from, int64_t rows, int32_t column,
                         struct ArrowArray *array, struct ArrowSchema *schema) {
    const int32_t *order = s->order + from, slot = place_of(s, field);
    int is_text = column == COLUMN_TEXT || column == COLUMN_JSON;
    int32_t status = slot < 0  ? absent_column(rows, is_text ? 16 : 8, array)
                     : is_text ? text_column(s, text, slot, order, rows, column == COLUMN_JSON, array)
                               : fixed_column(s, text, slot, order, rows, column, array);
    int is_decimal = column == COLUMN_FLOAT || column == COLUMN_FINITE;
    if (status == DONE) describe(schema, is_text ? "vu" : is_decimal ? "g" : is_small(column) ? "i" : "l");
    return status;
}

/* Some fields of the events `order[from ... from + rows)` as the columns of a struct, each as `ss_column`. */
EXPORT int32_t ss_columns(const scan *s, const uint8_t *text, const int32_t *fields, const int32_t *columns,
                          int64_t count, int64_t from, int64_t rows, struct ArrowArray *array,
                          struct ArrowSchema *schema) {
    int32_t status = new_struct(array, schema, count);
    for (int64_t k = 0; !status && k < count; k++) {
        struct ArrowArray *child = array->children[k];
        struct ArrowSchema *own = schema->children[k];
        status = ss_column(s, text, fields[k], from, rows, columns[k], child, own);
        if (status) child->release = NULL, own->release = NULL;
        else name_child(schema, k);
    }
    if (status && array->release) array->release(array), schema->release(schema);
    else array->length = rows;
    return status;
}
