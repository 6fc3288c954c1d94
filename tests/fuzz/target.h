/* What the harness calls: the exported functions of the decoder, as their definitions have them. */
#ifndef STEPSCOPE_FUZZ_TARGET_H
#define STEPSCOPE_FUZZ_TARGET_H

/* The decoder is compiled with `fuzz_malloc` and so on in place of these, the harness is not. */
#undef malloc
#undef calloc
#undef realloc
#undef free

#include <stddef.h>

#include "arrow.h"
#include "replay.h"

scan *ss_scan(const uint8_t *, int64_t, const uint8_t *words, const int32_t *ends, int32_t keys, int32_t last);
scan *ss_table(const uint8_t *, int64_t, const int32_t *columns, int32_t width);
int64_t ss_count(const scan *);
int64_t ss_end(const scan *);
int32_t ss_pairs(const scan *, const uint8_t *, int32_t *pairs, int32_t *firsts, int32_t most);
int32_t ss_sort(scan *, const uint8_t *, int32_t *pairs, const int32_t *class_of, int32_t, const uint8_t *words,
                const int32_t *ends, const int32_t *rule_pair, const int32_t *rule_class, int32_t, int64_t *counts);
int32_t ss_column(const scan *, const uint8_t *, int32_t field, int64_t from, int64_t rows, int32_t kind,
                  struct ArrowArray *, struct ArrowSchema *);
int32_t ss_columns(const scan *, const uint8_t *, const int32_t *fields, const int32_t *kinds, int64_t count, int64_t from,
                   int64_t rows, struct ArrowArray *, struct ArrowSchema *);
uint8_t *ss_pack(struct ArrowArrayStream *, int64_t rows, int64_t columns, int64_t *ends);
int32_t ss_unpack(const uint8_t *const *blocks, const int64_t *rows, int64_t count, int64_t columns, const char *formats,
                  struct ArrowArray *, struct ArrowSchema *);
void ss_free_bytes(uint8_t *);
int32_t ss_nest(struct ArrowArrayStream *, struct ArrowArrayStream *, struct ArrowArrayStream *, int64_t, int64_t,
                struct ArrowArray *, struct ArrowSchema *, struct ArrowArray *, struct ArrowSchema *);
int32_t ss_lanes(struct ArrowArrayStream *, struct ArrowArrayStream *, struct ArrowArrayStream *,
                 struct ArrowArrayStream *, int64_t, int64_t, struct ArrowArray *, struct ArrowSchema *);
uint8_t *ss_packets(struct ArrowArrayStream **, int64_t, int64_t, int64_t, const uint8_t *const *,
                    const int64_t *const *, int64_t, int64_t *);
int32_t ss_inside(struct ArrowArrayStream *, struct ArrowArrayStream *, struct ArrowArrayStream *, int64_t,
                  struct ArrowArray *, struct ArrowSchema *);
replay *ss_replay(struct ArrowArrayStream **, int64_t nodes, int64_t edges);
int32_t ss_replay_left_out(const replay *, struct ArrowArray *, struct ArrowSchema *);
int32_t ss_replay_lags(const replay *, struct ArrowArrayStream **, struct ArrowArray **, struct ArrowSchema **);
int32_t ss_replay_ends(const replay *, struct ArrowArrayStream **, struct ArrowArray *, struct ArrowSchema *);
int32_t ss_replay_last_ends(const replay *, struct ArrowArrayStream **, int64_t groups, struct ArrowArray *,
                            struct ArrowSchema *);
int32_t ss_replay_slack(const replay *, struct ArrowArrayStream **, int64_t groups, struct ArrowArray **,
                        struct ArrowSchema **);
int32_t ss_replay_paths(const replay *, struct ArrowArrayStream **, int64_t paths, struct ArrowArray **,
                        struct ArrowSchema **);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
