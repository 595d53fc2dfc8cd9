/*
 * source.c: see source.h.
 *
 *   token    a word, a number, a string or one punctuation character, with its place in the text
 *   reader   where the reading stands, and what it knows: open braces with the namespaces among
 *            them, and whether the declaration at hand began with `template`
 */
#include "source.h"
#include "vocabulary_text.h"

#include <stdlib.h>
#include <string.h>

enum token_kind {
    TOKEN_END,
    TOKEN_WORD,
    TOKEN_NUMBER,
    TOKEN_STRING,
    TOKEN_SIGN,
};

struct token {
    enum token_kind kind;
    const char *begin, *end;
};

enum {
    SCOPE_MAX = 256,
    SCOPE_PLAIN = -1,
};

struct reader {
    const char *at;
    bool reads_directives; /* gives a directive's words as tokens instead of skipping its line */
    bool is_template;
    int depth;
    int scopes[SCOPE_MAX]; /* length of `path` inside each open namespace, or SCOPE_PLAIN */
    struct sim_text path;  /* "outer::inner::" */
};

/* ---- Tokens ---- */

static bool is_word_begin(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static const char *line_skip(const char *at)
{
    for (; *at != '\0' && *at != '\n'; at++) {
        if (at[0] == '\\' && at[1] == '\n')
            at++;
        else if (at[0] == '/' && at[1] == '*') {
            const char *close = strstr(at + 2, "*/");
            if (close == NULL)
                return at + strlen(at);
            at = close + 1;
        }
    }
    return at;
}

static const char *quoted_skip(const char *at)
{
    char quote = *at++;
    for (; *at != '\0' && *at != quote && *at != '\n'; at++)
        if (at[0] == '\\' && at[1] != '\0')
            at++;
    return *at == quote ? at + 1 : at;
}

/* R"tag( ... )tag" */
static const char *raw_skip(const char *at)
{
    const char *open = strchr(at, '(');
    size_t length = open != NULL ? (size_t)(open - (at + 2)) : 17;
    if (length > 16)
        return at + 1;
    char close[20] = ")";
    memcpy(close + 1, at + 2, length);
    close[length + 1] = '"';
    const char *end = strstr(open, close);
    return end != NULL ? end + length + 2 : at + strlen(at);
}

/* Skips white space, comments and, unless they are wanted, directives. */
static const char *space_skip(const char *at, bool reads_directives)
{
    for (;;) {
        if (*at == ' ' || (*at >= '\t' && *at <= '\r')) {
            at++;
        } else if (at[0] == '\\' && at[1] == '\n') {
            at += 2;
        } else if (at[0] == '/' && at[1] == '/') {
            at = line_skip(at);
        } else if (at[0] == '/' && at[1] == '*') {
            const char *close = strstr(at + 2, "*/");
            at = close != NULL ? close + 2 : at + strlen(at);
        } else if (*at == '#' && !reads_directives) {
            at = line_skip(at);
        } else {
            return at;
        }
    }
}

static struct token token_next(struct reader *reader)
{
    const char *at = space_skip(reader->at, reader->reads_directives);
    struct token token = {.kind = TOKEN_SIGN, .begin = at};
    if (*at == '\0') {
        token.kind = TOKEN_END;
    } else if (at[0] == 'R' && at[1] == '"') {
        token.kind = TOKEN_STRING;
        at = raw_skip(at);
    } else if (is_word_begin(*at)) {
        token.kind = TOKEN_WORD;
        while (is_word_begin(*at) || is_digit(*at))
            at++;
    } else if (is_digit(*at)) {
        token.kind = TOKEN_NUMBER; /* digit separators too: 1'000 opens no character */
        while (is_word_begin(*at) || is_digit(*at) || *at == '.' ||
               (*at == '\'' && (is_word_begin(at[1]) || is_digit(at[1]))))
            at++;
    } else if (*at == '"' || *at == '\'') {
        token.kind = TOKEN_STRING;
        at = quoted_skip(at);
    } else {
        at++;
    }
    token.end = reader->at = at;
    return token;
}

static bool token_is(struct token token, const char *text)
{
    size_t length = strlen(text);
    return (size_t)(token.end - token.begin) == length && memcmp(token.begin, text, length) == 0 &&
           token.kind != TOKEN_STRING;
}

/* After "(": skips to behind the matching ")", and gives the text between. */
static struct token parentheses_skip(struct reader *reader)
{
    struct token inside = {.kind = TOKEN_WORD, .begin = reader->at, .end = reader->at};
    for (int depth = 1; depth > 0;) {
        struct token token = token_next(reader);
        if (token.kind == TOKEN_END)
            break;
        if (token_is(token, "("))
            depth++;
        else if (token_is(token, ")"))
            depth--;
        inside.end = token.begin;
    }
    return inside;
}

/* ---- Kernels ---- */

/* After `namespace`: the name joins the path, and the brace opens it. */
static void namespace_enter(struct reader *reader)
{
    size_t length = reader->path.length;
    for (;;) {
        struct token token = token_next(reader);
        if (token_is(token, "{"))
            break;
        if (token.kind == TOKEN_END || token_is(token, ";") || token_is(token, "=")) {
            reader->path.length = length; /* an alias */
            return;
        }
        if (token.kind == TOKEN_WORD && !token_is(token, "inline"))
            sim_text_print(&reader->path, "%.*s::", (int)(token.end - token.begin), token.begin);
    }
    if (reader->depth < SCOPE_MAX)
        reader->scopes[reader->depth] = (int)length;
    reader->depth++;
    reader->is_template = false;
}

static void scope_open(struct reader *reader)
{
    if (reader->depth < SCOPE_MAX)
        reader->scopes[reader->depth] = SCOPE_PLAIN;
    reader->depth++;
}

static void scope_close(struct reader *reader)
{
    if (reader->depth == 0)
        return; /* the compiler will complain */
    reader->depth--;
    int length = reader->depth < SCOPE_MAX ? reader->scopes[reader->depth] : SCOPE_PLAIN;
    if (length != SCOPE_PLAIN)
        reader->path.length = (size_t)length;
}

/* After `__global__`: one row of the table if this is the body of a kernel that is no template. */
static void kernel_write(struct reader *reader, struct sim_text *table)
{
    struct token name = {0}, bounds = {0}, token;
    for (token = token_next(reader); !token_is(token, "("); token = token_next(reader)) {
        if (token.kind == TOKEN_END || token_is(token, ";") || token_is(token, "{"))
            return;
        bool is_bounds = token_is(token, "__launch_bounds__");
        if (is_bounds || token_is(token, "__cluster_dims__") || token_is(token, "__maxnreg__") ||
            token_is(token, "__attribute__")) {
            token_next(reader); /* "(" */
            struct token inside = parentheses_skip(reader);
            if (is_bounds)
                bounds = inside;
        } else if (token.kind == TOKEN_WORD) {
            name = token;
        }
    }
    parentheses_skip(reader);
    do
        token = token_next(reader);
    while (token.kind == TOKEN_WORD);
    if (!token_is(token, "{"))
        return;
    if (!reader->is_template && name.begin != NULL) {
        int path = (int)reader->path.length, length = (int)(name.end - name.begin);
        const char *prefix = path > 0 ? reader->path.data : "";
        sim_text_print(table, "GN_SIM_ENTRY(\"%.*s%.*s\", ", path, prefix, length, name.begin);
        if (bounds.begin != NULL)
            sim_text_print(table, "gn_sim_first(%.*s)", (int)(bounds.end - bounds.begin),
                           bounds.begin);
        else
            sim_text_print(table, "0");
        sim_text_print(table, ", %.*s%.*s),\n", path, prefix, length, name.begin);
    }
    scope_open(reader);
}

static void kernels_write(const char *text, struct sim_text *table)
{
    struct reader reader = {.at = text};
    for (;;) {
        struct token token = token_next(&reader);
        if (token.kind == TOKEN_END)
            break;
        if (token_is(token, "__global__")) {
            kernel_write(&reader, table);
            reader.is_template = false;
        } else if (token_is(token, "namespace")) {
            namespace_enter(&reader);
        } else if (token_is(token, "template")) {
            reader.is_template = true;
        } else if (token_is(token, "{")) {
            scope_open(&reader);
            reader.is_template = false;
        } else if (token_is(token, "}")) {
            scope_close(&reader);
            reader.is_template = false;
        } else if (token_is(token, ";")) {
            reader.is_template = false;
        }
    }
    table->has_failed |= reader.path.has_failed;
    sim_text_deinit(&reader.path);
}

bool sim_source_needs_preprocessor(const char *text)
{
    struct reader reader = {.at = text, .reads_directives = true};
    int conditions = 0;
    for (;;) {
        struct token token = token_next(&reader);
        if (token.kind == TOKEN_END)
            return false;
        if (token_is(token, "__global__") && conditions > 0)
            return true;
        if (!token_is(token, "#"))
            continue;
        const char *end = line_skip(reader.at);
        token = token_next(&reader);
        if (token_is(token, "include"))
            return true;
        if (token_is(token, "endif"))
            conditions--;
        else if (token_is(token, "if") || token_is(token, "ifdef") || token_is(token, "ifndef"))
            conditions++;
        while (token_is(token, "define") && reader.at < end)
            if (token_is(token_next(&reader), "__global__"))
                return true;
        if (reader.at < end)
            reader.at = end;
    }
}

/* ---- Shared memory ---- */

/* Copies what lies between, without the words that are dropped. */
struct copier {
    const char *from; /* everything before it is written */
    struct sim_text *to;
};

static void copy_until(struct copier *copier, const char *end)
{
    sim_text_add(copier->to, copier->from, (size_t)(end - copier->from));
    copier->from = end;
}

static void copy_blank(struct copier *copier, struct token token)
{
    copy_until(copier, token.begin);
    sim_text_print(copier->to, "%*s", (int)(token.end - token.begin), "");
    copier->from = token.end;
}

/*
 * After `extern`: if `__shared__` comes among the next words, the array gets the address of the
 * dynamic shared memory. A macro's body ends with its line.
 */
static void extern_rewrite(struct reader *reader, struct copier *copier)
{
    struct reader ahead = *reader;
    const char *line_end = line_skip(reader->at);
    struct token shared = {0}, last = {0};
    for (;;) {
        struct reader before = ahead;
        struct token token = token_next(&ahead);
        bool is_past_macro = last.begin != NULL && token_is(last, "]") && token.begin > line_end;
        if (token.kind == TOKEN_END || token.kind == TOKEN_STRING || token_is(token, ";") ||
            token_is(token, "{") || token_is(token, ",") || is_past_macro) {
            ahead = before;
            break;
        }
        if (token_is(token, "__shared__"))
            shared = token;
        last = token;
    }
    if (shared.begin == NULL || last.begin == NULL)
        return;
    copy_blank(copier, shared);
    copy_until(copier, last.end);
    sim_text_print(copier->to, " __asm__(\"gn_sim_dynamic_shared\")");
    *reader = ahead;
}

static void program_write(const char *text, struct sim_text *unit)
{
    struct reader reader = {.at = text, .reads_directives = true};
    struct copier copier = {.from = text, .to = unit};
    struct token last = {0};
    for (;;) {
        struct token token = token_next(&reader);
        if (token.kind == TOKEN_END)
            break;
        if (token_is(token, "extern"))
            extern_rewrite(&reader, &copier);
        else if (token_is(token, "__shared__") && last.begin != NULL && token_is(last, "static"))
            copy_blank(&copier, last);
        last = token;
    }
    copy_until(&copier, text + strlen(text));
}

/* ---- The whole ---- */

static void line_write(struct sim_text *unit, const char *name)
{
    sim_text_print(unit, "\n#line 1 \"");
    for (; *name != '\0'; name++) {
        if (*name == '"' || *name == '\\')
            sim_text_add(unit, "\\", 1);
        sim_text_add(unit, *name == '\n' ? " " : name, 1);
    }
    sim_text_print(unit, "\"\n");
}

static void expression_write(struct sim_text *unit, const char *expression)
{
    sim_text_print(unit, "GN_SIM_ENTRY(\"");
    for (const char *at = expression; *at != '\0'; at++) {
        if (*at == '"' || *at == '\\')
            sim_text_add(unit, "\\", 1);
        sim_text_add(unit, at, 1);
    }
    while (*expression == ' ' || *expression == '&')
        expression++;
    sim_text_print(unit, "\", 0, %s),\n", expression);
}

void sim_source_write_alone(const struct sim_source *source, struct sim_text *unit)
{
    line_write(unit, source->name);
    sim_text_print(unit, "%s", source->text);
}

void sim_source_write(const struct sim_source *source, struct sim_text *unit)
{
    sim_text_add(unit, sim_vocabulary_begin, sim_vocabulary_nbytes());
    line_write(unit, source->name);
    program_write(source->text, unit);
    line_write(unit, SIM_SOURCE_TABLE_NAME);
    sim_text_print(unit, "static const struct gn_sim_entry gn_sim_entries[] = {\n");
    kernels_write(source->text, unit);
    for (size_t i = 0; i < source->expression_count; i++)
        expression_write(unit, source->expressions[i]);
    sim_text_print(
        unit, "{0, 0, 0, 0, 0, 0, 0}};\n"
              "extern \"C\" __attribute__((visibility(\"default\"), used))\n"
              "const struct gn_sim_module gn_sim_module = {GN_SIM_BRIDGE_VERSION, GN_SIM_CHECKS,\n"
              "    &gn_sim_bridge_now, gn_sim_entries,\n"
              "    sizeof gn_sim_entries / sizeof *gn_sim_entries - 1,\n"
              "    gn_sim_dynamic_bytes};\n");
}
