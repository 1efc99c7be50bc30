/* SPDX-License-Identifier: MIT
 *
 * Requests as they come, and as they should not; addresses. What a connection sees is tested from
 * outside, by tests/monitor/export.py. */
#include "monitor/http.h"

#include <string.h>
#include <unistd.h>

#include "suite.h"

START_TEST(requests_are_answered_by_what_they_say)
{
    static const struct {
        const char *head;
        int code;
        const char *path;
        bool is_head_only;
    } cases[] = {
        {"GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n", 200, "/metrics", false},
        {"GET /metrics?x=1 HTTP/1.0\r\n\r\n", 200, "/metrics", false},
        {"HEAD / HTTP/1.1\r\n\r\n", 200, "/", true},
        {"POST /metrics HTTP/1.1\r\n\r\n", 405, "", false},
        {"get /metrics HTTP/1.1\r\n\r\n", 405, "", false},
        {"GETT / HTTP/1.1\r\n\r\n", 405, "", false},
        {"GET metrics HTTP/1.1\r\n\r\n", 400, "", false},
        {"GET http://a/metrics HTTP/1.1\r\n\r\n", 400, "", false},
        {"GET /\r\n\r\n", 400, "", false},
        {"GET / HTTP/2.0\r\n\r\n", 505, "", false},
        {"GET / HTTP/1.7\r\n\r\n", 400, "", false},
        {"GET / HTTP/1.1x\r\n\r\n", 400, "", false},
        {"GET / FTP/1.1\r\n\r\n", 400, "", false},
        {" / HTTP/1.1\r\n\r\n", 400, "", false},
        {"\r\n\r\n", 400, "", false},
        {"", 400, "", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char path[256] = "";
        bool is_head_only = false;
        ck_assert_msg(uf__http_parse(cases[i].head, path, &is_head_only) == cases[i].code, "%s",
                      cases[i].head);
        if (cases[i].code == 200) {
            ck_assert_str_eq(path, cases[i].path);
            ck_assert(is_head_only == cases[i].is_head_only);
        }
    }
}
END_TEST

START_TEST(a_path_too_long_is_not_found)
{
    char head[400] = "GET /", path[256];
    bool is_head_only;
    memset(head + 5, 'a', 255);
    strcpy(head + 260, " HTTP/1.1\r\n\r\n");
    ck_assert_int_eq(uf__http_parse(head, path, &is_head_only), 404);
}
END_TEST

START_TEST(addresses_default_to_this_machine)
{
    static const struct {
        const char *address, *begins;
    } cases[] = {{"0", "127.0.0.1:"},
                 {":0", "127.0.0.1:"},
                 {"localhost:0", "127.0.0.1:"},
                 {"127.0.0.1:0", "127.0.0.1:"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char bound[UF_HTTP_ADDRESS_CAPACITY];
        int listener = -1;
        ck_assert_int_eq(uf__http_listen(cases[i].address, &listener, bound, NULL), UF_OK);
        ck_assert_msg(strncmp(bound, cases[i].begins, strlen(cases[i].begins)) == 0, "%s", bound);
        close(listener);
    }
}
END_TEST

START_TEST(what_is_no_address_is_refused)
{
    static const char *const cases[] = {
        "",       "x",         "127.0.0.1", "127.0.0.1:", "a.b:80", ":65536",  "127.0.0.1:x",
        "::1:80", "[::1:9000", "[::1]9000", ":-1",        ":+1",    ":123456", "1.2.3:80x"};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char bound[UF_HTTP_ADDRESS_CAPACITY];
        int listener = -1;
        ck_assert_msg(uf__http_listen(cases[i], &listener, bound, NULL) ==
                          UF_ERROR_INVALID_ARGUMENT,
                      "%s", cases[i]);
    }
}
END_TEST

START_TEST(a_port_that_is_taken_is_an_io_error)
{
    char bound[UF_HTTP_ADDRESS_CAPACITY], again[UF_HTTP_ADDRESS_CAPACITY];
    int listener = -1, other = -1;
    uf_error error = {0};
    ck_assert_int_eq(uf__http_listen(":0", &listener, bound, &error), UF_OK);
    ck_assert_int_eq(uf__http_listen(bound, &other, again, &error), UF_ERROR_IO);
    ck_assert_ptr_nonnull(strstr(error.text, "another port"));
    close(listener);
}
END_TEST

int main(void)
{
    return suite_run("http", (const TTest *const[]){
                                 requests_are_answered_by_what_they_say,
                                 a_path_too_long_is_not_found,
                                 addresses_default_to_this_machine,
                                 what_is_no_address_is_refused,
                                 a_port_that_is_taken_is_an_io_error,
                                 NULL,
                             });
}
