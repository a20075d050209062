/* .npy files: what NumPy writes is read, what is damaged is refused by file and field, what is written is read back. */
#define BP_WITHOUT_OPERATORS
#include "tests/lib/check.h"
#include "host/tensor/tensor.h"
#include <backplane/backplane.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static bp_ctx *c;
static char path[512];

static int start(void **state)
{
    (void)state;
    c = bp_ctx_new(NULL);
    const char *tmp = getenv("TMPDIR");
    snprintf(path, sizeof path, "%s/test-%ld.npy", tmp ? tmp : "/tmp", (long)getpid());
    return c ? 0 : -1;
}

static int end(void **state)
{
    (void)state;
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

/* A file of version major with this header and n bytes 0, 1, 2 ... of data; its length. */
static size_t make_file(unsigned char *out, unsigned major, const char *header, size_t n)
{
    size_t len = strlen(header), at = major == 1 ? 10 : 12;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (unsigned char)major;
    out[7] = 0;
    for (size_t i = 8; i < at; i++)
        out[i] = (unsigned char)(len >> (8 * (i - 8)));
    memcpy(out + at, header, len);
    for (size_t i = 0; i < n; i++)
        out[at + len + i] = (unsigned char)i;
    return at + len + n;
}

static bp_tensor *load(unsigned major, const char *header, size_t n)
{
    unsigned char bytes[4096];
    put_file(bytes, make_file(bytes, major, header, n));
    return bp_load_npy(c, path);
}

static void every_type_and_version_is_read(void **state)
{
    (void)state;
    static const struct { const char *descr; bp_dtype dtype; } ROWS[] = {
        {"|b1", BP_BOOL}, {"|u1", BP_U8}, {"<u1", BP_U8}, {">i1", BP_I8}, {"<i2", BP_I16}, {"=i4", BP_I32},
        {"<i8", BP_I64}, {"<f2", BP_F16}, {"<f4", BP_F32}, {"f8", BP_F64}, {"<c8", BP_C64}, {"<c16", BP_C128},
    };
    for (size_t i = 0; i < sizeof ROWS / sizeof ROWS[0]; i++) {
        for (unsigned major = 1; major <= 3; major++) {
            char header[200];
            snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': (2,), }  \n",
                     ROWS[i].descr);
            size_t n = 2 * dtype_size(ROWS[i].dtype);
            bp_tensor *t = load(major, header, ROWS[i].dtype == BP_BOOL ? 2 : n);
            if (!t)
                fail_msg("%s: %s", ROWS[i].descr, bp_error_text(c));
            assert_int_equal(bp_tensor_dtype(t), ROWS[i].dtype);
            const unsigned char *p = bp_tensor_data(c, t);
            for (size_t k = 0; k < n; k++)
                assert_int_equal(p[k], k);
        }
    }
}

static void the_header_may_be_written_in_any_way_python_reads_it(void **state)
{
    (void)state;
    static const char *const HEADERS[] = {
        "{\"shape\":(2,3),\"fortran_order\":False,\"descr\":\"|u1\"}",
        "  { 'descr' : '|u1' , 'fortran_order' : False , 'shape' : ( 2L , 3L , ) , } \n",
    };
    for (size_t i = 0; i < 2; i++) {
        bp_tensor *t = load(1, HEADERS[i], 6);
        if (!t)
            fail_msg("%s: %s", HEADERS[i], bp_error_text(c));
        assert_int_equal(bp_tensor_rank(t), 2);
        assert_int_equal(bp_tensor_size(t, 1), 3);
        assert_int_equal(bp_tensor_stride(t, 0), 3);
    }
}

static void fortran_order_gives_strides_that_run_the_other_way(void **state)
{
    (void)state;
    bp_tensor *t = load(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", 6);
    unsigned char row_major[6];
    assert_int_equal(bp_tensor_stride(t, 0), 1);
    assert_int_equal(bp_tensor_stride(t, 1), 2);
    assert_int_equal(bp_tensor_read(c, t, row_major, 6), BP_OK);
    assert_memory_equal(row_major, ((unsigned char[]){0, 2, 4, 1, 3, 5}), 6);
}

static void scalars_and_empty_arrays_are_read(void **state)
{
    (void)state;
    bp_tensor *t = load(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (), }", 4);
    assert_int_equal(bp_tensor_rank(t), 0);
    assert_int_equal(bp_tensor_numel(t), 1);
    t = load(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 9223372036854775807, 9, 0), }", 0);
    assert_null(t); /* its strides do not fit */
    bp_error_clear(c);
    t = load(1, "{'descr': '<f4', 'fortran_order': False, 'shape': (4, 0), }", 0);
    assert_int_equal(bp_tensor_numel(t), 0);
}

/* Words of the error: the path is checked by the test, the field and the rest stand here. */
static const struct { const char *header; size_t n; bp_status code; const char *words; } DAMAGED[] = {
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 7, BP_DATA_LOSS,
     "field \"data\": 7 bytes where the shape needs 8"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }", 9, BP_DATA_LOSS, "field \"data\": 9 bytes"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }", 8, BP_DATA_LOSS, "field \"shape\": a size"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2.5,), }", 8, BP_DATA_LOSS, "field \"shape\": a comma"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999,), }", 8, BP_DATA_LOSS,
     "field \"shape\": a size between"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2), }", 8, BP_DATA_LOSS,
     "field \"shape\": the number of bytes does not fit"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': [2], }", 8, BP_DATA_LOSS, "field \"shape\": a tuple"},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2", 8, BP_DATA_LOSS, "field \"shape\""},
    {"{'descr': '<f4', 'fortran_order': Maybe, 'shape': (2,), }", 8, BP_DATA_LOSS, "field \"fortran_order\": True or"},
    {"{'descr': '>f4', 'fortran_order': False, 'shape': (2,), }", 8, BP_UNIMPLEMENTED, "field \"descr\": big-endian"},
    {"{'descr': '<U7', 'fortran_order': False, 'shape': (2,), }", 8, BP_UNIMPLEMENTED,
     "field \"descr\": type \"<U7\" is not"},
    {"{'descr': [('x', '<f4')], 'fortran_order': False, 'shape': (2,), }", 8, BP_UNIMPLEMENTED,
     "field \"descr\": a structured"},
    {"{'descr': '<f4', 'shape': (2,), }", 8, BP_DATA_LOSS, "field \"fortran_order\": it is missing"},
    {"{'descr': '<f4', 'descr': '<f4', 'shape': (2,), }", 8, BP_DATA_LOSS, "key \"descr\" is there twice"},
    {"{'descr': '<f4', 'order': 1, 'shape': (2,), }", 8, BP_DATA_LOSS, "key \"order\" is unknown"},
    {"{'descr': '<f4", 8, BP_UNIMPLEMENTED, "field \"descr\""},
    {"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), } x", 8, BP_DATA_LOSS, "behind the closing brace"},
    {"{'descr': '<f4' 'fortran_order': False, 'shape': (2,), }", 8, BP_DATA_LOSS, "a comma or a closing brace"},
    {"['descr']", 8, BP_DATA_LOSS, "field \"header\": an opening brace"},
    {"", 8, BP_DATA_LOSS, "field \"header\": an opening brace"},
    {"{'descr': '|b1', 'fortran_order': False, 'shape': (3,), }", 3, BP_DATA_LOSS, "bool 2 has the value 2"},
};

static void a_damaged_file_is_refused_by_file_and_field(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof DAMAGED / sizeof DAMAGED[0]; i++) {
        assert_null(load(1, DAMAGED[i].header, DAMAGED[i].n));
        if (bp_error(c) != DAMAGED[i].code)
            fail_msg("%s: %s", DAMAGED[i].header, bp_error_text(c));
        assert_contains(bp_error_message(c), DAMAGED[i].words);
        assert_contains(bp_error_message(c), path);
        bp_error_clear(c);
    }
}

static void a_file_cut_anywhere_is_refused(void **state)
{
    (void)state;
    unsigned char bytes[512];
    for (unsigned major = 1; major <= 2; major++) {
        size_t n = make_file(bytes, major, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24);
        for (size_t cut = 0; cut < n; cut++) {
            put_file(bytes, cut);
            assert_null(bp_load_npy(c, path));
            assert_int_equal(bp_error(c), BP_DATA_LOSS);
            assert_contains(bp_error_message(c), path);
            bp_error_clear(c);
        }
    }
}

static void any_changed_byte_is_refused_or_harmless(void **state)
{
    (void)state;
    unsigned char bytes[512];
    size_t n = make_file(bytes, 1, "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24);
    for (size_t at = 0; at < n - 24; at++) {
        for (unsigned v = 0; v < 256; v += 5) {
            unsigned char was = bytes[at];
            bytes[at] = (unsigned char)v;
            put_file(bytes, n);
            bp_tensor *t = bp_load_npy(c, path);
            assert_true(t ? bp_error(c) == BP_OK && tensor_span_bytes(t) == 24 : bp_error(c) != BP_OK);
            bp_error_clear(c);
            bytes[at] = was;
        }
    }
}

static void what_is_no_file_is_refused(void **state)
{
    (void)state;
    assert_null(bp_load_npy(c, "/nonexistent/x.npy"));
    assert_int_equal(bp_error(c), BP_NOT_FOUND);
    assert_contains(bp_error_message(c), "cannot open \"/nonexistent/x.npy\": No such file");
    bp_error_clear(c);
    assert_null(bp_load_npy(c, "/"));
    assert_contains(bp_error_message(c), "\"/\" is not a regular file");
    bp_error_clear(c);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_null(bp_load_npy(c, path));
    assert_contains(bp_error_message(c), "not a regular file");
    bp_error_clear(c);
    unlink(path);
    put_file("", 0);
    assert_null(bp_load_npy(c, path));
    assert_contains(bp_error_message(c), "is empty");
    bp_error_clear(c);
    assert_null(bp_load_npy(c, NULL));
    assert_int_equal(bp_error(c), BP_INVALID_ARGUMENT);
}

static void what_is_saved_is_loaded_again(void **state)
{
    (void)state;
    for (bp_dtype d = BP_BOOL; d < BP_DTYPE_END; d++) {
        for (uint32_t rank = 0; rank < 4; rank++) {
            unsigned char data[6 * 16] = {0}, back[6 * 16];
            const int64_t sizes[] = {2, 1, 3};
            size_t n = (rank == 3 ? 6 : rank ? 2 : 1) * dtype_size(d);
            for (size_t i = 0; i < n; i++)
                data[i] = d == BP_BOOL ? i & 1 : (unsigned char)(i + 60);
            bp_status s = bp_save_npy(c, bp_tensor_from(c, d, rank, sizes, data), path);
            if (d == BP_BF16) {
                assert_int_equal(s, BP_INVALID_ARGUMENT);
                assert_contains(bp_error_text(c), ".npy has no type for bfloat16");
                bp_error_clear(c);
                continue;
            }
            assert_int_equal(s, BP_OK);
            bp_tensor *t = bp_load_npy(c, path);
            assert_int_equal(bp_tensor_dtype(t), d);
            assert_int_equal(bp_tensor_rank(t), rank);
            assert_int_equal(bp_tensor_read(c, t, back, n), BP_OK);
            assert_memory_equal(back, data, n);
        }
    }
}

/* What numpy.save writes for arange(3, dtype=int16), byte for byte. */
static void the_file_is_the_one_that_numpy_writes(void **state)
{
    (void)state;
    static const char HEAD[] = "\x93NUMPY\1\0v\0{'descr': '<i2', 'fortran_order': False, 'shape': (3,), }";
    unsigned char want[134], got[135];
    memset(want, ' ', sizeof want);
    memcpy(want, HEAD, sizeof HEAD - 1);
    memcpy(want + 127, "\n\0\0\1\0\2\0", 7);
    assert_int_equal(bp_save_npy(c, bp_tensor_from(c, BP_I16, 1, (int64_t[]){3}, (int16_t[]){0, 1, 2}), path), BP_OK);
    FILE *f = fopen(path, "rb");
    assert_int_equal(fread(got, 1, sizeof got, f), sizeof want);
    fclose(f);
    assert_memory_equal(got, want, sizeof want);
}

static void a_strided_tensor_is_saved_in_row_major_order(void **state)
{
    (void)state;
    bp_tensor *t = load(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", 6);
    assert_int_equal(bp_save_npy(c, t, path), BP_OK);
    const unsigned char *p = bp_tensor_data(c, bp_load_npy(c, path));
    assert_memory_equal(p, ((unsigned char[]){0, 2, 4, 1, 3, 5}), 6);
}

static void a_failed_save_leaves_the_old_file(void **state)
{
    (void)state;
    bp_tensor *t = bp_tensor_from(c, BP_U8, 1, (int64_t[]){5}, "abcde");
    assert_int_equal(bp_save_npy(c, t, "/nonexistent/x.npy"), BP_NOT_FOUND);
    bp_error_clear(c);
    assert_int_equal(bp_save_npy(c, t, "/dev/full"), BP_RESOURCE_EXHAUSTED);
    assert_contains(bp_error_message(c), "cannot write \"/dev/full\": No space left");
    bp_error_clear(c);
    assert_int_equal(bp_save_npy(c, t, "/"), BP_INVALID_ARGUMENT);
    bp_error_clear(c);
    assert_int_equal(bp_save_npy(c, t, path), BP_OK);
    assert_int_equal(chmod(path, 0640), 0);
    char link[600];
    snprintf(link, sizeof link, "%s.link", path);
    assert_int_equal(symlink(path, link), 0);
    assert_int_equal(bp_save_npy(c, t, link), BP_OK); /* the link stays, and so does the mode */
    struct stat st;
    assert_int_equal(lstat(link, &st), 0);
    assert_true(S_ISLNK(st.st_mode));
    assert_int_equal(stat(path, &st), 0);
    assert_int_equal(st.st_mode & 0777, 0640);
    unlink(link);
}

static void under_capture_a_file_is_not_read(void **state)
{
    (void)state;
    c->capturing = 1;
    assert_null(bp_load_npy(c, path));
    assert_contains(bp_error_message(c), "while a function is captured");
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, start, end)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(every_type_and_version_is_read),
        TEST(the_header_may_be_written_in_any_way_python_reads_it),
        TEST(fortran_order_gives_strides_that_run_the_other_way),
        TEST(scalars_and_empty_arrays_are_read),
        TEST(a_damaged_file_is_refused_by_file_and_field),
        TEST(a_file_cut_anywhere_is_refused),
        TEST(any_changed_byte_is_refused_or_harmless),
        TEST(what_is_no_file_is_refused),
        TEST(what_is_saved_is_loaded_again),
        TEST(the_file_is_the_one_that_numpy_writes),
        TEST(a_strided_tensor_is_saved_in_row_major_order),
        TEST(a_failed_save_leaves_the_old_file),
        TEST(under_capture_a_file_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
