/* Where events happened: a number for each pair of process and thread. */
#include <stdlib.h>

#include "arrow.h"
#include "keys.h"
#include "numbers.h"

#define SLOTS 8192 /* a power of two, several times the most places */

static inline uint64_t mix_label(const uint8_t *text, span s, uint64_t hash) {
    for (uint32_t k = 0; k < LENGTH(s); k++) hash = (hash ^ text[START(s) + k]) * 0x100000001b3ull;
    return (hash ^ LENGTH(s)) * 0x100000001b3ull;
}

static inline int same_place(const uint8_t *text, const span *a, const span *b) {
    return same_value(text, a[F_TID], b[F_TID]) && same_value(text, a[F_PID], b[F_PID]);
}

/* A number that Python writes in another way, such as 1.50. */
static inline int is_odd(const uint8_t *text, span s) {
    return KIND(s) == NUMBER && !is_plain_whole(text + START(s), LENGTH(s));
}

/* Number the places of the rows `order[0 ... rows)` in `places`; `firsts` gets a row of each place. A place that is
 * written in two ways has two numbers. Returns how many there are, or refuses if that is more than `most`. */
EXPORT int32_t ss_places(const scan *s, const uint8_t *text, int64_t rows, int32_t *places, int32_t *firsts,
                         int32_t most) {
    int32_t *slots = calloc(SLOTS, sizeof *slots), known = 0, n = 0;
    if (!slots) return NO_MEMORY;
    for (int64_t i = 0; i < rows; i++) {
        const span *event = s->spans + (int64_t)s->order[i] * s->width;
        if (!known || !same_place(text, event, s->spans + (int64_t)firsts[n] * s->width)) {
            uint64_t slot = mix_label(text, event[F_PID], mix_label(text, event[F_TID], 0xcbf29ce484222325ull)) >> 32;
            for (;; slot++) {
                n = slots[slot &= SLOTS - 1] - 1;
                if (n >= 0 && !same_place(text, event, s->spans + (int64_t)firsts[n] * s->width)) continue;
                if (n >= 0) break;
                if (known == most || is_odd(text, event[F_PID]) || is_odd(text, event[F_TID])) {
                    free(slots);
                    return REFUSED;
                }
                n = known++;
                firsts[n] = s->order[i];
                slots[slot] = known;
                break;
            }
        }
        places[i] = n;
    }
    free(slots);
    return known;
}

/* An int32 column of what numbers stand for. */
EXPORT int32_t ss_meant(const int32_t *numbers, int64_t rows, const int32_t *meant, struct ArrowArray *array,
                        struct ArrowSchema *schema) {
    int32_t *values = malloc(((size_t)rows + 1) * sizeof *values), status;
    if (!values) return NO_MEMORY;
    for (int64_t i = 0; i < rows; i++) values[i] = meant[numbers[i]];
    if (!(status = give_column(array, rows, 0, 2, (void *[]){NULL, values}))) describe(schema, "i");
    return status;
}
