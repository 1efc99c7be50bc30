/* SPDX-License-Identifier: MIT
 *
 * Python's tokens. */
#include "advise/scan_python_lex.h"

#include <string.h>

#include "suite.h"

static uf_findings texts;
static uf_python_tokens tokens;

static void lex(const char *source)
{
    uf__python_lex_fini(&tokens);
    uf__python_lex(source, &tokens, &texts);
    ck_assert_uint_gt(tokens.count, 0);
    ck_assert_int_eq(tokens.items[tokens.count - 1].kind, UF_PYTHON_END);
}

static void expect(size_t index, uf_python_kind kind, const char *text)
{
    ck_assert_uint_lt(index, tokens.count);
    ck_assert_int_eq(tokens.items[index].kind, kind);
    ck_assert_str_eq(tokens.items[index].text, text);
}

START_TEST(comments_are_no_tokens_and_lines_end)
{
    lex("x = 1 # y = 2\n\n# z\ny **= 0x1F\n");
    expect(0, UF_PYTHON_NAME, "x");
    expect(2, UF_PYTHON_NUMBER, "1");
    expect(3, UF_PYTHON_LINE_END, "");
    expect(4, UF_PYTHON_NAME, "y");
    ck_assert_uint_eq(tokens.items[4].line, 4);
    expect(5, UF_PYTHON_OPERATOR, "**=");
    expect(6, UF_PYTHON_NUMBER, "0x1F");
}
END_TEST

START_TEST(strings_have_their_content)
{
    lex("'a\\'b' r\"\\n\" '''c\n\"d\"''' b'e' f\"{x}\" f'{{y}}' \"\\x41\"");
    expect(0, UF_PYTHON_STRING, "a'b");
    expect(1, UF_PYTHON_STRING, "\\n");
    expect(2, UF_PYTHON_STRING, "c\n\"d\"");
    ck_assert(tokens.items[3].is_bytes);
    ck_assert_uint_eq(tokens.items[3].line, 2);
    ck_assert(tokens.items[4].is_computed);
    expect(5, UF_PYTHON_STRING, "{y}");
    ck_assert(!tokens.items[5].is_computed);
}
END_TEST

START_TEST(brackets_and_backslashes_join_lines)
{
    lex("f(1,\n  2)\nif x:\n    y = \\\n  3\n");
    size_t ends = 0;
    for (size_t i = 0; i < tokens.count; i++) {
        ends += tokens.items[i].kind == UF_PYTHON_LINE_END;
    }
    ck_assert_uint_eq(ends, 3);
    expect(7, UF_PYTHON_NAME, "if");
    ck_assert_uint_eq(tokens.items[7].indent, 0);
    expect(11, UF_PYTHON_NAME, "y");
    ck_assert_uint_eq(tokens.items[11].indent, 4);
}
END_TEST

START_TEST(what_is_not_closed_ends_somewhere)
{
    lex("x = 'abc\ny = 1\n");
    expect(2, UF_PYTHON_STRING, "abc");
    expect(4, UF_PYTHON_NAME, "y");
    lex("'''never closed");
    lex("((((");
    lex("\\");
    lex("'\\");
    lex("");
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {comments_are_no_tokens_and_lines_end, strings_have_their_content,
                                  brackets_and_backslashes_join_lines,
                                  what_is_not_closed_ends_somewhere, NULL};
    int code = suite_run("scan_python_lex", tests);
    uf__python_lex_fini(&tokens);
    uf__findings_fini(&texts);
    return code;
}
