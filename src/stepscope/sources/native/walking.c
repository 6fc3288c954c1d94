#include "walking.h"

#include <stdlib.h>
#include <string.h>

#define FEW_PLACES 32
#define DIGIT_BITS 11
#define DIGITS (1 << DIGIT_BITS)

void sort_places(place *places, place *spare, int64_t count) {
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

place *walking_order(const range_list *r) {
    place *order = malloc((size_t)r->rows * sizeof *order), *spare = malloc((size_t)r->rows * sizeof *spare);
    if (!order || !spare) {
        free(order), free(spare);
        return NULL;
    }
    for (int64_t i = 0; i < r->rows; i++) order[i] = (place){time_key(r->start[i]), i};
    sort_places(order, spare, r->rows);
    for (int64_t i = 0, end; i < r->rows; i = end) {
        for (end = i + 1; end < r->rows && order[end].key == order[i].key;) end++;
        if (end == i + 1) continue;
        for (int64_t k = i; k < end; k++) order[k].key = ~time_key(r->duration[order[k].row]);
        sort_places(order + i, spare, end - i);
    }
    free(spare);
    return order;
}
