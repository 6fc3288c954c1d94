/* Text of trace events -> spans: one walk over the text. Whatever is not valid JSON of the expected shape is refused;
 * the caller then decodes the text in Python, which saves what can be saved. */
#include <stdlib.h>

#include "keys.h"
#include "text.h"

#define MOST_ARGUMENTS (MOST_FIELDS - BASE_FIELDS - 1)
#define FIRST_WIDTH 32 /* a chunk has few of the wanted arguments, and rows with room for all would be long */

/* The kinds of value that an event may have in each field; an event with any other is for Python to judge. */
#define OF(kind) (1u << (kind))
#define A_TEXT (OF(STRING) | OF(ESCAPED))
#define A_LABEL (A_TEXT | OF(NUMBER) | OF(LITERAL_NULL))
static const uint8_t FITTING[] = {[F_PH] = A_TEXT,     [F_NAME] = A_LABEL, [F_CAT] = A_TEXT | OF(LITERAL_NULL),
                                  [F_PID] = A_LABEL,   [F_TID] = A_LABEL,  [F_TS] = 0xff,
                                  [F_DUR] = A_LABEL,   [F_ID] = A_LABEL,   [F_ARGS] = OF(LITERAL_NULL)};

/* At `{`; fills the spans of an event, or of its arguments. */
static int read_object(event_reader *e, span *out, int arguments) {
    reader *r = &e->r;
    int16_t *expected = &e->first[arguments];
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
        if ((place = read_key(e, arguments, *expected)) < 0) return 0;
        *expected = (int16_t)place;
        expected = &e->seen[arguments][place].next;
        field = e->seen[arguments][place].field;
        if (arguments) {
            if (!read_value(r, &value)) return 0;
            if (field >= 0) out[field] = value;
        } else if (field == F_ARGS && args_seen++) {
            return 0; /* the last of them counts, whole */
        } else if (field == F_ARGS && r->at < r->end && *r->at == '{') {
            if (!read_object(e, out, 1)) return 0;
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

/* Events separated by commas, up to the end of the text or a closing bracket. */
static int read_events(event_reader *e, scan *s) {
    reader *r = &e->r;
    skip_space(r);
    while (r->at < r->end && *r->at == '{') {
        span *event = add_row(s);
        if (!event || !read_object(e, event, 0)) return 0;
        skip_space(r);
        if (r->at >= r->end || *r->at == ']') return 1;
        if (*r->at++ != ',') return 0;
        skip_space(r);
        if (r->at >= r->end || *r->at != '{') return 0;
    }
    return 1;
}

/* Scan events into rows of `width` spans; null if it refuses, or `is_full` if these are too few. */
static scan *scan_events(const uint8_t *text, int64_t length, const word_list *wanted, int32_t last, int32_t width,
                         int *is_full) {
    event_reader e = {.r = {text, text, text + length}, .s = new_scan(width, length), .slots = BASE_FIELDS};
    if (!e.s) return NULL;
    e.s->is_sparse = 1;
    for (int16_t i = 0; i < MOST_FIELDS; i++) e.s->slots[i] = i < BASE_FIELDS ? i : -1;
    index_keys(&e, wanted);
    if (!read_events(&e, e.s) || (e.r.at < e.r.end) != last || (last && *e.r.at != ']')) {
        ss_free(e.s);
        *is_full = e.is_full;
        return NULL;
    }
    if (last) e.s->end = e.r.at + 1 - text;
    return e.s;
}

/* Scan events. `last`: the text holds the end of the array. Returns null if it refuses. */
EXPORT scan *ss_scan(const uint8_t *text, int64_t length, const uint8_t *words, const int32_t *ends, int32_t keys,
                     int32_t last) {
    word_list wanted = {words, ends, keys};
    scan *s = NULL;
    int is_full = 1;
    if (keys > MOST_ARGUMENTS || length > UINT32_MAX || !is_utf8(text, length)) return NULL;
    for (int32_t width = FIRST_WIDTH; is_full && !s; width *= 2) {
        is_full = 0;
        s = scan_events(text, length, &wanted, last, width, &is_full);
    }
    return s;
}
