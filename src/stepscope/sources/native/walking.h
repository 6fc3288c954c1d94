/* The order in which ranges of time are walked through. */
#ifndef STEPSCOPE_WALKING_H
#define STEPSCOPE_WALKING_H

#include <stdint.h>

/* A row and the key that it is sorted by. */
typedef struct {
    uint64_t key;
    int64_t row;
} place;

typedef struct {
    const int64_t *thread, *start, *duration;
    int64_t rows, threads;
} range_list;

/* A time as a key. */
static inline uint64_t time_key(int64_t time) { return (uint64_t)time ^ 1ull << 63; }

/* Sort by key; equal keys keep their order. `spare` has as much room. */
void sort_places(place *places, place *spare, int64_t count);

/* Rows by start, of equal starts the longer first, of equal ranges the first; null if there is no memory. */
place *walking_order(const range_list *r);

#endif
