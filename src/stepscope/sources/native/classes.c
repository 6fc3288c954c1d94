/* Events -> classes: which event belongs to which frame. */
#include <stdlib.h>

#include "keys.h"

/* Give each event the number of its (ph, cat) pair; `firsts` gets an event of each pair. Returns the number of pairs. */
EXPORT int32_t ss_pairs(const scan *s, const uint8_t *text, int32_t *pairs, int32_t *firsts, int32_t most) {
    int32_t known = 0, previous = 0;
    for (int64_t i = 0; i < s->count; i++) {
        const span *e = s->spans + i * s->width;
        int32_t n = previous;
        if (KIND(e[F_PH]) == ESCAPED || KIND(e[F_CAT]) == ESCAPED) return REFUSED;
        for (int32_t tried = 0; tried < known; tried++, n = n + 1 < known ? n + 1 : 0) {
            const span *f = s->spans + (int64_t)firsts[n] * s->width;
            if (same_value(text, e[F_PH], f[F_PH]) && same_value(text, e[F_CAT], f[F_CAT])) goto found;
        }
        if (known == most) return REFUSED;
        n = known++;
        firsts[n] = (int32_t)i;
    found:
        pairs[i] = previous = n;
    }
    return known;
}

/* The class of a (ph, cat) pair's events (-1: none), unless an event has the name of a rule for that pair. */
typedef struct {
    const int32_t *class_of; /* by pair */
    word_list names;
    const int32_t *pair, *class; /* by rule */
} routing;

/* The class of an event, in `class`; 0 to refuse. */
static inline int find_class(const routing *r, const uint8_t *text, span name, int32_t pair, int32_t *class) {
    *class = r->class_of[pair];
    for (int32_t k = 0; k < r->names.count; k++) {
        int32_t from = k ? r->names.ends[k - 1] : 0;
        if (r->pair[k] != pair) continue;
        if (KIND(name) == ESCAPED) return 0;
        if (KIND(name) == STRING && (int32_t)LENGTH(name) == r->names.ends[k] - from &&
            !memcmp(text + START(name), r->names.words + from, LENGTH(name))) {
            *class = r->class[k];
            break;
        }
    }
    return 1;
}

/* Sort events by class, in file order within a class. `pairs` has the pair of each event and gets its class; `counts`
 * gets the size of each class. */
EXPORT int32_t ss_sort(scan *s, const uint8_t *text, int32_t *pairs, const int32_t *class_of, int32_t classes,
                       const uint8_t *words, const int32_t *ends, const int32_t *rule_pair,
                       const int32_t *rule_class, int32_t rules, int64_t *counts) {
    routing r = {class_of, {words, ends, rules}, rule_pair, rule_class};
    int64_t *next = calloc((size_t)classes + 1, sizeof *next);
    free(s->order);
    s->order = malloc((size_t)(s->count + 1) * sizeof *s->order);
    if (!next || !s->order) {
        free(next);
        return NO_MEMORY;
    }
    memset(counts, 0, (size_t)classes * sizeof *counts);
    for (int64_t i = 0; i < s->count; i++) {
        int32_t class;
        if (!find_class(&r, text, s->spans[i * s->width + F_NAME], pairs[i], &class)) {
            free(next);
            return REFUSED;
        }
        if (class >= 0) counts[class]++;
        pairs[i] = class;
    }
    for (int32_t c = 0; c < classes; c++) next[c + 1] = next[c] + counts[c];
    for (int64_t i = 0; i < s->count; i++)
        if (pairs[i] >= 0) s->order[next[pairs[i]]++] = (int32_t)i;
    free(next);
    return DONE;
}
