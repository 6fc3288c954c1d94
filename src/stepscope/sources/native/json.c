#include "json.h"

#include <string.h>
#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "numbers.h"
#include "text.h"

#define MAX_DEPTH 256

int read_string(reader *r, span *out) {
    const uint8_t *start = r->at, *p = start, *end = r->end;
    int escaped = 0;
    for (;;) {
#ifdef __SSE2__
        while (end - p >= 16) { /* sixteen characters at a time */
            __m128i c = _mm_loadu_si128((const __m128i *)p), low = _mm_cmpeq_epi8(_mm_min_epu8(c, _mm_set1_epi8(0x1f)), c);
            __m128i marks = _mm_or_si128(_mm_cmpeq_epi8(c, _mm_set1_epi8('"')), _mm_cmpeq_epi8(c, _mm_set1_epi8('\\')));
            int found = _mm_movemask_epi8(_mm_or_si128(marks, low));
            if (found) {
                p += __builtin_ctz((unsigned)found);
                goto found;
            }
            p += 16;
        }
#endif
#if LITTLE_ENDIAN_HOST
        while (end - p >= 8) { /* eight characters at a time */
            uint64_t w, quote, slash, low;
            memcpy(&w, p, 8);
            quote = w ^ 0x2222222222222222ull;
            slash = w ^ 0x5c5c5c5c5c5c5c5cull;
            low = (w - 0x2020202020202020ull) & ~w;
            quote = (quote - 0x0101010101010101ull) & ~quote;
            slash = (slash - 0x0101010101010101ull) & ~slash;
            low = (quote | slash | low) & 0x8080808080808080ull;
            if (low) { /* the lowest mark is exact, those above it may be borrowed */
                p += __builtin_ctzll(low) >> 3;
                goto found;
            }
            p += 8;
        }
#endif
        while (p < end && *p != '"' && *p != '\\' && *p >= 0x20) p++;
        if (p >= end) return 0;
#if LITTLE_ENDIAN_HOST
    found:
#endif
        if (*p == '"') break;
        if (*p != '\\') return 0;
        escaped = 1;
        if (!(p = escape_end(p, end))) return 0;
    }
    if (p - start > MAX_LENGTH) return 0;
    *out = SPAN(start - r->text, p - start, escaped ? ESCAPED : STRING);
    r->at = p + 1;
    return 1;
}

static int read_literal(reader *r, const char *word, size_t length) {
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length)) return 0;
    r->at += length;
    return 1;
}

/* Most numbers are short and whole; the others get a closer look. */
static inline int read_number(reader *r) {
    const uint8_t *start = r->at, *p = start;
    while (p < r->end && is_digit(*p)) p++;
    if (p < r->end && *p != '.' && (*p | 0x20) != 'e' && p > start && p - start <= 18 && (*start != '0' || p == start + 1)) {
        r->at = p;
        return 1;
    }
    if (!(p = number_end(start, r->end)) || p - start > MAX_LENGTH) return 0;
    r->at = p;
    return is_surely_finite(start, (uint32_t)(p - start));
}

static int skip_nested(reader *r);

int read_value(reader *r, span *out) {
    const uint8_t *start = r->at;
    int kind;
    if (start >= r->end) return 0;
    switch (*start) {
    case '"':
        r->at++;
        return read_string(r, out);
    case '{':
    case '[':
        if (!skip_nested(r)) return 0;
        kind = NESTED;
        break;
    case 'n':
        if (!read_literal(r, "null", 4)) return 0;
        kind = LITERAL_NULL;
        break;
    case 't':
        if (!read_literal(r, "true", 4)) return 0;
        kind = LITERAL_OTHER;
        break;
    case 'f':
        if (!read_literal(r, "false", 5)) return 0;
        kind = LITERAL_OTHER;
        break;
    default:
        if (!read_number(r)) return 0;
        kind = NUMBER;
    }
    if (r->at - start > MAX_LENGTH) return 0;
    *out = SPAN(start - r->text, r->at - start, kind);
    return 1;
}

/* At a key of an object whose keys are of no interest; moves to its value. */
static int skip_key(reader *r) {
    span unused;
    skip_space(r);
    if (r->at >= r->end || *r->at++ != '"' || !read_string(r, &unused)) return 0;
    skip_space(r);
    return r->at < r->end && *r->at++ == ':';
}

/* At `{` or `[`; moves to the place after the bracket that closes it. */
static int skip_nested(reader *r) {
    uint8_t closing[MAX_DEPTH], c;
    int depth = 0;
    span unused;
    for (;;) {
        skip_space(r); /* at a value */
        if (r->at >= r->end) return 0;
        c = *r->at;
        if (c == '{' || c == '[') {
            if (depth == MAX_DEPTH) return 0;
            closing[depth++] = c == '{' ? '}' : ']';
            r->at++;
            skip_space(r);
            if (r->at >= r->end) return 0;
            if (*r->at != closing[depth - 1]) {
                if (c == '{' && !skip_key(r)) return 0;
                continue;
            }
        } else if (!read_value(r, &unused)) {
            return 0;
        }
        for (;;) { /* after a value, or at the end of an empty object or list */
            skip_space(r);
            if (r->at >= r->end) return 0;
            c = *r->at++;
            if (c == ',') break;
            if (c != closing[--depth]) return 0;
            if (depth == 0) return 1;
        }
        if (closing[depth - 1] == '}' && !skip_key(r)) return 0;
    }
}

