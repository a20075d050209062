/* safetensors files: mapped, checked whole before the module sees a tensor. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/tensor/module.h"
#include <backplane/backplane.h>
#include <stdlib.h>
#include <unistd.h>

static bp_ctx *c;
static bp_module *m;
static char path[512];

static int start(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    m = c ? bp_module_new(c) : NULL;
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/test-%ld.safetensors", tmp ? tmp : "/tmp", (long)getpid());
    return m ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
    bp_module_unref(m);
    bp_ctx_destroy(c);
    unlink(path);
    return 0;
}

static void put_file(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(bytes, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
}

/* A file with this header and n bytes 0, 1, 2 ... of data; its length. */
static size_t make_file(unsigned char *out, const char *header, size_t n)
{
    size_t len = strlen(header);
    for (size_t i = 0; i < 8; i++)
        out[i] = (unsigned char)((uint64_t)len >> (8 * i));
    memcpy(out + 8, header, len);
    for (size_t i = 0; i < n; i++)
        out[8 + len + i] = (unsigned char)i;
    return 8 + len + n;
}

static bp_status load(const char *header, size_t n)
{
    unsigned char bytes[4096];
    put_file(bytes, make_file(bytes, header, n));
    return bp_module_load(c, m, path);
}

static void tensors_are_found_by_name_and_survive_the_file(void **state)
{
    (void)state;
    assert_int_equal(load("{\"__metadata__\":{\"format\":\"pt\"},"
                          "\"fc.weight\":{\"dtype\":\"I16\",\"shape\":[2,2],\"data_offsets\":[4,12]},"
                          "\"fc.bias\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4],\"later\":1}}    ", 12),
                     BP_OK);
    unlink(path);
    assert_int_equal(m->entries.len, 2);
    bp_tensor *w = bp_module_get(c, m, "fc.weight");
    assert_int_equal(bp_tensor_dtype(w), BP_I16);
    assert_int_equal(bp_tensor_size(w, 1), 2);
    const unsigned char *p = bp_tensor_data(c, w);
    for (int i = 0; i < 8; i++)
        assert_int_equal(p[i], i + 4);
    assert_int_equal(bp_tensor_rank(bp_module_get(c, m, "fc.bias")), 0);
}

static void writing_to_a_loaded_tensor_does_not_write_the_file(void **state)
{
    (void)state;
    const char *header = "{\"w\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}";
    assert_int_equal(load(header, 4), BP_OK);
    memset(bp_tensor_data(c, bp_module_get(c, m, "w")), 9, 4);
    assert_int_equal(bp_module_load(c, m, path), BP_OK); /* and an entry that is there is exchanged */
    assert_int_equal(m->entries.len, 1);
    assert_int_equal(((unsigned char *)bp_tensor_data(c, bp_module_get(c, m, "w")))[3], 3);
}

static void a_misaligned_tensor_is_copied_to_where_it_may_lie(void **state)
{
    (void)state;
    assert_int_equal(load("{\"a\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]},"
                          "\"b\":{\"dtype\":\"F64\",\"shape\":[1],\"data_offsets\":[1,9]}}", 9), BP_OK);
    bp_tensor *b = bp_module_get(c, m, "b");
    assert_int_equal((uintptr_t)bp_tensor_data(c, b) % 8, 0);
    assert_int_equal(((unsigned char *)bp_tensor_data(c, b))[7], 8);
}

static void a_buffer_stays_a_buffer(void **state)
{
    (void)state;
    bp_module_add_buffer(c, m, "mean", bp_tensor_from(c, BP_F32, 0, NULL, NULL));
    assert_int_equal(load("{\"mean\":{\"dtype\":\"U8\",\"shape\":[1],\"data_offsets\":[0,1]}}", 1), BP_OK);
    assert_int_equal(m->entries.at[0].role, BP_ROLE_BUFFER);
    assert_int_equal(bp_tensor_dtype(bp_module_get(c, m, "mean")), BP_U8);
}

#define ONE(dtype, shape, offsets) "{\"w\":{\"dtype\":" dtype ",\"shape\":" shape ",\"data_offsets\":" offsets "}}"
static const struct { const char *header; size_t n; bp_status code; const char *words; } DAMAGED[] = {
    {ONE("\"F32\"", "[2]", "[0,8]"), 7, BP_DATA_LOSS,
     "field \"w\": data_offsets 0 to 8 lie outside the file's 7 bytes"},
    {ONE("\"F32\"", "[2]", "[0,8]"), 9, BP_DATA_LOSS, "field \"data\": 9 bytes, of which 8 belong to a tensor"},
    {ONE("\"F32\"", "[2]", "[0,4]"), 8, BP_DATA_LOSS, "field \"w\": data_offsets give 4 bytes where the shape needs 8"},
    {ONE("\"F32\"", "[2]", "[8,0]"), 8, BP_DATA_LOSS, "lie outside"},
    {ONE("\"F32\"", "[2]", "[-8,0]"), 8, BP_DATA_LOSS, "lie outside"},
    {ONE("\"F32\"", "[2]", "[4,12]"), 12, BP_DATA_LOSS, "begin at 4 where the data before end at 0"},
    {ONE("\"F32\"", "[2]", "[0]"), 8, BP_DATA_LOSS, "field \"w\": data_offsets is missing or not a list of two"},
    {ONE("\"F32\"", "[2]", "[0.0,8.0]"), 8, BP_DATA_LOSS, "data_offsets is missing or not"},
    {ONE("\"F32\"", "[-2]", "[0,8]"), 8, BP_DATA_LOSS, "field \"w\": shape holds what is no size at index 0"},
    {ONE("\"F32\"", "[\"2\"]", "[0,8]"), 8, BP_DATA_LOSS, "no size at index 0"},
    {ONE("\"F32\"", "2", "[0,8]"), 8, BP_DATA_LOSS, "shape is missing or no list"},
    {ONE("\"F32\"", "[9223372036854775807,9]", "[0,8]"), 8, BP_DATA_LOSS, "more bytes than 64 bits"},
    {ONE("\"F32\"", "[99999999999999999999]", "[0,8]"), 8, BP_DATA_LOSS, "field \"header\": at byte"},
    {ONE("\"F8_E4M3\"", "[8]", "[0,8]"), 8, BP_UNIMPLEMENTED, "field \"w\": dtype \"F8_E4M3\" is not supported"},
    {ONE("7", "[8]", "[0,8]"), 8, BP_DATA_LOSS, "field \"w\": dtype is missing or no string"},
    {ONE("\"BOOL\"", "[3]", "[0,3]"), 3, BP_DATA_LOSS, "field \"w\": bool 2 has the value 2"},
    {"{\"w\":[]}", 0, BP_DATA_LOSS, "field \"w\": an object"},
    {"{\"\":{}}", 0, BP_DATA_LOSS, "this is no name"},
    {"{\"__metadata__\":3}", 0, BP_DATA_LOSS, "field \"__metadata__\": an object"},
    {"[]", 0, BP_DATA_LOSS, "field \"header\": a JSON object"},
    {"{", 0, BP_DATA_LOSS, "field \"header\": at byte"},
    {"", 0, BP_DATA_LOSS, "field \"header\""},
    {"{\"w\":{},\"w\":{}}", 0, BP_DATA_LOSS, "duplicate"},
    {"{\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[0,2]},"
     "\"b\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[1,3]}}", 3, BP_DATA_LOSS,
     "field \"b\": data_offsets begin at 1 where the data before end at 2"},
};

static void a_damaged_file_is_refused_by_file_and_field_and_changes_nothing(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof DAMAGED / sizeof DAMAGED[0]; i++) {
        if (load(DAMAGED[i].header, DAMAGED[i].n) != DAMAGED[i].code)
            fail_msg("%s: %s", DAMAGED[i].header, bp_error_text(c));
        assert_contains(bp_error_message(c), DAMAGED[i].words);
        assert_contains(bp_error_message(c), path);
        assert_int_equal(m->entries.len, 0);
        bp_error_clear(c);
    }
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    unsigned char bytes[512];
    size_t n = make_file(bytes, ONE("\"F32\"", "[2]", "[0,8]"), 8);
    for (size_t cut = 0; cut < n; cut++) {
        put_file(bytes, cut);
        assert_int_equal(bp_module_load(c, m, path), BP_DATA_LOSS);
        bp_error_clear(c);
    }
    memset(bytes, 0xff, 8); /* a header of 2^64 - 1 bytes */
    put_file(bytes, n);
    assert_int_equal(bp_module_load(c, m, path), BP_DATA_LOSS);
    assert_contains(bp_error_message(c), "field \"header length\": 18446744073709551615 bytes");
}

static void any_changed_byte_is_refused_or_harmless(void **state)
{
    (void)state;
    unsigned char bytes[512];
    size_t n = make_file(bytes, ONE("\"F32\"", "[2]", "[0,8]"), 8);
    for (size_t at = 0; at < n - 8; at++) {
        for (unsigned v = 0; v < 256; v += 3) {
            unsigned char was = bytes[at];
            bytes[at] = (unsigned char)v;
            put_file(bytes, n);
            bp_status s = bp_module_load(c, m, path);
            assert_int_equal(s, bp_error(c));
            bp_error_clear(c);
            bytes[at] = was;
        }
    }
}

static void what_is_saved_is_loaded_again(void **state)
{
    (void)state;
    unsigned char data[96], back[96];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7 + 1);
    const unsigned char bools[] = {1, 0, 1, 1, 0, 0};
    char name[32];
    for (bp_dtype d = BP_BOOL; d < BP_DTYPE_END; d++) {
        snprintf(name, sizeof name, "part.%s \"\xc3\xa9\"", dtype_get(d)->torch);
        const void *from = d == BP_BOOL ? bools : data;
        assert_int_equal(bp_module_add_parameter(c, m, name, bp_tensor_from(c, d, 2, (int64_t[]){2, 3}, from)), BP_OK);
    }
    assert_int_equal(bp_module_save(c, m, path), BP_OK);
    bp_module *again = bp_module_new(c);
    assert_int_equal(bp_module_load(c, again, path), BP_OK);
    for (bp_dtype d = BP_BOOL; d < BP_DTYPE_END; d++) {
        snprintf(name, sizeof name, "part.%s \"\xc3\xa9\"", dtype_get(d)->torch);
        bp_tensor *t = bp_module_get(c, again, name);
        assert_int_equal(bp_tensor_dtype(t), d);
        assert_int_equal(bp_tensor_read(c, t, back, 6 * dtype_size(d)), BP_OK);
        assert_memory_equal(back, d == BP_BOOL ? bools : data, 6 * dtype_size(d));
    }
    bp_module_unref(again);
}

static void an_empty_module_is_a_file_without_tensors(void **state)
{
    (void)state;
    assert_int_equal(bp_module_save(c, m, path), BP_OK);
    assert_int_equal(bp_module_load(c, m, path), BP_OK);
    assert_int_equal(m->entries.len, 0);
}

static void a_name_that_is_not_utf8_cannot_be_saved(void **state)
{
    (void)state;
    bp_module_add_parameter(c, m, "\xff", bp_tensor_from(c, BP_F32, 0, NULL, NULL));
    assert_int_equal(bp_module_save(c, m, path), BP_INVALID_ARGUMENT);
    assert_contains(bp_error_message(c), "is not UTF-8");
    assert_int_equal(access(path, F_OK), -1);
}

/* The path of a file under tests/models/digits. */
static const char *digits(const char *name)
{
    static char file[600];
    const char *src = getenv("top_srcdir");
    snprintf(file, sizeof file, "%s/tests/models/digits/%s", src ? src : ".", name);
    return file;
}

static void assert_same(bp_tensor *a, bp_tensor *b)
{
    assert_true(a && b);
    assert_int_equal(bp_tensor_dtype(a), bp_tensor_dtype(b));
    assert_int_equal(bp_tensor_rank(a), bp_tensor_rank(b));
    for (uint32_t d = 0; d < bp_tensor_rank(a); d++)
        assert_int_equal(bp_tensor_size(a, d), bp_tensor_size(b, d));
    assert_memory_equal(bp_tensor_data(c, a), bp_tensor_data(c, b), (size_t)bp_tensor_numel(a) * 4);
}

static void F103_npy_and_safetensors_files_go_in_and_out(void **state)
{
    (void)state;
    static const char *const NAMES[] = {"conv1.weight", "conv1.bias", "conv2.weight", "conv2.bias", "fc1.weight"};
    bp_tensor *images = bp_load_npy(c, digits("images.npy"));
    assert_int_equal(bp_tensor_numel(images), 360 * 64);
    assert_int_equal(bp_save_npy(c, images, path), BP_OK);
    assert_same(bp_load_npy(c, path), images);
    assert_int_equal(bp_module_load(c, m, digits("weights.safetensors")), BP_OK);
    assert_int_equal(bp_module_save(c, m, path), BP_OK);
    bp_module *again = bp_module_new(c);
    assert_int_equal(bp_module_load(c, again, path), BP_OK);
    for (size_t i = 0; i < sizeof NAMES / sizeof NAMES[0]; i++)
        assert_same(bp_module_get(c, again, NAMES[i]), bp_module_get(c, m, NAMES[i]));
    bp_module_unref(again);
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(tensors_are_found_by_name_and_survive_the_file),
        TEST(writing_to_a_loaded_tensor_does_not_write_the_file),
        TEST(a_misaligned_tensor_is_copied_to_where_it_may_lie),
        TEST(a_buffer_stays_a_buffer),
        TEST(a_damaged_file_is_refused_by_file_and_field_and_changes_nothing),
        TEST(a_file_cut_anywhere_is_refused),
        TEST(any_changed_byte_is_refused_or_harmless),
        TEST(what_is_saved_is_loaded_again),
        TEST(an_empty_module_is_a_file_without_tensors),
        TEST(a_name_that_is_not_utf8_cannot_be_saved),
        TEST(F103_npy_and_safetensors_files_go_in_and_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
