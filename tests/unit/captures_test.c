/* SPDX-License-Identifier: MIT
 *
 * Long recordings with many private pools that came and went: made by the library's own allocator
 * and recorder on a simulated device, and read back without a word about the pools. */
#include <stdlib.h>

#include <unfrag/recorder.h>
#include <unfrag/replay.h>
#include <unfrag/sim.h>

#include "replay/program.h"
#include "unit/suite.h"

#define MIB (UINT64_C(1) << 20)

enum { CAPTURES_KEPT = 5, TENSORS = 40, CAPTURE_STREAM = 7 };

typedef struct capture {
    uint64_t pool, output_addr;
} capture;

typedef struct program_under_test {
    uf_allocator *allocator;
    uint64_t tensors[TENSORS];
    capture kept[CAPTURES_KEPT];
    uint32_t kept_count;
    uint64_t seed;
} program_under_test;

static uint64_t take(program_under_test *p, uint64_t bytes, uint64_t stream)
{
    uint64_t addr = 0;
    uf_error error = {UF_OK, ""};
    ck_assert_msg(uf_alloc(p->allocator, bytes, stream, &addr, &error) == UF_OK, "%s", error.text);
    return addr;
}

static void give(program_under_test *p, uint64_t addr)
{
    ck_assert_int_eq(uf_free(p->allocator, addr, NULL), UF_OK);
}

static uint64_t random_bytes(program_under_test *p)
{
    uint64_t drawn = suite_random(&p->seed);
    return drawn % 4 == 0 ? 512 + drawn % 100000 : MIB + (drawn >> 8) % (12 * MIB);
}

/* Some tensors of the program are replaced, outside every pool. */
static void work_eagerly(program_under_test *p, uint32_t step_count)
{
    for (uint32_t i = 0; i < step_count; i++) {
        uint64_t *tensor = &p->tensors[suite_random(&p->seed) % TENSORS];
        if (*tensor != 0) {
            give(p, *tensor);
            *tensor = 0;
        } else {
            *tensor = take(p, random_bytes(p), 0);
        }
    }
}

static void drop_capture(program_under_test *p, uint32_t which)
{
    give(p, p->kept[which].output_addr);
    ck_assert_int_eq(uf_pool_destroy(p->allocator, p->kept[which].pool, NULL), UF_OK);
    p->kept[which] = p->kept[--p->kept_count];
}

/* A chain of layers; the output stays. */
static uint64_t run_layers(program_under_test *p, uint64_t bytes, uint64_t stream)
{
    uint64_t output = take(p, bytes, stream);
    for (uint32_t layer = 0; layer < 4; layer++) {
        uint64_t product = take(p, bytes, stream), next = take(p, bytes, stream);
        give(p, product);
        give(p, output);
        output = next;
    }
    return output;
}

/* As programs do it with torch.cuda.graph: the layers run once on a stream of the capture's own to
 * warm up; the cache is emptied; then they run inside the pool. */
static void work_in_capture(program_under_test *p)
{
    if (p->kept_count == CAPTURES_KEPT) {
        drop_capture(p, (uint32_t)(suite_random(&p->seed) % CAPTURES_KEPT));
    }
    capture *made = &p->kept[p->kept_count++];
    uint64_t bytes = random_bytes(p);
    give(p, run_layers(p, bytes, CAPTURE_STREAM));
    ck_assert_int_eq(uf_empty_cache(p->allocator, NULL), UF_OK);
    ck_assert_int_eq(uf_pool_create(p->allocator, NULL, &made->pool, NULL), UF_OK);
    ck_assert_int_eq(uf_pool_begin(p->allocator, made->pool, NULL), UF_OK);
    made->output_addr = run_layers(p, bytes, CAPTURE_STREAM);
    ck_assert_int_eq(uf_pool_end(p->allocator, made->pool, NULL), UF_OK);
}

/* A program of `capture_count` captures, none of which is left at the end, as its snapshot tells.
 */
static uf_program *record_and_infer(uint32_t capture_count, uint32_t step_count, uf_trace **trace)
{
    uf_sim *sim;
    uf_recorder *recorder;
    uf_error error = {UF_OK, ""};
    program_under_test p = {.seed = 1};
    ck_assert_int_eq(uf_sim_create(NULL, &sim, &error), UF_OK);
    ck_assert_int_eq(uf_recorder_create(NULL, &recorder, &error), UF_OK);
    uf_allocator_options options = {.struct_size_bytes = sizeof options,
                                    .device = uf_sim_device(sim),
                                    .on_event = uf_recorder_event,
                                    .event_context = recorder};
    ck_assert_msg(uf_allocator_create(&options, &p.allocator, &error) == UF_OK, "%s", error.text);
    for (uint32_t i = 0; i < capture_count; i++) {
        work_eagerly(&p, step_count);
        work_in_capture(&p);
    }
    while (p.kept_count > 0) {
        drop_capture(&p, 0);
    }
    char *data = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&data, &size);
    ck_assert_ptr_nonnull(stream);
    ck_assert_int_eq(uf_snapshot_write(p.allocator, recorder, stream, &error), UF_OK);
    ck_assert_int_eq(fclose(stream), 0);
    uf_allocator_destroy(p.allocator);
    uf_recorder_destroy(recorder);
    uf_sim_destroy(sim);
    ck_assert_int_eq(uf_trace_read_memory(data, size, NULL, trace, &error), UF_OK);
    free(data);
    uf_program *program;
    ck_assert_int_eq(uf_program_create(*trace, NULL, &program, &error), UF_OK);
    return program;
}

START_TEST(hundreds_of_captures_are_found_at_the_cost_of_some_passes)
{
    uf_trace *trace;
    uf_program *program = record_and_infer(400, 60, &trace);
    const uf_program_report *report = uf_program_report_get(program);
    ck_assert_msg(report->is_equal, "%s", report->difference.text);
    ck_assert_uint_gt(report->event_count, 60000);
    ck_assert_uint_gt(report->relabel_count, 400);
    /* From the start for every trial it would be thousands. */
    ck_assert_uint_lt(program->followed_count, 100 * report->event_count);
    uf_program_destroy(program);
    uf_trace_destroy(trace);
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {hundreds_of_captures_are_found_at_the_cost_of_some_passes, NULL};
    return suite_run("captures", tests);
}
