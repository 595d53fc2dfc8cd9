/*
 * test_trim.c: what is left of a kernel's text (jit/trim.h), and that nothing leaks when memory runs out.
 */
#include "base/host.h"
#include "jit/text_conditions.h"
#include "jit/trim.h"
#include "check.h"

#include <stdio.h>

typedef void text_function(const char *text, struct gni_builder *out);

static void expect(text_function *function, const char *text, const char *wanted)
{
    struct gni_builder out = {.text = NULL};
    function(text, &out);
    CHECK(!out.has_failed);
    CHECK_TEXT(out.text != NULL ? out.text : "", wanted);
    gni_builder_deinit(&out);
}

static void comments_and_spaces_go(void)
{
    expect(gni_text_decide,
           "/* of several\n   lines */ int a; // and one\n"
           "\n"
           "    int   b  =  c; /* behind */\n"
           "        \"a  /* string */\"  '\\'' \"\\\"//\"\n",
           " int a;\n"
           " int b = c;\n"
           " \"a  /* string */\" '\\'' \"\\\"//\"\n");
    expect(gni_text_decide, "a /* that does not end", "a\n");
    expect(gni_text_decide, "", "");
}

static void conditions_on_the_texts_macros_are_decided(void)
{
    expect(gni_text_decide,
           "#define A\n#define B 2\n#define C (B)\n"
           "#ifdef A\n1\n#else\n2\n#endif\n"
           "#ifndef A\n3\n#elif B == 2 && !defined(D)\n4\n#elif 1\n5\n#else\n6\n#endif\n"
           "#if C > 2 || C >= 2\n7\n#endif\n"
           "#if C < 2\n8\n#  ifdef A\n9\n#  else\n10\n#  endif\n#else\n11\n#endif\n"
           "#if UNKNOWN\n12\n#elif B != 2\n13\n#endif\n"
           "#undef A\n"
           "#if defined A || (B <= 1)\n14\n#else\n15\n#endif\n",
           "#define A\n#define B 2\n#define C (B)\n1\n4\n7\n11\n#undef A\n15\n");
}

static void conditions_of_the_compiler_stay(void)
{
    expect(gni_text_decide,
           "#ifdef GN_NO_PTX\n1\n#elif __CUDA_ARCH__ >= 900\n2\n#else\n3\n#endif\n"
           "#define A\n"
           "#ifdef B\n4\n#elif __CUDA_ARCH__ < 800\n5\n#ifdef A\n6\n#endif\n#endif\n",
           "#ifdef GN_NO_PTX\n1\n#elif __CUDA_ARCH__ >= 900\n2\n#else\n3\n#endif\n"
           "#define A\n"
           "#if __CUDA_ARCH__ < 800\n5\n6\n#endif\n");
    /* What depends on one of their branches is not known either. */
    expect(gni_text_decide,
           "#ifdef __X\n#define A 1\n#endif\n#ifdef A\n1\n#endif\n#if A\n2\n#endif\n",
           "#ifdef __X\n#define A 1\n#endif\n#ifdef A\n1\n#endif\n#if A\n2\n#endif\n");
    /* Nor is what is no number. */
    expect(gni_text_decide, "#define S ((int)a.shift)\n#if S > 1\n1\n#endif\n",
           "#define S ((int)a.shift)\n#if S > 1\n1\n#endif\n");
    expect(gni_text_decide, "#define F(x) x\n#if F(1)\n1\n#endif\n#define L L\n#if L\n2\n#endif\n",
           "#define F(x) x\n#if F(1)\n1\n#endif\n#define L L\n#if L\n2\n#endif\n");
}

#define KERNEL(body) "extern \"C\" __global__ void k(int *x)\n{\n" body "\n}\n"

static void what_no_kernel_names_goes(void)
{
    expect(gni_text_trim,
           "#define LONG 1\n#define USED(x) \\\n    (inner(x))\n"
           "typedef unsigned unused_type;\ntypedef unsigned word;\n"
           "static int inner(int x) { return x; }\n"
           "static int unused(int x) { return used_by_nobody(x); }\n"
           "static int used_by_nobody(int x) { return x; }\n"
           "enum { FIRST = 1, SECOND };\nenum { THIRD };\n"
           "static __device__ word counters[SECOND];\n"
           "static __device__ word others[SECOND];\n"
           "static const char text[] = {\"};{\"};\n" KERNEL(" x[0] = USED(1) + counters[0];"),
           "#define USED(x) \\\n (inner(x))\n"
           "typedef unsigned word;\n"
           "static int inner(int x) { return x; }\n"
           "enum { FIRST = 1, SECOND };\n"
           "static __device__ word counters[SECOND];\n" KERNEL(" x[0] = USED(1) + counters[0];"));
    expect(gni_text_trim,
           "typedef struct {\n int a;\n} pair;\nstruct other {\n int b;\n};\n" KERNEL(" pair p;"),
           "typedef struct {\n int a;\n} pair;\n" KERNEL(" pair p;"));
    expect(gni_text_trim, "static int nobody(int x) { return x; }\n", "");
}

static void overloads_and_specializations_follow_their_types(void)
{
    const char *text =
        "struct half {\n int bits;\n};\nstruct other {\n int bits;\n};\n"
        "typedef int place;\n"
        "F float number(half x) { return x.bits; }\n"
        "F float number(other x) { return x.bits; }\n"
        "F float number(float x) { return x; }\n"
        "template <class T> struct make {\n static F T from(float x);\n};\n"
        "template <> struct make<half> : base<half, int> {\n};\n"
        "template <> struct make<other> {\n};\n"
        "template <class T, bool B = (sizeof(T) < 4)> F T load(typename one<T>::type x)\n"
        "{\n return x;\n}\n"
        "template <> F half load<half>(int x) { return half{x}; }\n"
        "template <> F other load<other>(int x) { return other{x}; }\n"
        "F int only(place x) { return x; }\n";
    char all[4096];
    snprintf(all, sizeof all, "%s%s", text,
             KERNEL(" x[0] = number(load<half>(x[1])) + only(2); make<half> m;"));
    expect(gni_text_trim, all,
           "struct half {\n int bits;\n};\n"
           "typedef int place;\n"
           "F float number(half x) { return x.bits; }\n"
           "F float number(float x) { return x; }\n"
           "template <class T> struct make {\n static F T from(float x);\n};\n"
           "template <> struct make<half> : base<half, int> {\n};\n"
           "template <class T, bool B = (sizeof(T) < 4)> F T load(typename one<T>::type x)\n"
           "{\n return x;\n}\n"
           "template <> F half load<half>(int x) { return half{x}; }\n"
           "F int only(place x) { return x; }\n" KERNEL(
               " x[0] = number(load<half>(x[1])) + only(2); make<half> m;"));
}

static void conditions_stay_around_what_is_kept(void)
{
    expect(gni_text_trim,
           "#ifdef GN_NO_PTX\nint a() { return 1; }\nint b() { return 1; }\n"
           "#else\nint a() { return 2; }\n#ifdef __Y\nint b() { return 2; }\n#endif\n#endif\n"
           "#ifdef __Z\nint b() { return 3; }\n#else\n#define ONLY 1\n#endif\n" KERNEL(" a();"),
           "#ifdef GN_NO_PTX\nint a() { return 1; }\n"
           "#else\nint a() { return 2; }\n#endif\n" KERNEL(" a();"));
    expect(gni_text_trim,
           "#ifdef __X\n#ifdef __Y\nint a() { return 1; }\n#endif\nint b() { return 1; "
           "}\n#endif\n" KERNEL(" a();"),
           "#ifdef __X\n#ifdef __Y\nint a() { return 1; }\n#endif\n#endif\n" KERNEL(" a();"));
}

static void texts_that_do_not_end_are_read(void)
{
    static const char *const texts[] = {
        "struct a {",
        "template <class",
        "#if",
        "#define",
        "typedef",
        "int f(",
        "enum {",
        "\"no end",
        "'",
        "#",
        "(",
        "template <> ",
        "}",
        ");",
        "#ifdef __X\n",
        "#define A \\",
        ">",
        "a<b",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct gni_builder out = {.text = NULL};
        gni_text_trim(texts[i], &out);
        CHECK(!out.has_failed);
        gni_builder_deinit(&out);
    }
}

static void too_much_is_a_failure(void)
{
    struct gni_builder text = {.text = NULL}, out = {.text = NULL};
    for (int i = 0; i < 600; i++)
        gni_builder_print(&text, "#define M%d %d\n", i, i);
    gni_text_decide(text.text, &out);
    CHECK(out.has_failed);
    gni_builder_deinit(&text);
    gni_builder_deinit(&out);
    for (int i = 0; i < 40; i++)
        gni_builder_print(&text, "#if 1\n");
    gni_text_decide(text.text, &out);
    CHECK(out.has_failed);
    gni_builder_deinit(&text);
    gni_builder_deinit(&out);
}

static void memory_that_runs_out_is_said(void)
{
    size_t before = gni_host_live_count();
    for (long nth = 1;; nth++) {
        struct gni_builder out = {.text = NULL};
        gni_host_fail_after(nth);
        gni_text_trim("#define A 1\nint f() { return A; }\n" KERNEL(" f();"), &out);
        gni_host_fail_after(-1);
        bool has_failed = out.has_failed;
        if (!has_failed)
            CHECK_TEXT(out.text, "#define A 1\nint f() { return A; }\n" KERNEL(" f();"));
        gni_builder_deinit(&out);
        CHECK_U64(gni_host_live_count(), before);
        if (!has_failed)
            break;
    }
}

int main(void)
{
    RUN(comments_and_spaces_go);
    RUN(conditions_on_the_texts_macros_are_decided);
    RUN(conditions_of_the_compiler_stay);
    RUN(what_no_kernel_names_goes);
    RUN(overloads_and_specializations_follow_their_types);
    RUN(conditions_stay_around_what_is_kept);
    RUN(texts_that_do_not_end_are_read);
    RUN(too_much_is_a_failure);
    RUN(memory_that_runs_out_is_said);
    return check_result();
}
