/* Numbers as text. */
#ifndef STEPSCOPE_NUMBERS_H
#define STEPSCOPE_NUMBERS_H

#include <stdint.h>

static inline int is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

/* Where the JSON number at `p` ends; null if there is none. */
const uint8_t *number_end(const uint8_t *p, const uint8_t *end);

/* Whether a float can hold a JSON number: 0 also if that takes a closer look. */
int is_surely_finite(const uint8_t *p, uint32_t length);

/* Whole number of up to 18 digits; 0 for anything else. */
int whole_number(const uint8_t *p, uint32_t length, int64_t *out);

/* JSON number as the nearest float; 0 if it is too long. */
int float_number(const uint8_t *p, uint32_t length, double *out);

/* Decimal time as nanoseconds, exactly, without further digits; 0 for anything else and what does not fit. Its unit is
 * `places` (0 to 6) decimal places above the nanosecond. */
int exact_time(const uint8_t *p, uint32_t length, int places, int64_t *out);

/* Whether a JSON number is written as Python writes whole numbers. */
int is_plain_whole(const uint8_t *p, uint32_t length);

#endif
