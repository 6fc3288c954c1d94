#include "numbers.h"

#include <stdlib.h>
#include <string.h>

#include "spans.h"

const uint8_t *number_end(const uint8_t *p, const uint8_t *end) {
    if (p < end && *p == '-') p++;
    if (p >= end || !is_digit(*p)) return NULL;
    if (*p == '0' && p + 1 < end && is_digit(p[1])) return NULL;
    while (p < end && is_digit(*p)) p++;
    if (p < end && *p == '.') {
        if (++p >= end || !is_digit(*p)) return NULL;
        while (p < end && is_digit(*p)) p++;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        if (p >= end || !is_digit(*p)) return NULL;
        while (p < end && is_digit(*p)) p++;
    }
    return p;
}

int is_surely_finite(const uint8_t *p, uint32_t length) {
    const uint8_t *end = p + length;
    int exponent = 0, digits = 0;
    if (length > 100) return 0;
    while (p < end && *p != 'e' && *p != 'E') p++;
    if (p == end) return 1;
    if (*++p == '-' || *p == '+') p++;
    for (; p < end; p++, digits++) exponent = digits < 4 ? exponent * 10 + (*p - '0') : exponent;
    return digits < 4 && exponent <= 200; /* 100 digits and 200 zeros at most: below the 308 of a float */
}

/* Whether eight digits stand at `p`, and their number. */
static inline int eight_digits(const uint8_t *p, uint64_t *out) {
#if LITTLE_ENDIAN_HOST
    uint64_t w, above;
    memcpy(&w, p, 8);
    above = w + 0x4646464646464646ull; /* over `9`: sets the high bit */
    w -= 0x3030303030303030ull;        /* below `0`: likewise */
    if ((w | above) & 0x8080808080808080ull) return 0;
    w = w * 10 + (w >> 8); /* pairs of digits, then pairs of these */
    *out = ((w & 0x000000ff000000ffull) * 0x000f424000000064ull + (w >> 16 & 0x000000ff000000ffull) * 0x0000271000000001ull) >> 32;
    return 1;
#else
    uint64_t value = 0;
    for (int i = 0; i < 8; i++) {
        if (!is_digit(p[i])) return 0;
        value = value * 10 + (p[i] - '0');
    }
    *out = value;
    return 1;
#endif
}

int whole_number(const uint8_t *p, uint32_t length, int64_t *out) {
    const uint8_t *end = p + length;
    int negative = p < end && *p == '-';
    int64_t value = 0;
    if (negative) p++;
    if (p >= end || end - p > 18) return 0; /* 19 digits may not fit */
    for (; p < end; p++) {
        if (!is_digit(*p)) return 0;
        value = value * 10 + (*p - '0');
    }
    *out = negative ? -value : value;
    return 1;
}

/* Up to 15 digits are exact, and so are all powers of ten up to 22: one division rounds once. */
int float_number(const uint8_t *p, uint32_t length, double *out) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const uint8_t *start = p, *end = p + length;
    int negative = p < end && *p == '-', digits = 0, decimals = 0, seen_point = 0;
    char copy[64], *stop;
    uint64_t value = 0;
    if (negative) p++;
    for (; p < end && digits <= 15; p++) {
        if (*p == '.' && !seen_point) {
            seen_point = 1;
        } else if (is_digit(*p)) {
            digits++;
            decimals += seen_point;
            value = value * 10 + (*p - '0');
        } else {
            break;
        }
    }
    if (p == end && digits > 0 && digits <= 15) {
        double magnitude = decimals ? (double)value / tens[decimals] : (double)value;
        *out = negative ? -magnitude : magnitude;
        return 1;
    }
    if (length >= sizeof copy || length == 0) return 0;
    memcpy(copy, start, length);
    copy[length] = 0;
    *out = strtod(copy, &stop); /* where the locale has another decimal point, this stops early and Python reads it */
    return stop == copy + length;
}

int exact_time(const uint8_t *p, uint32_t length, int places, int64_t *out) {
    static const int64_t tens[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    static const uint64_t most[] = {INT64_MAX, INT64_MAX / 10 - 1, INT64_MAX / 100 - 1, INT64_MAX / 1000 - 1,
                                   INT64_MAX / 10000 - 1, INT64_MAX / 100000 - 1, INT64_MAX / 1000000 - 1};
    const uint8_t *end = p + length;
    int negative = p < end && *p == '-', digits = 0;
    int64_t scale = tens[places], ns;
    uint64_t value = 0, eight;
    if (negative) p++;
    for (; end - p >= 8 && digits < 16 && eight_digits(p, &eight); p += 8, digits += 8)
        value = value * 100000000 + eight;
    for (; p < end && is_digit(*p); p++) {
        if (++digits > 19) return 0;
        value = value * 10 + (uint64_t)(*p - '0');
    }
    if (!digits || value > most[places]) return 0;
    ns = (int64_t)value * scale;
    if (p < end && *p == '.') {
        for (p++; p < end && is_digit(*p); p++) {
            scale /= 10;
            ns += (*p - '0') * scale;
        }
    }
    if (p != end) return 0;
    *out = negative ? -ns : ns;
    return 1;
}

int is_plain_whole(const uint8_t *p, uint32_t length) {
    if (*p == '-' && p[1] == '0') return 0;
    for (uint32_t k = *p == '-'; k < length; k++)
        if (!is_digit(p[k])) return 0;
    return 1;
}
