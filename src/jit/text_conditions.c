#include "jit/text_conditions.h"

#include "base/host.h"

#include <ctype.h>
#include <string.h>

enum {
    MACROS_MOST = 512,
    LEVELS_MOST = 32, /* of conditional lines in each other */
    DEPTH_MOST = 16,  /* of macros in the values of macros */
};

static const char SPACES[] = "                ";

struct macro {
    struct gni_slice name, value;
    bool is_certain;  /* every compiler meets the definition */
    bool is_function; /* it has arguments */
};

/* What happens to the lines of a branch. */
enum branch {
    BRANCH_TAKEN,   /* they stay, without the condition */
    BRANCH_SOUGHT,  /* they go; a later branch may be taken */
    BRANCH_PASSED,  /* they go, and so do all later branches */
    BRANCH_LEFT,    /* they stay, with the condition */
    BRANCH_OUTSIDE, /* they go: what is around them goes */
};

struct reader {
    struct gni_builder *out;
    struct macro *macros; /* MACROS_MOST of them */
    int macro_count;
    enum branch levels[LEVELS_MOST];
    int level;
};

/* ---- comments --------------------------------------------------------------------------------------- */

/* Behind a comment, a string or a character that begins at `at`; `at` itself if none does. */
static const char *skipped(const char *at)
{
    if (at[0] == '/' && at[1] == '/')
        return at + strcspn(at, "\n");
    if (at[0] == '/' && at[1] == '*') {
        const char *end = strstr(at + 2, "*/");
        return end == NULL ? at + strlen(at) : end + 2;
    }
    if (*at != '"' && *at != '\'')
        return at;
    const char quote = *at++;
    while (*at != quote && *at != '\n' && *at != '\0')
        at += at[0] == '\\' && at[1] != '\0' ? 2 : 1;
    return *at == quote ? at + 1 : at;
}

/* A comment becomes a space. */
static void comments_strip(const char *text, struct gni_builder *out)
{
    const char *begin = text, *at = text;
    while (*at != '\0') {
        const char *behind = skipped(at);
        if (behind == at) {
            at++;
            continue;
        }
        if (*at == '/') {
            gni_builder_add(out, begin, (size_t)(at - begin));
            gni_builder_add(out, " ", 1);
            begin = behind;
        }
        at = behind;
    }
    gni_builder_add(out, begin, (size_t)(at - begin));
}

/* ---- macros ----------------------------------------------------------------------------------------- */

static bool is_word(char letter)
{
    return isalnum((unsigned char)letter) || letter == '_';
}

static size_t word_length(const char *at)
{
    size_t length = 0;
    while (is_word(at[length]))
        length++;
    return length;
}

static struct macro *macro_find(struct reader *reader, struct gni_slice name)
{
    for (int i = reader->macro_count - 1; i >= 0; i--) {
        struct gni_slice known = reader->macros[i].name;
        if (known.length == name.length && memcmp(known.at, name.at, name.length) == 0)
            return &reader->macros[i];
    }
    return NULL;
}

/* Whether the compiler may define a name that the text does not. */
static bool is_compilers(struct gni_slice name)
{
    return (name.length > 2 && memcmp(name.at, "__", 2) == 0) ||
           (name.length > 3 && memcmp(name.at, "GN_", 3) == 0);
}

/* Whether the branch that is read may be one of several that stay. */
static bool is_left(const struct reader *reader)
{
    bool is_any = false;
    for (int i = 0; i < reader->level; i++)
        is_any |= reader->levels[i] == BRANCH_LEFT;
    return is_any;
}

/* `line` begins behind "define". */
static void macro_define(struct reader *reader, struct gni_slice line)
{
    size_t length = word_length(line.at);
    struct gni_slice name = {line.at, length};
    struct macro *macro = macro_find(reader, name);
    if (macro == NULL && reader->macro_count == MACROS_MOST) {
        reader->out->has_failed = true;
        return;
    }
    if (macro == NULL)
        macro = &reader->macros[reader->macro_count++];
    *macro = (struct macro){.name = name,
                            .value = {line.at + length, line.length - length},
                            .is_certain = !is_left(reader),
                            .is_function = line.at[length] == '('};
}

static void macro_undefine(struct reader *reader, struct gni_slice line)
{
    struct macro *macro = macro_find(reader, (struct gni_slice){line.at, word_length(line.at)});
    if (macro == NULL)
        return;
    if (is_left(reader))
        macro->is_certain = false;
    else
        *macro = reader->macros[--reader->macro_count];
}

/* ---- conditions -------------------------------------------------------------------------------------- */

/* An expression, as far as it is read. */
struct expression {
    struct reader *reader;
    const char *at, *end;
    int depth;
    bool is_known;
};

static long expression_or(struct expression *expression);

static void spaces_skip(struct expression *expression)
{
    while (expression->at < expression->end && isspace((unsigned char)*expression->at))
        expression->at++;
}

/* Reads an operator if it is there. */
static bool takes(struct expression *expression, const char *operator)
{
    spaces_skip(expression);
    size_t length = strlen(operator);
    if ((size_t)(expression->end - expression->at) < length ||
        memcmp(expression->at, operator, length) != 0)
        return false;
    expression->at += length;
    return true;
}

static struct gni_slice takes_word(struct expression *expression)
{
    spaces_skip(expression);
    struct gni_slice word = {expression->at, 0};
    while (expression->at < expression->end && is_word(*expression->at))
        expression->at++;
    word.length = (size_t)(expression->at - word.at);
    return word;
}

static long is_defined(struct expression *expression, struct gni_slice name)
{
    const struct macro *macro = macro_find(expression->reader, name);
    expression->is_known &= macro == NULL ? !is_compilers(name) : macro->is_certain;
    return macro != NULL;
}

static long value_of(struct expression *expression, struct gni_slice name)
{
    const struct macro *macro = macro_find(expression->reader, name);
    if (macro == NULL) {
        expression->is_known &= !is_compilers(name);
        return 0;
    }
    if (!macro->is_certain || macro->is_function || expression->depth == DEPTH_MOST) {
        expression->is_known = false;
        return 0;
    }
    struct expression inner = {expression->reader, macro->value.at,
                               macro->value.at + macro->value.length, expression->depth + 1, true};
    long value = expression_or(&inner);
    spaces_skip(&inner);
    expression->is_known &= inner.is_known && inner.at == inner.end;
    return value;
}

static long expression_one(struct expression *expression)
{
    if (takes(expression, "!"))
        return !expression_one(expression);
    if (takes(expression, "(")) {
        long value = expression_or(expression);
        expression->is_known &= takes(expression, ")");
        return value;
    }
    struct gni_slice word = takes_word(expression);
    if (word.length == 0) {
        expression->is_known = false;
        return 0;
    }
    if (gni_slice_is(word, "defined")) {
        bool is_open = takes(expression, "(");
        long value = is_defined(expression, takes_word(expression));
        expression->is_known &= !is_open || takes(expression, ")");
        return value;
    }
    if (!isdigit((unsigned char)*word.at))
        return value_of(expression, word);
    long value = 0;
    for (size_t i = 0; i < word.length; i++) {
        expression->is_known &= isdigit((unsigned char)word.at[i]) && i < 9;
        value = value * 10 + (word.at[i] - '0');
    }
    return value;
}

static long expression_compare(struct expression *expression)
{
    long value = expression_one(expression);
    if (takes(expression, "=="))
        return value == expression_one(expression);
    if (takes(expression, "!="))
        return value != expression_one(expression);
    if (takes(expression, ">="))
        return value >= expression_one(expression);
    if (takes(expression, "<="))
        return value <= expression_one(expression);
    if (takes(expression, ">"))
        return value > expression_one(expression);
    if (takes(expression, "<"))
        return value < expression_one(expression);
    return value;
}

static long expression_and(struct expression *expression)
{
    long value = expression_compare(expression);
    while (takes(expression, "&&"))
        value = (expression_compare(expression) != 0) & (value != 0);
    return value;
}

static long expression_or(struct expression *expression)
{
    long value = expression_and(expression);
    while (takes(expression, "||"))
        value = (expression_and(expression) != 0) | (value != 0);
    return value;
}

/* What becomes of the branch behind a condition. */
static enum branch branch_of(struct reader *reader, struct gni_slice word,
                             struct gni_slice condition)
{
    struct expression expression = {reader, condition.at, condition.at + condition.length, 0, true};
    bool is_definition = gni_slice_is(word, "ifdef") || gni_slice_is(word, "ifndef");
    long value = is_definition ? is_defined(&expression, takes_word(&expression))
                               : expression_or(&expression);
    spaces_skip(&expression);
    if (!expression.is_known || expression.at != expression.end)
        return BRANCH_LEFT;
    return (value != 0) != gni_slice_is(word, "ifndef") ? BRANCH_TAKEN : BRANCH_SOUGHT;
}

/* ---- lines ---------------------------------------------------------------------------------------------- */

static bool is_read(const struct reader *reader)
{
    if (reader->level == 0)
        return true;
    enum branch branch = reader->levels[reader->level - 1];
    return branch == BRANCH_TAKEN || branch == BRANCH_LEFT;
}

/* A line with one space for eight in front of it, and one for several within it. */
static void line_add(struct reader *reader, struct gni_slice line)
{
    const char *at = line.at, *end = line.at + line.length;
    while (end > at && isspace((unsigned char)end[-1]))
        end--;
    if (at == end || !is_read(reader))
        return;
    size_t indentation = strspn(at, " ");
    size_t spaces = (indentation + 7) / 8;
    gni_builder_add(reader->out, SPACES, spaces < sizeof SPACES ? spaces : sizeof SPACES - 1);
    for (at += indentation; at < end;) {
        const char *begin = at;
        while (at < end && !(at[0] == ' ' && at[1] == ' '))
            at = skipped(at) > at ? skipped(at) : at + 1;
        at = at < end ? at : end;
        gni_builder_add(reader->out, begin, (size_t)(at - begin));
        at += strspn(at, " ");
        if (at < end)
            gni_builder_add(reader->out, " ", 1);
    }
    gni_builder_add(reader->out, "\n", 1);
}

static void condition_begin(struct reader *reader, struct gni_slice line, struct gni_slice word,
                            struct gni_slice rest)
{
    if (reader->level == LEVELS_MOST) {
        reader->out->has_failed = true;
        return;
    }
    enum branch branch = is_read(reader) ? branch_of(reader, word, rest) : BRANCH_OUTSIDE;
    reader->levels[reader->level++] = branch;
    if (branch == BRANCH_LEFT)
        line_add(reader, line);
}

static void condition_go_on(struct reader *reader, struct gni_slice line, struct gni_slice word,
                            struct gni_slice rest)
{
    gni_assert(reader->level > 0);
    enum branch *branch = &reader->levels[reader->level - 1];
    if (*branch == BRANCH_LEFT) {
        line_add(reader, line);
    } else if (*branch == BRANCH_TAKEN) {
        *branch = BRANCH_PASSED;
    } else if (*branch == BRANCH_SOUGHT) {
        *branch = gni_slice_is(word, "else") ? BRANCH_TAKEN : branch_of(reader, word, rest);
        if (*branch != BRANCH_LEFT)
            return;
        gni_builder_add(reader->out, "#if ", 4);
        line_add(reader, rest);
    }
}

static void condition_end(struct reader *reader, struct gni_slice line)
{
    gni_assert(reader->level > 0);
    if (reader->levels[reader->level - 1] == BRANCH_LEFT)
        line_add(reader, line);
    reader->level--;
}

/* A line that begins with "#". */
static void directive_read(struct reader *reader, struct gni_slice line)
{
    const char *end = line.at + line.length, *at = memchr(line.at, '#', line.length);
    for (at++; at < end && isblank((unsigned char)*at); at++)
        ;
    struct gni_slice word = {at, word_length(at)};
    for (at += word.length; at < end && isspace((unsigned char)*at); at++)
        ;
    struct gni_slice rest = {at, (size_t)(end - at)};
    if (gni_slice_is(word, "if") || gni_slice_is(word, "ifdef") || gni_slice_is(word, "ifndef")) {
        condition_begin(reader, line, word, rest);
    } else if (gni_slice_is(word, "elif") || gni_slice_is(word, "else")) {
        condition_go_on(reader, line, word, rest);
    } else if (gni_slice_is(word, "endif")) {
        condition_end(reader, line);
    } else {
        line_add(reader, line);
        if (gni_slice_is(word, "define") && is_read(reader))
            macro_define(reader, rest);
        else if (gni_slice_is(word, "undef") && is_read(reader))
            macro_undefine(reader, rest);
    }
}

/* The end of a line, behind those that it goes on with. */
static const char *line_end(const char *at)
{
    const char *end = at + strcspn(at, "\n");
    while (*end == '\n' && end > at && end[-1] == '\\')
        end += 1 + strcspn(end + 1, "\n");
    return end;
}

void gni_text_decide(const char *text, struct gni_builder *out)
{
    struct gni_builder bare = {.text = NULL};
    struct reader reader = {.out = out,
                            .macros = gni_host_alloc(MACROS_MOST * sizeof *reader.macros)};
    comments_strip(text, &bare);
    out->has_failed |= bare.has_failed || reader.macros == NULL;
    for (const char *at = bare.text; !out->has_failed && at != NULL && *at != '\0';) {
        const char *end = line_end(at), *first = at + strspn(at, " \t");
        struct gni_slice line = {at, (size_t)(end - at)};
        if (*first == '#')
            directive_read(&reader, line);
        else
            line_add(&reader, line);
        at = *end == '\n' ? end + 1 : end;
    }
    gni_host_free(reader.macros);
    gni_builder_deinit(&bare);
}
