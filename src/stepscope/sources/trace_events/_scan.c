/* Trace events -> Arrow columns, for clean JSON.
 *
 * `ss_scan` walks a chunk of events once and notes where each wanted value stands (a span). `ss_sort` sorts the events
 * into classes. `ss_column` turns the spans of one field into an Arrow array. Whatever is not plain, valid JSON of the
 * expected shape makes these functions refuse; the caller then decodes the chunk in Python, which knows how to save
 * what can be saved. `ss_table` does for plain CSV files what `ss_scan` does for events. No function here calls back
 * into Python, so callers run without the interpreter's lock.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <malloc.h>
#endif

#define SS_VERSION 6
#define MAX_DEPTH 256
#define MAX_LENGTH ((1u << 28) - 1)
#define BASE_FIELDS 8
#define EXPORT __attribute__((visibility("default")))

enum kind { ABSENT, NUMBER, STRING, ESCAPED, NESTED, LITERAL_NULL, LITERAL_OTHER };
enum column { COLUMN_TEXT, COLUMN_JSON, COLUMN_INT, COLUMN_FLOAT, COLUMN_TIME };
enum answer { DONE = 0, REFUSED = -1, NO_MEMORY = -2 };

/* A span: start (32 bits), kind (4 bits), length (28 bits); quotes are not part of a string's span. */
typedef uint64_t span;
#define SPAN(start, length, kind) (((span)(uint32_t)(start) << 32) | ((span)(kind) << 28) | (span)(length))
#define START(s) ((uint32_t)((s) >> 32))
#define KIND(s) ((int)(((s) >> 28) & 15))
#define LENGTH(s) ((uint32_t)((s) & MAX_LENGTH))

typedef struct {
    const uint8_t *words;
    const int32_t *ends; /* end of each word in `words` */
    int32_t count;
} word_list;

typedef struct {
    span *spans; /* events x fields */
    int64_t count, capacity;
    int32_t fields;
    int32_t *order;   /* events sorted by class, in file order within a class */
    int64_t end;      /* behind the bracket that ends the array; -1 if it does not end here */
    int64_t length;   /* of the text */
} scan;

/* ---------------------------------------------------------------- reading */

#define SEEN_KEYS 64
/* A place by the first six bytes: quote, and five letters or the end of a short key. */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define HEAD_MASK(bytes) ((1ull << 8 * (bytes)) - 1)
#define SEEN_PLACE(head) ((int)(((head) & HEAD_MASK(6)) * 0x9e3779b97f4a7c15ull >> 58))
#else
#define HEAD_MASK(bytes) (~0ull << 8 * (8 - (bytes)))
#define SEEN_PLACE(head) ((int)(((head) >> 16) * 0x9e3779b97f4a7c15ull >> 58))
#endif

/* A key as it stood in an earlier object, from its quote to the value. Writers repeat themselves to the blank. */
typedef struct {
    const uint8_t *text;
    uint64_t head, mask; /* its first eight bytes, and which of them belong to it; 0 and 0 if the place is free */
    uint32_t length;
    int16_t field, next; /* what it means, and the place of the key that came behind it */
} seen_key;

typedef struct {
    const uint8_t *text, *at, *end;
    const word_list *keys;
    int16_t buckets[256], next[256]; /* key hash -> wanted keys */
    seen_key seen[2][SEEN_KEYS];     /* of events, and of their arguments */
    int16_t first[2];                /* the key that the last such object began with */
} reader;

static inline void skip_space(reader *r) {
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\n' || *r->at == '\t' || *r->at == '\r')) r->at++;
}

static inline int is_digit(uint8_t c) { return c >= '0' && c <= '9'; }

/* Number of a hexadecimal digit quadruple, or -1. */
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

/* At a backslash; where its escape ends, or null if it is none. Halves of surrogate pairs are none. */
static const uint8_t *escape_end(const uint8_t *p, const uint8_t *end) {
    int32_t code;
    if (end - p < 2) return NULL;
    if (p[1] != 'u') return p[1] && strchr("\"\\/bfnrt", p[1]) ? p + 2 : NULL;
    if (end - p < 6 || (code = four_digits(p + 2)) < 0 || (code >= 0xdc00 && code < 0xe000)) return NULL;
    if (code < 0xd800 || code >= 0xe000) return p + 6;
    if (end - p < 12 || p[6] != '\\' || p[7] != 'u') return NULL;
    code = four_digits(p + 8);
    return code >= 0xdc00 && code < 0xe000 ? p + 12 : NULL;
}

static int is_utf8(const uint8_t *p, int64_t length) {
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

/* At the first character behind the opening quote; leaves `at` behind the closing one. */
static int read_string(reader *r, span *out) {
    const uint8_t *start = r->at, *p = start, *end = r->end;
    int escaped = 0;
    for (;;) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
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
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
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

/* Where the number at `p` ends; null if there is none. */
static const uint8_t *number_end(const uint8_t *p, const uint8_t *end) {
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

static int read_literal(reader *r, const char *word, size_t length) {
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length)) return 0;
    r->at += length;
    return 1;
}

/* Moves behind a number, if there is one of valid form that a float can hold; the longest are not looked at. */
static inline int read_number(reader *r) {
    const uint8_t *start = r->at, *p = start;
    char copy[64];
    size_t length;
    while (p < r->end && is_digit(*p)) p++;
    if (p < r->end && *p != '.' && (*p | 0x20) != 'e' && p > start && p - start <= 18 && (*start != '0' || p == start + 1)) {
        r->at = p;
        return 1;
    }
    if (!(p = number_end(start, r->end))) return 0;
    length = (size_t)(p - start);
    r->at = p;
    if (length <= 18 && !memchr(start, 'e', length) && !memchr(start, 'E', length)) return 1;
    if (length >= sizeof copy) return 0;
    memcpy(copy, start, length);
    copy[length] = 0;
    return isfinite(strtod(copy, NULL));
}

static int skip_nested(reader *r);

static int read_value(reader *r, span *out) {
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

/* At `{` or `[`; moves behind what it opens. */
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
        for (;;) { /* behind a value, or at the end of an empty object or list */
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

static inline uint8_t hash_key(const uint8_t *key, uint32_t length) {
    return length ? (uint8_t)(length * 31 + key[0] * 7 + key[length - 1] * 13 + key[length / 2]) : 0;
}

static void index_keys(reader *r) {
    memset(r->buckets, -1, sizeof r->buckets);
    for (int32_t i = 0; i < r->keys->count; i++) {
        int32_t from = i ? r->keys->ends[i - 1] : 0;
        uint8_t h = hash_key(r->keys->words + from, r->keys->ends[i] - from);
        r->next[i] = r->buckets[h];
        r->buckets[h] = (int16_t)i;
    }
}

static int find_argument(const reader *r, const uint8_t *key, uint32_t length) {
    for (int i = r->buckets[hash_key(key, length)]; i >= 0; i = r->next[i]) {
        int32_t from = i ? r->keys->ends[i - 1] : 0;
        if ((uint32_t)(r->keys->ends[i] - from) == length && !memcmp(r->keys->words + from, key, length)) return i;
    }
    return -1;
}

enum { F_PH, F_NAME, F_CAT, F_PID, F_TID, F_TS, F_DUR, F_ID, F_ARGS };

/* The kinds of value that an event may have in each field; with any other, the event is none. */
#define OF(kind) (1u << (kind))
#define A_TEXT (OF(STRING) | OF(ESCAPED))
#define A_LABEL (A_TEXT | OF(NUMBER) | OF(LITERAL_NULL))
static const uint8_t FITTING[] = {[F_PH] = A_TEXT,     [F_NAME] = A_LABEL, [F_CAT] = A_TEXT | OF(LITERAL_NULL),
                                  [F_PID] = A_LABEL,   [F_TID] = A_LABEL,  [F_TS] = 0xff,
                                  [F_DUR] = A_LABEL,   [F_ID] = A_LABEL,   [F_ARGS] = OF(LITERAL_NULL)};

static int find_field(const uint8_t *key, uint32_t length) {
    switch (length) {
    case 2:
        if (key[0] == 'p' && key[1] == 'h') return F_PH;
        if (key[0] == 't' && key[1] == 's') return F_TS;
        if (key[0] == 'i' && key[1] == 'd') return F_ID;
        return -1;
    case 3:
        if (!memcmp(key, "cat", 3)) return F_CAT;
        if (!memcmp(key, "pid", 3)) return F_PID;
        if (!memcmp(key, "tid", 3)) return F_TID;
        if (!memcmp(key, "dur", 3)) return F_DUR;
        return -1;
    case 4:
        if (!memcmp(key, "name", 4)) return F_NAME;
        if (!memcmp(key, "args", 4)) return F_ARGS;
        return -1;
    default:
        return -1;
    }
}

/* Whether the key stands at `at`, of which `head` are the first eight bytes. */
static inline int is_key(const seen_key *one, const reader *r, uint64_t head) {
    uint64_t x, y;
    if ((head & one->mask) != one->head || !one->mask) return 0;
    if (one->length <= 8) return 1;
    if (r->end - r->at < one->length) return 0;
    for (uint32_t i = 8; i < one->length - 8; i += 8) {
        memcpy(&x, one->text + i, 8);
        memcpy(&y, r->at + i, 8);
        if (x != y) return 0;
    }
    memcpy(&x, one->text + one->length - 8, 8);
    memcpy(&y, r->at + one->length - 8, 8);
    return x == y;
}

/* At a key; moves to its value and returns the key's place among the seen ones, or -1 if this is no plain key. `guess`
 * is the place of the key that is expected. */
static inline int read_key(reader *r, int arguments, int guess) {
    const uint8_t *start = r->at;
    seen_key *seen = r->seen[arguments], *one = &seen[guess];
    uint64_t head = 0;
    span key;
    int place, known = r->end - start >= 8;
    if (known) {
        memcpy(&head, start, 8);
        if (is_key(one, r, head)) {
            r->at += one->length;
            skip_space(r);
            return guess;
        }
    }
    place = SEEN_PLACE(head);
    one = &seen[place];
    if (known && is_key(one, r, head)) {
        r->at += one->length;
        skip_space(r);
        return place;
    }
    if (r->at >= r->end || *r->at++ != '"' || !read_string(r, &key) || KIND(key) == ESCAPED) return -1;
    skip_space(r);
    if (r->at >= r->end || *r->at++ != ':') return -1;
    skip_space(r);
    one->text = start;
    one->length = (uint32_t)(r->at - start);
    one->mask = !known ? 0 : one->length >= 8 ? ~0ull : HEAD_MASK(one->length);
    one->head = head & one->mask;
    one->field = (int16_t)(arguments ? find_argument(r, r->text + START(key), LENGTH(key))
                                     : find_field(r->text + START(key), LENGTH(key)));
    return place;
}

/* At `{`; fills the spans of an event, or of its arguments. */
static int read_object(reader *r, span *out, int arguments) {
    int16_t *expected = &r->first[arguments];
    int args_seen = 0;
    span value;
    r->at++;
    skip_space(r);
    if (r->at < r->end && *r->at == '}') {
        r->at++;
        return 1;
    }
    for (;;) {
        int place, field;
        skip_space(r);
        if ((place = read_key(r, arguments, *expected)) < 0) return 0;
        *expected = (int16_t)place;
        expected = &r->seen[arguments][place].next;
        field = r->seen[arguments][place].field;
        if (arguments) {
            if (!read_value(r, &value)) return 0;
            if (field >= 0) out[BASE_FIELDS + field] = value;
        } else if (field == F_ARGS && args_seen++) {
            return 0; /* the last of them counts, whole */
        } else if (field == F_ARGS && r->at < r->end && *r->at == '{') {
            if (!read_object(r, out, 1)) return 0;
        } else {
            if (!read_value(r, &value)) return 0;
            if (field >= 0 && !(FITTING[field] & OF(KIND(value)))) return 0;
            if (field >= 0 && field < F_ARGS) out[field] = value;
        }
        skip_space(r);
        if (r->at >= r->end) return 0;
        if (*r->at == '}') {
            r->at++;
            return 1;
        }
        if (*r->at++ != ',') return 0;
    }
}

EXPORT void ss_free(scan *s) {
    if (!s) return;
    free(s->spans);
    free(s->order);
    free(s);
}

/* Scan events separated by commas. `last`: the text holds the end of the array. Returns null if it refuses. */
EXPORT scan *ss_scan(const uint8_t *text, int64_t length, const uint8_t *words, const int32_t *ends, int32_t keys,
                     int32_t last) {
    word_list wanted = {words, ends, keys};
    reader r = {.text = text, .at = text, .end = text + length, .keys = &wanted};
    scan *s;
    if (keys > 255 || length > UINT32_MAX || !is_utf8(text, length) || !(s = calloc(1, sizeof *s))) return NULL;
    s->fields = BASE_FIELDS + keys;
    s->end = -1;
    s->length = length;
    index_keys(&r);
    skip_space(&r);
    while (r.at < r.end && !(last && *r.at == ']')) {
        if (*r.at != '{') goto refuse;
        if (s->count == s->capacity) {
            int64_t capacity = s->capacity ? s->capacity * 2 : 4096;
            span *grown = realloc(s->spans, (size_t)capacity * s->fields * sizeof(span));
            if (!grown) goto refuse;
            s->spans = grown;
            s->capacity = capacity;
        }
        span *event = s->spans + s->count * s->fields;
        memset(event, 0, s->fields * sizeof(span));
        if (!read_object(&r, event, 0)) goto refuse;
        s->count++;
        skip_space(&r);
        if (r.at >= r.end || *r.at == ']') break;
        if (*r.at++ != ',') goto refuse;
        skip_space(&r);
        if (r.at >= r.end || *r.at != '{') goto refuse;
    }
    if (last) {
        if (r.at >= r.end || *r.at != ']') goto refuse;
        s->end = r.at + 1 - text;
    } else if (r.at < r.end) {
        goto refuse;
    }
    return s;
refuse:
    ss_free(s);
    return NULL;
}

/* Give memory of finished scans back to the system. */
EXPORT void ss_trim(void) {
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

EXPORT int64_t ss_count(const scan *s) { return s->count; }
EXPORT int64_t ss_end(const scan *s) { return s->end; }
EXPORT int32_t ss_version(void) { return SS_VERSION; }

/* ---------------------------------------------------------------- sorting */

static int same(const uint8_t *text, span a, span b) {
    const uint8_t *p = text + START(a), *q = text + START(b);
    if (KIND(a) != KIND(b) || LENGTH(a) != LENGTH(b)) return 0;
    return LENGTH(a) == 0 || (*p == *q && (LENGTH(a) == 1 || !memcmp(p, q, LENGTH(a))));
}

/* Give each event the number of its (ph, cat) pair; `firsts` gets an event of each pair. Returns the number of pairs. */
EXPORT int32_t ss_pairs(const scan *s, const uint8_t *text, int32_t *pairs, int32_t *firsts, int32_t most) {
    int32_t known = 0, previous = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const span *e = s->spans + i * s->fields;
        int32_t n = previous;
        if (KIND(e[F_PH]) == ESCAPED || KIND(e[F_CAT]) == ESCAPED) return REFUSED;
        for (int32_t tried = 0; tried < known; tried++, n = n + 1 < known ? n + 1 : 0) {
            const span *f = s->spans + (int64_t)firsts[n] * s->fields;
            if (same(text, e[F_PH], f[F_PH]) && same(text, e[F_CAT], f[F_CAT])) goto found;
        }
        if (known == most) return REFUSED;
        n = known++;
        firsts[n] = (int32_t)i;
    found:
        pairs[i] = previous = n;
    }
    return known;
}

/* Where a base field of an event stands: start, length and kind. */
EXPORT void ss_where(const scan *s, int64_t event, int32_t field, int64_t *out) {
    span found = s->spans[event * s->fields + field];
    out[0] = START(found);
    out[1] = LENGTH(found);
    out[2] = KIND(found);
}

/* Sort events by class. `class_of[pair]` is the class of a pair's events (-1: none), unless the event's name is
 * `rules.words[i]` and its pair is `rule_pair[i]`: then it is `rule_class[i]`. `counts` gets the size of each class,
 * `left` the events of no class by pair. */
EXPORT int32_t ss_sort(scan *s, const uint8_t *text, int32_t *pairs, int32_t pair_count, const int32_t *class_of,
                       int32_t classes, const uint8_t *words, const int32_t *ends, const int32_t *rule_pair,
                       const int32_t *rule_class, int32_t rules, int64_t *counts, int64_t *left) {
    memset(counts, 0, classes * sizeof *counts);
    memset(left, 0, pair_count * sizeof *left);
    int64_t *next = calloc(classes + 1, sizeof *next);
    s->order = malloc((size_t)(s->count + 1) * sizeof *s->order);
    if (!next || !s->order) {
        free(next);
        return NO_MEMORY;
    }
    for (int64_t i = 0; i < s->count; i++) {
        int32_t pair = pairs[i], class = class_of[pair];
        for (int32_t k = 0; k < rules; k++) {
            span name = s->spans[i * s->fields + F_NAME];
            int32_t from = k ? ends[k - 1] : 0;
            if (rule_pair[k] == pair && KIND(name) == ESCAPED) {
                free(next);
                return REFUSED;
            }
            if (rule_pair[k] == pair && KIND(name) == STRING && (int32_t)LENGTH(name) == ends[k] - from &&
                !memcmp(text + START(name), words + from, LENGTH(name))) {
                class = rule_class[k];
                break;
            }
        }
        if (class < 0) left[pair]++;
        else counts[class]++;
        pairs[i] = class;
    }
    for (int32_t c = 0; c < classes; c++) next[c + 1] = next[c] + counts[c];
    for (int64_t i = 0; i < s->count; i++)
        if (pairs[i] >= 0) s->order[next[pairs[i]]++] = (int32_t)i;
    free(next);
    return DONE;
}

/* ---------------------------------------------------------------- columns */

struct ArrowSchema {
    const char *format, *name, *metadata;
    int64_t flags, n_children;
    struct ArrowSchema **children, *dictionary;
    void (*release)(struct ArrowSchema *);
    void *private_data;
};

struct ArrowArray {
    int64_t length, null_count, offset, n_buffers, n_children;
    const void **buffers;
    struct ArrowArray **children, *dictionary;
    void (*release)(struct ArrowArray *);
    void *private_data;
};

static void release_schema(struct ArrowSchema *schema) { schema->release = NULL; }

static void release_array(struct ArrowArray *array) {
    for (int64_t i = 0; i < array->n_buffers; i++) free((void *)array->buffers[i]);
    free(array->buffers);
    array->release = NULL;
}

/* Copy a string's content without its escapes; returns its length or -1. The result is never longer than the source. */
static int64_t unescape(const uint8_t *p, uint32_t length, uint8_t *out) {
    const uint8_t *end = p + length;
    uint8_t *o = out;
    while (p < end) {
        if (*p != '\\') {
            *o++ = *p++;
            continue;
        }
        if (end - p < 2) return -1;
        p++;
        switch (*p++) {
        case '"': *o++ = '"'; break;
        case '\\': *o++ = '\\'; break;
        case '/': *o++ = '/'; break;
        case 'b': *o++ = '\b'; break;
        case 'f': *o++ = '\f'; break;
        case 'n': *o++ = '\n'; break;
        case 'r': *o++ = '\r'; break;
        case 't': *o++ = '\t'; break;
        case 'u': {
            int32_t code, low;
            if (end - p < 4 || (code = four_digits(p)) < 0) return -1;
            p += 4;
            if (code >= 0xdc00 && code < 0xe000) return -1;
            if (code >= 0xd800 && code < 0xdc00) {
                if (end - p < 6 || p[0] != '\\' || p[1] != 'u' || (low = four_digits(p + 2)) < 0xdc00 || low > 0xdfff)
                    return -1;
                p += 6;
                code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
            }
            if (code < 0x80) {
                *o++ = (uint8_t)code;
            } else if (code < 0x800) {
                *o++ = (uint8_t)(0xc0 | code >> 6);
                *o++ = (uint8_t)(0x80 | (code & 63));
            } else if (code < 0x10000) {
                *o++ = (uint8_t)(0xe0 | code >> 12);
                *o++ = (uint8_t)(0x80 | (code >> 6 & 63));
                *o++ = (uint8_t)(0x80 | (code & 63));
            } else {
                *o++ = (uint8_t)(0xf0 | code >> 18);
                *o++ = (uint8_t)(0x80 | (code >> 12 & 63));
                *o++ = (uint8_t)(0x80 | (code >> 6 & 63));
                *o++ = (uint8_t)(0x80 | (code & 63));
            }
            break;
        }
        default: return -1;
        }
    }
    return o - out;
}

/* Whether eight digits stand at `p`, and their number. */
static inline int eight_digits(const uint8_t *p, uint64_t *out) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
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

/* Whole number of a span, if it is one that fits. */
static int whole(const uint8_t *p, uint32_t length, int64_t *out) {
    const uint8_t *end = p + length;
    int negative = p < end && *p == '-';
    uint64_t value = 0;
    if (negative) p++;
    if (p >= end || end - p > 18) return 0; /* 19 digits may not fit; Python looks at those */
    for (; p < end; p++) {
        if (!is_digit(*p)) return 0;
        value = value * 10 + (*p - '0');
    }
    *out = negative ? -(int64_t)value : (int64_t)value;
    return 1;
}

/* Decimal number of a span as a float: exact for up to 15 digits and 22 decimals, as all powers of ten involved are. */
static int decimal(const uint8_t *p, uint32_t length, double *out) {
    static const double tens[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                  1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    const uint8_t *start = p, *end = p + length;
    int negative = p < end && *p == '-', digits = 0, decimals = 0, seen_point = 0;
    uint64_t value = 0;
    if (negative) p++;
    for (; p < end; p++) {
        if (*p == '.' && !seen_point) {
            seen_point = 1;
        } else if (is_digit(*p)) {
            digits++;
            decimals += seen_point;
            value = value * 10 + (*p - '0');
        } else {
            break;
        }
        if (digits > 15) break;
    }
    if (p == end && digits > 0) {
        double magnitude = decimals ? (double)value / tens[decimals] : (double)value;
        *out = negative ? -magnitude : magnitude;
        return 1;
    }
    char copy[64];
    char *stop;
    if (length >= sizeof copy || length == 0) return 0;
    memcpy(copy, start, length);
    copy[length] = 0;
    *out = strtod(copy, &stop);
    return stop == copy + length;
}

/* Decimal microseconds as nanoseconds, exactly; further digits are cut. 1: done, 0: none, -1: for Python to judge. */
static int time_ns(const uint8_t *p, uint32_t length, int64_t *out) {
    const uint8_t *end = p + length;
    int negative = p < end && *p == '-', digits = 0;
    int64_t value = 0, scale = 100;
    uint64_t eight;
    if (negative) p++;
    for (; end - p >= 8 && digits < 16 && eight_digits(p, &eight); p += 8, digits += 8)
        value = value * 100000000 + (int64_t)eight;
    for (; p < end && is_digit(*p); p++) {
        if (++digits > 16) return -1;
        value = value * 10 + (*p - '0');
    }
    if (!digits || value > 9000000000000000) return -1; /* x 1000 would not fit */
    value *= 1000;
    if (p < end && *p == '.')
        for (p++; p < end && is_digit(*p); p++) {
            value += (*p - '0') * scale;
            scale /= 10;
        }
    if (p != end) return -1;
    *out = negative ? -value : value;
    return 1;
}

/* Whether a text could be taken for a whole number in some way, e.g. with blanks around it or other digits. */
static int may_be_number(const uint8_t *p, uint32_t length) {
    for (uint32_t k = 0; k < length; k++)
        if (!is_digit(p[k]) && p[k] < 0x80 && p[k] > ' ' && p[k] != '-') return 0;
    return length > 0;
}

/* Fill `values` and return 1 for a value, 0 for null, -1 to refuse. */
static int fixed_value(const uint8_t *text, span s, int column, void *values, int64_t i) {
    const uint8_t *p = text + START(s);
    int64_t *whole_out = (int64_t *)values + i;
    double number;
    switch (KIND(s)) {
    case ABSENT:
    case LITERAL_NULL:
        return 0;
    case NUMBER:
    case STRING:
        break;
    default: /* odd values are Python's to judge, except that they are no numbers */
        return column == COLUMN_TIME ? -1 : KIND(s) == ESCAPED ? -1 : 0;
    }
    if (column == COLUMN_TIME) return time_ns(p, LENGTH(s), whole_out);
    if (column == COLUMN_FLOAT) {
        if (KIND(s) == STRING) return -1;
        return decimal(p, LENGTH(s), (double *)values + i) ? 1 : -1;
    }
    if (whole(p, LENGTH(s), whole_out)) return 1;
    if (KIND(s) == STRING) return may_be_number(p, LENGTH(s)) ? -1 : 0;
    if (LENGTH(s) > 18 || !decimal(p, LENGTH(s), &number)) return -1;
    if (number != floor(number)) return 0;
    if (fabs(number) >= 9e15) return -1;
    *whole_out = (int64_t)number;
    return 1;
}

/* Whether a number is written as Python writes whole numbers. */
static int is_plain_whole(const uint8_t *p, uint32_t length) {
    if (*p == '-' && p[1] == '0') return 0;
    for (uint32_t k = *p == '-'; k < length; k++)
        if (!is_digit(p[k])) return 0;
    return 1;
}

/* Bytes of a text value at most, -1 for null, -2 to refuse. */
static int64_t text_room(const uint8_t *text, span s, int column) {
    switch (KIND(s)) {
    case ABSENT:
    case LITERAL_NULL:
        return -1;
    case NUMBER:
        return column == COLUMN_JSON || is_plain_whole(text + START(s), LENGTH(s)) ? (int64_t)LENGTH(s) : -2;
    case STRING:
    case ESCAPED:
        return LENGTH(s);
    default:
        return column == COLUMN_JSON ? (int64_t)LENGTH(s) : -2;
    }
}

/* Hand over `count` buffers, the first of them the validity; the array frees them, also if there is no memory. */
static int32_t finish(struct ArrowArray *array, int64_t rows, int64_t nulls, int count, void *const *given) {
    const void **buffers = malloc((size_t)count * sizeof *buffers);
    for (int i = 0; i < count; i++) {
        if (buffers) buffers[i] = given[i];
        else free(given[i]);
    }
    if (!buffers) return NO_MEMORY;
    memset(array, 0, sizeof *array);
    array->length = rows;
    array->null_count = nulls;
    array->n_buffers = count;
    array->buffers = buffers;
    array->release = release_array;
    return DONE;
}

static void describe(struct ArrowSchema *schema, const char *format) {
    memset(schema, 0, sizeof *schema);
    schema->format = format;
    schema->name = "";
    schema->flags = 2; /* nullable */
    schema->release = release_schema;
}

#define INLINE_BYTES 12
#define RECENT_TEXTS 512

/* Text of a column as Arrow views: up to twelve bytes stand in the view itself, longer ones in `data`, which holds
 * what repeats itself (names do, a thousandfold) only once as long as it is among the recent ones. */
typedef struct {
    uint8_t *data;
    int64_t size, room;
    int32_t recent[RECENT_TEXTS]; /* row + 1 of a text, by its hash */
} text_data;

typedef struct {
    uint32_t length;
    union {
        uint8_t inlined[INLINE_BYTES];
        struct {
            uint8_t prefix[4];
            uint32_t buffer, offset;
        } at;
    } as;
} view;

static uint32_t text_hash(const uint8_t *p, uint32_t length) {
    uint64_t first, last;
    memcpy(&first, p, 8);
    memcpy(&last, p + length - 8, 8);
    return (uint32_t)(((first ^ (last << 29 | last >> 35)) + length) * 0x9e3779b97f4a7c15ull >> 55);
}

static int make_room(text_data *d, uint32_t length) {
    if (d->size + length > d->room) {
        int64_t room = d->room * 2 + length + 4096;
        uint8_t *grown = realloc(d->data, (size_t)room);
        if (!grown) return NO_MEMORY;
        d->data = grown;
        d->room = room;
    }
    return d->size + length > INT32_MAX ? REFUSED : DONE; /* views count in 32 bits */
}

/* Copy up to twelve bytes and fill up with zeros; `readable` bytes stand at `p`. */
static inline void inline_text(uint8_t *out, const uint8_t *p, uint32_t length, int64_t readable) {
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (readable >= 16) { /* without a call: most texts are short */
        uint64_t low, high;
        memcpy(&low, p, 8);
        memcpy(&high, p + 8, 8);
        low &= length >= 8 ? ~0ull : HEAD_MASK(length);
        high &= length <= 8 ? 0 : HEAD_MASK(length - 8);
        memcpy(out, &low, 8);
        memcpy(out + 8, &high, 4);
        return;
    }
#endif
    (void)readable;
    memset(out, 0, INLINE_BYTES);
    memcpy(out, p, length);
}

/* The view of row `i`, whose content is `length` of the `readable` bytes at `p`. */
static int view_text(text_data *d, view *views, int64_t i, const uint8_t *p, uint32_t length, int64_t readable) {
    view *v = &views[i];
    uint32_t hash;
    int status;
    v->length = length;
    if (length <= INLINE_BYTES) {
        inline_text(v->as.inlined, p, length, readable);
        return DONE;
    }
    hash = text_hash(p, length);
    if (d->recent[hash]) {
        const view *known = &views[d->recent[hash] - 1];
        if (known->length == length && !memcmp(d->data + known->as.at.offset, p, length)) {
            v->as = known->as;
            return DONE;
        }
    }
    if ((status = make_room(d, length))) return status;
    memcpy(d->data + d->size, p, length);
    memcpy(v->as.at.prefix, p, 4);
    v->as.at.buffer = 0;
    v->as.at.offset = (uint32_t)d->size;
    d->size += length;
    if (i < INT32_MAX) d->recent[hash] = (int32_t)i + 1;
    return DONE;
}

#define FIELD(i) (s->spans[(int64_t)order[i] * s->fields + field])

static int32_t text_column(const scan *s, const uint8_t *text, int32_t field, const int32_t *order, int64_t rows,
                           int32_t column, struct ArrowArray *array) {
    text_data *d = calloc(1, sizeof *d);
    uint8_t *validity = calloc((size_t)rows / 8 + 64, 1), *plain = NULL;
    view *views = malloc(((size_t)rows + 1) * sizeof *views);
    int64_t nulls = 0, *sizes = malloc(sizeof *sizes);
    int32_t status = NO_MEMORY;
    if (!d || !validity || !views || !sizes || !(d->data = malloc(64))) goto fail;
    for (int64_t i = 0; i < rows; i++) {
        span found = FIELD(i);
        const uint8_t *p = text + START(found);
        int64_t length = text_room(text, found, column), readable = s->length - START(found);
        if (length == -2) {
            status = REFUSED;
            goto fail;
        }
        if (length < 0) {
            memset(&views[i], 0, sizeof *views);
            nulls++;
            continue;
        }
        validity[i >> 3] |= (uint8_t)(1 << (i & 7));
        if (KIND(found) == ESCAPED) {
            uint8_t *grown = realloc(plain, (size_t)length + 1);
            status = NO_MEMORY;
            if (!grown) goto fail;
            plain = grown;
            status = REFUSED;
            if ((length = unescape(p, LENGTH(found), plain)) < 0) goto fail;
            p = plain;
            readable = length;
        }
        if ((status = view_text(d, views, i, p, (uint32_t)length, readable))) goto fail;
    }
    *sizes = d->size;
    status = finish(array, rows, nulls, 4, (void *[]){validity, views, d->data, sizes});
    free(plain), free(d);
    return status;
fail:
    if (d) free(d->data);
    free(d), free(plain), free(validity), free(views), free(sizes);
    return status;
}

static int32_t fixed_column(const scan *s, const uint8_t *text, int32_t field, const int32_t *order, int64_t rows,
                            int32_t column, struct ArrowArray *array) {
    uint8_t *validity = calloc((size_t)rows / 8 + 64, 1);
    int64_t nulls = 0, *values = malloc(((size_t)rows + 1) * sizeof *values);
    int32_t status = NO_MEMORY;
    if (!validity || !values) goto fail;
    for (int64_t i = 0; i < rows; i++) {
        int got = fixed_value(text, FIELD(i), column, values, i);
        status = REFUSED;
        if (got < 0) goto fail;
        if (got) validity[i >> 3] |= (uint8_t)(1 << (i & 7));
        else nulls++, values[i] = 0;
    }
    return finish(array, rows, nulls, 2, (void *[]){validity, values});
fail:
    free(validity), free(values);
    return status;
}

/* One field of the events `order[from ... from + rows)` as an Arrow array of int64, float64 or string views. */
EXPORT int32_t ss_column(const scan *s, const uint8_t *text, int32_t field, int64_t from, int64_t rows, int32_t column,
                         struct ArrowArray *array, struct ArrowSchema *schema) {
    const int32_t *order = s->order + from;
    int is_text = column == COLUMN_TEXT || column == COLUMN_JSON;
    int32_t status = (is_text ? text_column : fixed_column)(s, text, field, order, rows, column, array);
    if (status == DONE) describe(schema, is_text ? "vu" : column == COLUMN_FLOAT ? "g" : "l");
    return status;
}

/* What the importer has not taken over. */
EXPORT void ss_drop(struct ArrowArray *array, struct ArrowSchema *schema) {
    if (array->release) array->release(array);
    if (schema->release) schema->release(schema);
}

/* ---------------------------------------------------------------- tables */

enum table_column { TABLE_SKIPPED, TABLE_RAW, TABLE_TEXT, TABLE_SHAPE, TABLE_TIME, TABLE_NUMBER };

static int is_blank(uint8_t c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static int is_stripped(uint8_t c, int column) {
    if (column == TABLE_TEXT) return is_blank(c);
    return c == '"' ? column != TABLE_RAW : column == TABLE_TIME && (c == ' ' || c == '\t');
}

/* At a field; moves behind it, to the comma or the end of the line, and says what stands in it. */
static int read_field(reader *r, int column, span *out) {
    const uint8_t *p = r->at, *end = r->end, *from = p, *to;
    int quoted = p < end && *p == '"', doubled = 0;
    if (quoted) {
        from = ++p;
        for (;;) {
            while (p < end && *p != '"' && *p != '\n' && *p != '\r') p++;
            if (p >= end || *p != '"') return 0;
            if (p + 1 >= end || p[1] != '"') break;
            doubled = 1;
            p += 2;
        }
        to = p++;
        if (from == to || (doubled && column != TABLE_SHAPE && column != TABLE_SKIPPED)) return 0;
    } else {
        while (p < end && *p != ',' && *p != '\n' && *p != '\r') {
            if (*p == '"') return 0;
            p++;
        }
        to = p;
    }
    if (end - p > 1 && *p == '\r' && p[1] == '\n') p++;
    r->at = p;
    if (p >= end || (*p != ',' && *p != '\n')) return 0;
    if (column == TABLE_SKIPPED) return 1;
    if ((to - from == 3 && !memcmp(from, "N/A", 3)) || (to - from == 2 && !memcmp(from, "NA", 2)) || from == to)
        return !quoted; /* nothing is stated; whether quotes make a text of it is for others to judge */
    if (column == TABLE_NUMBER) {
        if (quoted || number_end(from, to) != to) return 0;
    } else {
        if ((*from & 0x80) || (to[-1] & 0x80)) return 0; /* may be a blank of another script */
        while (from < to && is_stripped(*from, column)) from++;
        while (from < to && is_stripped(to[-1], column)) to--;
        if (doubled && memchr(from, '"', (size_t)(to - from))) return 0;
        if (column == TABLE_TIME && (from == to || !is_digit(*from))) return 0;
    }
    if (to - from > MAX_LENGTH) return 0;
    *out = SPAN(from - r->text, to - from, column == TABLE_NUMBER ? NUMBER : STRING);
    return 1;
}

/* Scan the lines of a CSV table behind its header. `columns[i]` says how field i is kept; the kept ones are the fields
 * of the scan, in order. Returns null if it refuses: for anything but whole lines of `width` plain fields. */
EXPORT scan *ss_table(const uint8_t *text, int64_t length, const int32_t *columns, int32_t width) {
    reader r = {.text = text, .at = text, .end = text + length};
    scan *s;
    int32_t kept = 0;
    for (int32_t i = 0; i < width; i++) kept += columns[i] != TABLE_SKIPPED;
    if (!kept || length > UINT32_MAX || !is_utf8(text, length) || !(s = calloc(1, sizeof *s))) return NULL;
    s->fields = kept;
    s->end = -1;
    s->length = length;
    while (r.at < r.end && *r.at != '\n') {
        if (*r.at == '"') goto refuse;
        r.at++;
    }
    if (r.end - r.at < 2) goto refuse; /* no rows */
    for (r.at++; r.at < r.end; r.at++) {
        if (s->count == s->capacity) {
            int64_t capacity = s->capacity ? s->capacity * 2 : 1024;
            span *grown = realloc(s->spans, (size_t)capacity * kept * sizeof(span));
            if (!grown) goto refuse;
            s->spans = grown;
            s->capacity = capacity;
        }
        span *row = s->spans + s->count * kept;
        memset(row, 0, kept * sizeof(span));
        for (int32_t i = 0; i < width; i++) {
            if (!read_field(&r, columns[i], row) || (*r.at == ',') != (i + 1 < width)) goto refuse;
            row += columns[i] != TABLE_SKIPPED;
            r.at += i + 1 < width;
        }
        s->count++;
    }
    if (!(s->order = malloc((size_t)s->count * sizeof *s->order))) goto refuse;
    for (int64_t i = 0; i < s->count; i++) s->order[i] = (int32_t)i;
    return s;
refuse:
    ss_free(s);
    return NULL;
}

/* ---------------------------------------------------------------- nesting */

struct ArrowArrayStream {
    int (*get_schema)(struct ArrowArrayStream *, struct ArrowSchema *);
    int (*get_next)(struct ArrowArrayStream *, struct ArrowArray *);
    const char *(*get_last_error)(struct ArrowArrayStream *);
    void (*release)(struct ArrowArrayStream *);
    void *private_data;
};

/* Values of an int64 column that comes in one chunk, which `held` keeps; null if it is something else. */
static const int64_t *whole_column(struct ArrowArrayStream *stream, int64_t rows, struct ArrowArray *held) {
    struct ArrowSchema schema;
    int fits;
    if (stream->get_schema(stream, &schema)) return NULL;
    fits = !strcmp(schema.format, "l");
    schema.release(&schema);
    if (!fits) return NULL;
    if (stream->get_next(stream, held)) {
        held->release = NULL;
        return NULL;
    }
    if (!held->release || held->length != rows || held->n_buffers != 2) return NULL;
    return (const int64_t *)held->buffers[1] + held->offset;
}

static int has_nulls(const struct ArrowArray *held) { return held->null_count != 0 && held->buffers[0]; }

static void let_go(struct ArrowArray *held, int count) {
    for (int i = 0; i < count; i++) {
        if (held[i].release) held[i].release(&held[i]);
    }
}

#define FEW_PLACES 32
#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)

/* A row and what it is sorted by. */
typedef struct {
    uint64_t key;
    int64_t row;
} place;

/* Sort by key; equal keys keep their order. */
static void sort_places(place *places, place *spare, int64_t count) {
    uint64_t least = UINT64_MAX, most = 0;
    place *from = places, *to = spare;
    if (count <= FEW_PLACES) {
        for (int64_t i = 1; i < count; i++) {
            place one = places[i];
            int64_t at = i;
            for (; at && places[at - 1].key > one.key; at--) places[at] = places[at - 1];
            places[at] = one;
        }
        return;
    }
    for (int64_t i = 0; i < count; i++) {
        if (places[i].key < least) least = places[i].key;
        if (places[i].key > most) most = places[i].key;
    }
    for (int shift = 0; shift < 64 && (most - least) >> shift; shift += DIGIT_BITS) {
        int64_t next[DIGITS] = {0}, sum = 0;
        for (int64_t i = 0; i < count; i++) next[(from[i].key - least) >> shift & (DIGITS - 1)]++;
        for (int digit = 0; digit < DIGITS; digit++) {
            int64_t size = next[digit];
            next[digit] = sum;
            sum += size;
        }
        for (int64_t i = 0; i < count; i++) to[next[(from[i].key - least) >> shift & (DIGITS - 1)]++] = from[i];
        place *other = from;
        from = to;
        to = other;
    }
    if (from != places) memcpy(places, from, (size_t)count * sizeof *places);
}

typedef struct {
    const int64_t *thread, *start, *duration;
    int64_t rows, threads;
} range_list;

/* Rows by start, of equal starts the longer first, of equal ranges the first; null if there is no memory. */
static place *walking_order(const range_list *r) {
    place *order = malloc((size_t)r->rows * sizeof *order), *spare = malloc((size_t)r->rows * sizeof *spare);
    if (!order || !spare) {
        free(order), free(spare);
        return NULL;
    }
    for (int64_t i = 0; i < r->rows; i++) order[i] = (place){(uint64_t)r->start[i] ^ 1ull << 63, i};
    sort_places(order, spare, r->rows);
    for (int64_t i = 0, end; i < r->rows; i = end) {
        for (end = i + 1; end < r->rows && order[end].key == order[i].key;) end++;
        if (end == i + 1) continue;
        for (int64_t k = i; k < end; k++) order[k].key = ~((uint64_t)r->duration[order[k].row] ^ 1ull << 63);
        sort_places(order + i, spare, end - i);
    }
    free(spare);
    return order;
}

/* Find what is open where each range starts. `last` has the last row of each thread so far (-1 if there is none), and
 * what lies under a row on the stack of its thread is its parent. Rows are taken as they are if there is no `order`;
 * false if a row then turns out to belong before one that was there already. */
static int walk(const range_list *r, const place *order, int64_t *last, int64_t *parent, int32_t *depth) {
    memset(last, 0xff, (size_t)r->threads * sizeof *last);
    for (int64_t i = 0; i < r->rows; i++) {
        int64_t row = order ? order[i].row : i, start = r->start[row];
        int64_t open = last[r->thread[row]];
        if (!order && open >= 0 && start <= r->start[open]
            && (start < r->start[open] || r->duration[row] > r->duration[open])) {
            return 0;
        }
        while (open >= 0 && (r->duration[open] <= 0 /* no sums, as they might overflow */
                             || (uint64_t)r->duration[open] <= (uint64_t)start - (uint64_t)r->start[open])) {
            open = depth[open] ? parent[open] : -1;
        }
        depth[row] = open < 0 ? 0 : depth[open] + 1;
        parent[row] = open < 0 ? 0 : open;
        last[r->thread[row]] = row;
    }
    return 1;
}

/* Parent (row of the enclosing range on the same thread; null at the top) and depth of ranges in any order. Threads are
 * numbers below `threads`. */
EXPORT int32_t ss_nest(struct ArrowArrayStream *thread, struct ArrowArrayStream *starts,
                       struct ArrowArrayStream *durations, int64_t rows, int64_t threads, struct ArrowArray *parents,
                       struct ArrowSchema *parent_schema, struct ArrowArray *depths, struct ArrowSchema *depth_schema) {
    struct ArrowArray held[3] = {0};
    range_list r = {whole_column(thread, rows, held), whole_column(starts, rows, held + 1),
                    whole_column(durations, rows, held + 2), rows, threads};
    int64_t *parent = NULL, *last = NULL, nulls = 0;
    int32_t *depth = NULL, status = REFUSED;
    uint8_t *known = NULL;
    place *order = NULL;
    if (!r.thread || !r.start || !r.duration || rows < 1 || rows > INT32_MAX || threads < 1) goto fail;
    if (has_nulls(held) || has_nulls(held + 1) || has_nulls(held + 2)) goto fail;
    for (int64_t i = 0; i < rows; i++) {
        if (r.thread[i] < 0 || r.thread[i] >= threads) goto fail;
    }
    status = NO_MEMORY;
    parent = malloc((size_t)rows * sizeof *parent);
    depth = malloc((size_t)rows * sizeof *depth);
    known = calloc((size_t)rows / 8 + 64, 1);
    last = (uint64_t)threads < SIZE_MAX / sizeof *last ? malloc((size_t)threads * sizeof *last) : NULL;
    if (!parent || !depth || !known || !last) goto fail;
    if (!walk(&r, NULL, last, parent, depth)) {
        if (!(order = walking_order(&r))) goto fail;
        walk(&r, order, last, parent, depth);
    }
    for (int64_t i = 0; i < rows; i++) {
        if (depth[i]) known[i >> 3] |= (uint8_t)(1 << (i & 7));
        else nulls++;
    }
    let_go(held, 3);
    free(last), free(order);
    if ((status = finish(parents, rows, nulls, 2, (void *[]){known, parent}))) {
        free(depth);
        return status;
    }
    if ((status = finish(depths, rows, 0, 2, (void *[]){NULL, depth}))) {
        parents->release(parents);
        return status;
    }
    describe(parent_schema, "l");
    describe(depth_schema, "i");
    return status;
fail:
    let_go(held, 3);
    free(parent), free(depth), free(known), free(last), free(order);
    return status;
}

/* Time of each range that ranges take whose parent it is, as far as they lie in it. Sums wrap around, as in Polars. */
EXPORT int32_t ss_inside(struct ArrowArrayStream *starts, struct ArrowArrayStream *durations,
                         struct ArrowArrayStream *parents, int64_t rows, struct ArrowArray *array,
                         struct ArrowSchema *schema) {
    struct ArrowArray held[3] = {0};
    const int64_t *start = whole_column(starts, rows, held), *duration = whole_column(durations, rows, held + 1);
    const int64_t *parent = whole_column(parents, rows, held + 2);
    const uint8_t *known;
    uint64_t *spent = NULL;
    int32_t status = REFUSED;
    if (!start || !duration || !parent || rows < 1 || has_nulls(held) || has_nulls(held + 1)) goto fail;
    known = has_nulls(held + 2) ? held[2].buffers[0] : NULL;
    status = NO_MEMORY;
    if (!(spent = calloc((size_t)rows, sizeof *spent))) goto fail;
    status = REFUSED;
    for (int64_t i = 0, bit = held[2].offset; i < rows; i++, bit++) {
        int64_t outer = parent[i];
        if (known && !(known[bit >> 3] >> (bit & 7) & 1)) continue;
        if (outer < 0 || outer >= rows) goto fail;
        int64_t end = (int64_t)((uint64_t)start[i] + (uint64_t)duration[i]);
        int64_t outer_end = (int64_t)((uint64_t)start[outer] + (uint64_t)duration[outer]);
        spent[outer] += (uint64_t)(end < outer_end ? end : outer_end) - (uint64_t)start[i];
    }
    let_go(held, 3);
    if (!(status = finish(array, rows, 0, 2, (void *[]){NULL, spent}))) describe(schema, "l");
    return status;
fail:
    let_go(held, 3);
    free(spent);
    return status;
}
