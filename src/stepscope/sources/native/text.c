#include "text.h"

#include <string.h>

#include "numbers.h"

int is_utf8(const uint8_t *p, int64_t length) {
    const uint8_t *end = p + length;
    while (p < end) {
        uint8_t c = *p;
        int more;
        uint32_t code;
        if (c < 0x80) {
            while (end - p >= 32) { /* ASCII, by far the most of it */
                uint64_t w[4];
                memcpy(w, p, 32);
                if ((w[0] | w[1] | w[2] | w[3]) & 0x8080808080808080ull) break;
                p += 32;
            }
            while (p < end && *p < 0x80) p++;
            continue;
        }
        if (c >= 0xc2 && c <= 0xdf) more = 1, code = c & 31;
        else if (c >= 0xe0 && c <= 0xef) more = 2, code = c & 15;
        else if (c >= 0xf0 && c <= 0xf4) more = 3, code = c & 7;
        else return 0;
        if (end - p <= more) return 0;
        for (int i = 1; i <= more; i++) {
            if ((p[i] & 0xc0) != 0x80) return 0;
            code = code << 6 | (p[i] & 63);
        }
        if ((more == 2 && (code < 0x800 || (code >= 0xd800 && code < 0xe000))) ||
            (more == 3 && (code < 0x10000 || code > 0x10ffff)))
            return 0;
        p += more + 1;
    }
    return 1;
}

/* Value of four hexadecimal digits, or -1. */
static int32_t four_digits(const uint8_t *p) {
    int32_t value = 0;
    for (int i = 0; i < 4; i++) {
        uint8_t c = p[i];
        int digit = is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

const uint8_t *escape_end(const uint8_t *p, const uint8_t *end) {
    int32_t code;
    if (end - p < 2) return NULL;
    if (p[1] != 'u') return p[1] && strchr("\"\\/bfnrt", p[1]) ? p + 2 : NULL;
    if (end - p < 6 || (code = four_digits(p + 2)) < 0 || (code >= 0xdc00 && code < 0xe000)) return NULL;
    if (code < 0xd800 || code >= 0xe000) return p + 6;
    if (end - p < 12 || p[6] != '\\' || p[7] != 'u') return NULL;
    code = four_digits(p + 8);
    return code >= 0xdc00 && code < 0xe000 ? p + 12 : NULL;
}

/* Write a code point as UTF-8; returns the place after it. */
static uint8_t *put_code(uint8_t *o, int32_t code) {
    if (code < 0x80) {
        *o++ = (uint8_t)code;
        return o;
    }
    if (code < 0x800) {
        *o++ = (uint8_t)(0xc0 | code >> 6);
    } else {
        if (code < 0x10000) {
            *o++ = (uint8_t)(0xe0 | code >> 12);
        } else {
            *o++ = (uint8_t)(0xf0 | code >> 18);
            *o++ = (uint8_t)(0x80 | (code >> 12 & 63));
        }
        *o++ = (uint8_t)(0x80 | (code >> 6 & 63));
    }
    *o++ = (uint8_t)(0x80 | (code & 63));
    return o;
}

int64_t unescape(const uint8_t *p, uint32_t length, uint8_t *out) {
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const uint8_t *end = p + length;
    uint8_t *o = out;
    while (p < end) {
        int32_t code;
        if (*p != '\\') {
            *o++ = *p++;
        } else if (p[1] != 'u') {
            *o++ = (uint8_t)meant[strchr(letters, p[1]) - letters];
            p += 2;
        } else {
            code = four_digits(p + 2);
            p += 6;
            if (code >= 0xd800 && code < 0xdc00) {
                code = 0x10000 + ((code - 0xd800) << 10) + (four_digits(p + 2) - 0xdc00);
                p += 6;
            }
            o = put_code(o, code);
        }
    }
    return o - out;
}
