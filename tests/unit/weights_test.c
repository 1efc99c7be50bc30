/* SPDX-License-Identifier: MIT
 *
 * Weight files, whole and broken in each way, written byte by byte here. */
#include "advise/weights.h"

#include <inttypes.h>

#include "unit/folder.h"
#include "unit/suite.h"

static uf_weights weights;

/* A safetensors file: header length, header, data_bytes of data (a hole). */
static void make_safetensors(const char *name, const char *header, uint64_t data_bytes)
{
    unsigned char bytes[4096];
    size_t length = strlen(header);
    for (unsigned i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)((uint64_t)length >> (8 * i));
    }
    memcpy(bytes + 8, header, length);
    folder_write(name, bytes, length + 8);
    ck_assert_int_eq(truncate(folder_path(name), (off_t)(length + 8 + data_bytes)), 0);
}

/* One tensor of `count` elements of F16. */
static void make_simple(const char *name, const char *tensor, unsigned count)
{
    char header[256];
    snprintf(header, sizeof header,
             "{\"__metadata__\":{\"format\":\"pt\"},\"%s\":{\"dtype\":\"F16\",\"shape\":[%u],"
             "\"data_offsets\":[0,%u]}}",
             tensor, count, 2 * count);
    make_safetensors(name, header, 2 * (uint64_t)count);
}

static void scan(void)
{
    uf_error error = {0};
    ck_assert_int_eq(uf__weights_scan(folder, &weights, &error), UF_OK);
}

static const uf_weight_file *file_of(const char *path)
{
    for (size_t i = 0; i < weights.file_count; i++) {
        if (strcmp(weights.files[i].path, path) == 0) {
            return &weights.files[i];
        }
    }
    ck_abort_msg("no entry for %s", path);
    return NULL;
}

static void expect(const char *path, uf_weight_state state, const char *text)
{
    const uf_weight_file *file = file_of(path);
    ck_assert_msg(file->state == state, "%s is %s: %s", path, uf__weight_state_name(file->state),
                  file->text != NULL ? file->text : "-");
    ck_assert_msg(text == NULL || strstr(file->text, text) != NULL, "%s: %s", path, file->text);
}

static void finish(void)
{
    uf__weights_fini(&weights);
    folder_destroy();
}

START_TEST(a_whole_file_is_summed_by_type)
{
    folder_create();
    make_safetensors("model.safetensors",
                     "{\"b\":{\"dtype\":\"BF16\",\"shape\":[3,4],\"data_offsets\":[8,32]},"
                     "\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
                     "\"s\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[32,40]},"
                     "\"e\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[40,40]}}   ",
                     40);
    scan();
    ck_assert(uf__weights_is_complete(&weights));
    ck_assert(weights.has_sum);
    ck_assert_uint_eq(weights.sum.tensor_count, 4);
    ck_assert_uint_eq(weights.sum.data_bytes, 40);
    ck_assert_uint_eq(weights.sum.parameter_count, 15);
    ck_assert_uint_eq(weights.sum.dtype_bytes[UF_DTYPE_BF16], 24);
    ck_assert_uint_eq(weights.sum.dtype_parameters[UF_DTYPE_BF16], 12);
    ck_assert_uint_eq(weights.sum.dtype_bytes[UF_DTYPE_F32], 8);
    finish();
}
END_TEST

/* Every length below the whole one is cut, and one byte more is damage. */
START_TEST(every_other_length_is_found_out)
{
    folder_create();
    make_simple("model.safetensors", "w", 8);
    struct stat status;
    ck_assert_int_eq(stat(folder_path("model.safetensors"), &status), 0);
    for (off_t length = 0; length < status.st_size; length++) {
        ck_assert_int_eq(truncate(folder_path("model.safetensors"), length), 0);
        scan();
        ck_assert_int_eq(weights.files[0].state, UF_WEIGHT_CUT);
        uf__weights_fini(&weights);
        make_simple("model.safetensors", "w", 8);
    }
    ck_assert_int_eq(truncate(folder_path("model.safetensors"), status.st_size + 1), 0);
    scan();
    expect("model.safetensors", UF_WEIGHT_DAMAGED, "1 bytes too many");
    finish();
}
END_TEST

START_TEST(contradictions_within_a_header_are_named)
{
    folder_create();
    make_safetensors("a.safetensors",
                     "{\"x\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,8]},"
                     "\"y\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[6,14]}}",
                     14);
    make_safetensors("b.safetensors",
                     "{\"x\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,8]},"
                     "\"y\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[10,18]}}",
                     18);
    make_safetensors("c.safetensors",
                     "{\"x\":{\"dtype\":\"F16\",\"shape\":[4],\"data_offsets\":[0,16]}}", 16);
    make_safetensors("d.safetensors", "{\"x\":{\"dtype\":\"F16\",\"shape\":[4]}}", 0);
    make_safetensors("e.safetensors", "[1,2,3]", 0);
    make_safetensors("f.safetensors",
                     "{\"x\":{\"dtype\":\"F64\",\"shape\":[4294967296,4294967296,4294967296],"
                     "\"data_offsets\":[0,8]}}",
                     8);
    make_safetensors("g.safetensors",
                     "{\"x\":{\"dtype\":\"F16\",\"shape\":[-4],\"data_offsets\":[0,8]}}", 8);
    folder_write("h.safetensors", "\377\377\377\377\377\377\377\377{}", 10);
    scan();
    expect("a.safetensors", UF_WEIGHT_DAMAGED, "overlap");
    expect("b.safetensors", UF_WEIGHT_DAMAGED, "gap");
    expect("c.safetensors", UF_WEIGHT_DAMAGED, "4 elements of F16 and 16 bytes");
    expect("d.safetensors", UF_WEIGHT_DAMAGED, "data_offsets");
    expect("e.safetensors", UF_WEIGHT_DAMAGED, "no JSON object");
    expect("f.safetensors", UF_WEIGHT_DAMAGED, NULL);
    expect("g.safetensors", UF_WEIGHT_DAMAGED, NULL);
    expect("h.safetensors", UF_WEIGHT_DAMAGED, "no safetensors file");
    ck_assert_uint_eq(weights.fault_count, 8);
    finish();
}
END_TEST

START_TEST(what_is_no_weights_at_all_is_recognised)
{
    folder_create();
    folder_write_text("a.safetensors", "version https://git-lfs.github.com/spec/v1\n"
                                       "oid sha256:abc\nsize 9876543210\n");
    folder_write_text("b.safetensors", "<!DOCTYPE html><html><body>Log in</body></html>");
    folder_write_text("pytorch_model.bin", "Access to model is restricted");
    folder_write_text("c.gguf", "");
    scan();
    expect("a.safetensors", UF_WEIGHT_PLACEHOLDER, "git lfs pull");
    ck_assert_uint_eq(file_of("a.safetensors")->expected_bytes, UINT64_C(9876543210));
    expect("b.safetensors", UF_WEIGHT_PLACEHOLDER, "web page");
    expect("pytorch_model.bin", UF_WEIGHT_PLACEHOLDER, "restricted");
    expect("c.gguf", UF_WEIGHT_CUT, "empty");
    finish();
}
END_TEST

START_TEST(an_index_finds_missing_shards_and_tensors)
{
    folder_create();
    make_simple("model-00001-of-00003.safetensors", "a", 4);
    make_simple("model-00002-of-00003.safetensors", "other", 4);
    folder_write_text("model.safetensors.index.json",
                      "{\"metadata\":{\"total_size\":24},\"weight_map\":{"
                      "\"a\":\"model-00001-of-00003.safetensors\","
                      "\"b\":\"model-00002-of-00003.safetensors\","
                      "\"c\":\"model-00003-of-00003.safetensors\"}}");
    scan();
    expect("model-00001-of-00003.safetensors", UF_WEIGHT_COMPLETE, NULL);
    expect("model-00002-of-00003.safetensors", UF_WEIGHT_DAMAGED, "'b'");
    expect("model-00003-of-00003.safetensors", UF_WEIGHT_MISSING, "index.json");
    ck_assert_uint_eq(weights.fault_count, 2);
    ck_assert_uint_eq(weights.set_count, 1);
    ck_assert_uint_eq(weights.sets[0].file_count, 3);
    ck_assert(!weights.has_sum);
    finish();
}
END_TEST

START_TEST(numbers_without_an_index_find_missing_shards)
{
    folder_create();
    make_simple("model-00001-of-00003.safetensors", "a", 4);
    make_simple("model-00003-of-00003.safetensors", "c", 4);
    scan();
    ck_assert_uint_eq(weights.fault_count, 1);
    expect("model-00002-of-00003.safetensors", UF_WEIGHT_MISSING, "3");
    finish();
}
END_TEST

START_TEST(an_index_that_leads_outside_is_not_followed)
{
    folder_create();
    make_simple("m/model.safetensors", "a", 4);
    make_simple("m/x.safetensors", "a", 4);
    folder_write_text("m/x.safetensors.index.json",
                      "{\"weight_map\":{\"a\":\"../../../etc/passwd\"}}");
    folder_write_text("m/y.safetensors.index.json", "{\"weight_map\":");
    scan();
    expect("m/x.safetensors.index.json", UF_WEIGHT_DAMAGED, "outside");
    expect("m/y.safetensors.index.json", UF_WEIGHT_DAMAGED, "no JSON");
    finish();
}
END_TEST

static void make_pipeline(void)
{
    folder_write_text("model_index.json",
                      "{\"_class_name\":\"P\",\"scheduler\":[\"diffusers\",\"EulerScheduler\"],"
                      "\"safety_checker\":[null,null],"
                      "\"tokenizer\":[\"transformers\",\"CLIPTokenizer\"],"
                      "\"transformer\":[\"diffusers\",\"T2D\"],\"vae\":[\"diffusers\",\"KL\"]}");
    folder_write_text("scheduler/scheduler_config.json", "{}");
    folder_write_text("tokenizer/vocab.json", "{}");
}

START_TEST(a_pipeline_counts_its_components_in_one_variant)
{
    folder_create();
    make_pipeline();
    make_simple("transformer/diffusion_pytorch_model-00001-of-00002.safetensors", "a", 100);
    make_simple("transformer/diffusion_pytorch_model-00002-of-00002.safetensors", "b", 50);
    make_simple("vae/diffusion_pytorch_model.safetensors", "v", 10);
    make_simple("vae/diffusion_pytorch_model.fp16.safetensors", "v", 10);
    make_simple("all-in-one.safetensors", "x", 1000); /* of another program */
    scan();
    ck_assert(uf__weights_is_complete(&weights));
    ck_assert(weights.is_pipeline && weights.has_sum);
    ck_assert_uint_eq(weights.sum.parameter_count, 160);
    ck_assert_uint_eq(weights.sum.data_bytes, 320);
    finish();
}
END_TEST

START_TEST(a_pipeline_without_a_component_is_not_complete)
{
    folder_create();
    make_pipeline();
    make_simple("transformer/diffusion_pytorch_model.safetensors", "a", 100);
    folder_write_text("vae/config.json", "{}");
    scan();
    ck_assert(!uf__weights_is_complete(&weights));
    expect("vae", UF_WEIGHT_MISSING, "no weights");
    ck_assert_uint_eq(weights.fault_count, 1);
    finish();
}
END_TEST

START_TEST(an_index_of_a_variant_that_was_not_fetched_is_no_fault)
{
    folder_create();
    make_simple("model.fp16.safetensors", "a", 4);
    folder_write_text("model.safetensors.index.json",
                      "{\"weight_map\":{\"a\":\"model-00001-of-00001.safetensors\"}}");
    folder_write_text("pytorch_model.bin.index.json",
                      "{\"weight_map\":{\"a\":\"pytorch_model-00001-of-00001.bin\"}}");
    scan();
    ck_assert(uf__weights_is_complete(&weights));
    expect("model-00001-of-00001.safetensors", UF_WEIGHT_ABSENT, "model.fp16");
    ck_assert_uint_eq(weights.sum.parameter_count, 4);
    finish();
}
END_TEST

/* An archive with one empty entry, as zip writes it. */
static size_t make_zip(unsigned char *bytes)
{
    static const unsigned char zip[] =
        "PK\3\4\12\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0\0\0a"
        "PK\1\2\36\3\12\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\1\0"
        "\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0a"
        "PK\5\6\0\0\0\0\1\0\1\0\57\0\0\0\37\0\0\0\0\0";
    memcpy(bytes, zip, sizeof zip - 1);
    return sizeof zip - 1;
}

START_TEST(an_archive_that_lost_its_end_is_cut)
{
    unsigned char bytes[256];
    size_t length = make_zip(bytes);
    folder_create();
    folder_write("pytorch_model.bin", bytes, length);
    folder_write("cut.ckpt", bytes, length - 1);
    bytes[length - 6] = 0x10; /* where the directory begins */
    folder_write("moved.pt", bytes, length);
    folder_write("old.pth", "\200\2\212\nl\374\234F\371 j\250P\31.", 15);
    folder_write("zeros.bin", "\0\0\0\0\0\0\0\0", 8);
    folder_write("optimizer.bin", "\0\0\0\0", 4); /* not weights */
    scan();
    expect("pytorch_model.bin", UF_WEIGHT_COMPLETE, NULL);
    expect("cut.ckpt", UF_WEIGHT_CUT, "no end");
    expect("moved.pt", UF_WEIGHT_DAMAGED, "directory");
    expect("old.pth", UF_WEIGHT_UNCHECKED, "1.6");
    expect("zeros.bin", UF_WEIGHT_UNFINISHED, "zeros");
    ck_assert_uint_eq(weights.file_count, 5);
    finish();
}
END_TEST

/* "GGUF", version 3, one pair, one tensor of 64 elements of Q8_0 (two blocks of 34 bytes). */
static size_t make_gguf(unsigned char *bytes)
{
    static const unsigned char gguf[] =
        "GGUF\3\0\0\0\1\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0"
        "\1\0\0\0\0\0\0\0k\10\0\0\0\2\0\0\0\0\0\0\0hi"
        "\1\0\0\0\0\0\0\0w\1\0\0\0\100\0\0\0\0\0\0\0\10\0\0\0\0\0\0\0\0\0\0\0";
    memcpy(bytes, gguf, sizeof gguf - 1);
    return sizeof gguf - 1;
}

START_TEST(a_gguf_is_measured_by_its_last_tensor)
{
    unsigned char bytes[256];
    size_t length = make_gguf(bytes), data = (length + 31) / 32 * 32;
    folder_create();
    folder_write("good.gguf", bytes, length);
    ck_assert_int_eq(truncate(folder_path("good.gguf"), (off_t)(data + 68)), 0);
    folder_write("cut.gguf", bytes, length);
    ck_assert_int_eq(truncate(folder_path("cut.gguf"), (off_t)(data + 67)), 0);
    folder_write("head.gguf", bytes, length - 3);
    scan();
    expect("good.gguf", UF_WEIGHT_COMPLETE, NULL);
    ck_assert_uint_eq(file_of("good.gguf")->sum.parameter_count, 64);
    ck_assert_uint_eq(file_of("good.gguf")->sum.dtype_bytes[UF_DTYPE_QUANTIZED], 68);
    expect("cut.gguf", UF_WEIGHT_CUT, "bytes are there");
    expect("head.gguf", UF_WEIGHT_CUT, "header");
    finish();
}
END_TEST

START_TEST(unfinished_downloads_are_told_from_leftovers)
{
    folder_create();
    make_simple("a.safetensors", "a", 4);
    folder_write_text("a.safetensors.part", "x");
    folder_write_text("b.safetensors.part", "x");
    make_simple("c.safetensors", "c", 4);
    folder_write_text("c.safetensors.aria2", "x");
    folder_write_text("notes.txt.part", "x");
    scan();
    expect("a.safetensors.part", UF_WEIGHT_LEFTOVER, NULL);
    expect("b.safetensors.part", UF_WEIGHT_UNFINISHED, NULL);
    expect("c.safetensors.aria2", UF_WEIGHT_UNFINISHED, NULL);
    ck_assert_uint_eq(weights.fault_count, 2);
    ck_assert_uint_eq(weights.file_count, 5);
    finish();
}
END_TEST

START_TEST(a_hugging_face_cache_is_followed_to_its_snapshot)
{
    folder_create();
    folder_write_text("refs/main", "abcdef0123456789");
    make_simple("blobs/1111", "a", 4);
    folder_link("snapshots/abcdef0123456789/model.safetensors", "../../blobs/1111");
    folder_link("snapshots/abcdef0123456789/lost.safetensors", "../../blobs/2222");
    folder_write_text("blobs/3333.incomplete", "x");
    scan();
    expect("model.safetensors", UF_WEIGHT_COMPLETE, NULL);
    expect("lost.safetensors", UF_WEIGHT_MISSING, "link");
    expect("blobs/3333.incomplete", UF_WEIGHT_UNFINISHED, NULL);
    ck_assert_uint_eq(weights.fault_count, 2);
    finish();
}
END_TEST

START_TEST(a_folder_without_weights_is_not_complete)
{
    uf_error error = {0};
    folder_create();
    folder_write_text("config.json", "{}");
    scan();
    ck_assert(!uf__weights_is_complete(&weights));
    ck_assert_uint_eq(weights.fault_count, 0);
    uf__weights_fini(&weights);
    ck_assert_int_eq(uf__weights_scan("/nowhere/at/all", &weights, &error), UF_ERROR_IO);
    uf__weights_fini(&weights);
    ck_assert_int_eq(uf__weights_scan(folder_path("config.json"), &weights, &error),
                     UF_ERROR_BAD_INPUT);
    finish();
}
END_TEST

START_TEST(one_file_can_be_looked_at_alone)
{
    uf_error error = {0};
    folder_create();
    make_simple("one.safetensors", "a", 4);
    folder_write_text("other.safetensors", "");
    ck_assert_int_eq(uf__weights_scan(folder_path("one.safetensors"), &weights, &error), UF_OK);
    ck_assert(uf__weights_is_complete(&weights));
    ck_assert_str_eq(weights.folder, folder);
    ck_assert_uint_eq(weights.sum.data_bytes, 8);
    finish();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {a_whole_file_is_summed_by_type,
                                  every_other_length_is_found_out,
                                  contradictions_within_a_header_are_named,
                                  what_is_no_weights_at_all_is_recognised,
                                  an_index_finds_missing_shards_and_tensors,
                                  numbers_without_an_index_find_missing_shards,
                                  an_index_that_leads_outside_is_not_followed,
                                  a_pipeline_counts_its_components_in_one_variant,
                                  a_pipeline_without_a_component_is_not_complete,
                                  an_index_of_a_variant_that_was_not_fetched_is_no_fault,
                                  an_archive_that_lost_its_end_is_cut,
                                  a_gguf_is_measured_by_its_last_tensor,
                                  unfinished_downloads_are_told_from_leftovers,
                                  a_hugging_face_cache_is_followed_to_its_snapshot,
                                  a_folder_without_weights_is_not_complete,
                                  one_file_can_be_looked_at_alone,
                                  NULL};
    return suite_run("weights", tests);
}
