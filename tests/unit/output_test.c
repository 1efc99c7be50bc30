/* SPDX-License-Identifier: MIT
 *
 * Outputs: a name appears whole or not at all, and nothing is lost by accident. */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/output.h"

static char directory[64];
static char path[128];

static void make_directory(void)
{
    strcpy(directory, "/tmp/unfrag-output-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(directory));
    snprintf(path, sizeof path, "%s/target.bin", directory);
}

static void remove_directory(void)
{
    char command[100];
    snprintf(command, sizeof command, "rm -rf '%s'", directory);
    ck_assert_int_eq(system(command), 0);
}

static int count_files(void)
{
    DIR *open_directory = opendir(directory);
    ck_assert_ptr_nonnull(open_directory);
    int count = 0;
    for (struct dirent *entry; (entry = readdir(open_directory)) != NULL;) {
        count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
    }
    closedir(open_directory);
    return count;
}

static void write_file(const char *name, const char *text)
{
    FILE *stream = fopen(name, "wb");
    ck_assert_ptr_nonnull(stream);
    fputs(text, stream);
    ck_assert_int_eq(fclose(stream), 0);
}

static void expect_content(const char *name, const char *text)
{
    char content[64] = "";
    FILE *stream = fopen(name, "rb");
    ck_assert_msg(stream != NULL, "%s: %s", name, strerror(errno));
    size_t length = fread(content, 1, sizeof content - 1, stream);
    content[length] = '\0';
    fclose(stream);
    ck_assert_str_eq(content, text);
}

START_TEST(the_name_appears_at_commit)
{
    uf_output output;
    ck_assert_int_eq(uf__output_open(&output, path, false, NULL), UF_OK);
    fputs("whole", output.stream);
    fflush(output.stream);
    ck_assert_int_ne(access(path, F_OK), 0);
    ck_assert_int_eq(uf__output_commit(&output, NULL), UF_OK);
    expect_content(path, "whole");
    ck_assert_int_eq(count_files(), 1);
    ck_assert_ptr_null(output.stream);
}
END_TEST

START_TEST(an_abandoned_output_leaves_nothing)
{
    uf_output output;
    ck_assert_int_eq(uf__output_open(&output, path, false, NULL), UF_OK);
    fputs("half", output.stream);
    uf__output_abandon(&output);
    uf__output_abandon(&output);
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(a_killed_process_leaves_nothing)
{
    pid_t child = fork();
    if (child == 0) {
        uf_output output;
        if (uf__output_open(&output, path, false, NULL) == UF_OK) {
            fputs("half", output.stream);
            fflush(output.stream);
            raise(SIGKILL);
        }
        _exit(1);
    }
    int status;
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_eq(count_files(), 0);
}
END_TEST

START_TEST(an_existing_file_is_kept_without_force)
{
    write_file(path, "old");
    uf_output output;
    uf_error error = {.status = UF_OK};
    ck_assert_int_eq(uf__output_open(&output, path, false, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, "exists") != NULL, "%s", error.text);
    expect_content(path, "old");
}
END_TEST

START_TEST(a_file_that_appears_meanwhile_is_kept_without_force)
{
    uf_output output;
    uf_error error = {.status = UF_OK};
    ck_assert_int_eq(uf__output_open(&output, path, false, NULL), UF_OK);
    fputs("new", output.stream);
    write_file(path, "other");
    ck_assert_int_eq(uf__output_commit(&output, &error), UF_ERROR_INVALID_ARGUMENT);
    expect_content(path, "other");
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(force_replaces_a_file_at_commit_and_keeps_its_permissions)
{
    write_file(path, "old");
    ck_assert_int_eq(chmod(path, 0640), 0);
    uf_output output;
    ck_assert_int_eq(uf__output_open(&output, path, true, NULL), UF_OK);
    fputs("new", output.stream);
    fflush(output.stream);
    expect_content(path, "old");
    ck_assert_int_eq(uf__output_commit(&output, NULL), UF_OK);
    expect_content(path, "new");
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0640);
    ck_assert_int_eq(count_files(), 1);
}
END_TEST

START_TEST(a_new_file_has_the_permissions_of_the_umask)
{
    mode_t old = umask(027);
    uf_output output;
    ck_assert_int_eq(uf__output_open(&output, path, true, NULL), UF_OK);
    ck_assert_int_eq(uf__output_commit(&output, NULL), UF_OK);
    umask(old);
    struct stat status;
    ck_assert_int_eq(stat(path, &status), 0);
    ck_assert_int_eq(status.st_mode & 0777, 0640);
}
END_TEST

START_TEST(force_through_a_symbolic_link_replaces_its_target)
{
    char link_path[160];
    snprintf(link_path, sizeof link_path, "%s/link", directory);
    write_file(path, "old");
    ck_assert_int_eq(symlink("target.bin", link_path), 0);
    uf_output output;
    ck_assert_int_eq(uf__output_open(&output, link_path, true, NULL), UF_OK);
    fputs("new", output.stream);
    ck_assert_int_eq(uf__output_commit(&output, NULL), UF_OK);
    expect_content(path, "new");
    struct stat status;
    ck_assert_int_eq(lstat(link_path, &status), 0);
    ck_assert(S_ISLNK(status.st_mode));
}
END_TEST

START_TEST(a_device_is_written_directly_and_stays)
{
    uf_output output;
    ck_assert_int_eq(uf__output_open(&output, "/dev/null", false, NULL), UF_OK);
    fputs("gone", output.stream);
    ck_assert_int_eq(uf__output_commit(&output, NULL), UF_OK);
    struct stat status;
    ck_assert_int_eq(stat("/dev/null", &status), 0);
    ck_assert(S_ISCHR(status.st_mode));
}
END_TEST

START_TEST(a_full_disk_is_an_io_error)
{
    uf_output output;
    uf_error error = {.status = UF_OK};
    ck_assert_int_eq(uf__output_open(&output, "/dev/full", false, NULL), UF_OK);
    fputs("too much", output.stream);
    ck_assert_int_eq(uf__output_commit(&output, &error), UF_ERROR_IO);
    ck_assert_msg(strstr(error.text, "No space") != NULL, "%s", error.text);
}
END_TEST

START_TEST(a_directory_and_an_empty_name_are_refused)
{
    uf_output output;
    uf_error error = {.status = UF_OK};
    ck_assert_int_eq(uf__output_open(&output, directory, true, &error), UF_ERROR_INVALID_ARGUMENT);
    ck_assert_msg(strstr(error.text, "is a directory") != NULL, "%s", error.text);
    ck_assert_int_eq(uf__output_open(&output, "", true, &error), UF_ERROR_INVALID_ARGUMENT);
}
END_TEST

START_TEST(a_missing_directory_is_an_io_error)
{
    uf_output output;
    uf_error error = {.status = UF_OK};
    strcat(directory, "/none");
    snprintf(path, sizeof path, "%s/target.bin", directory);
    ck_assert_int_eq(uf__output_open(&output, path, false, &error), UF_ERROR_IO);
    ck_assert_msg(strstr(error.text, "No such file") != NULL, "%s", error.text);
    directory[strlen(directory) - 5] = '\0';
}
END_TEST

START_TEST(a_dash_is_standard_output_and_stays_open)
{
    uf_output output;
    ck_assert_int_eq(uf__output_open(&output, "-", false, NULL), UF_OK);
    ck_assert_ptr_eq(output.stream, stdout);
    ck_assert_int_eq(uf__output_commit(&output, NULL), UF_OK);
    ck_assert_int_ge(fileno(stdout), 0);
    ck_assert_int_eq(fflush(stdout), 0);
}
END_TEST

int main(void)
{
    Suite *suite = suite_create("output");
    TCase *tests = tcase_create("output");
    tcase_add_checked_fixture(tests, make_directory, remove_directory);
    tcase_add_test(tests, the_name_appears_at_commit);
    tcase_add_test(tests, an_abandoned_output_leaves_nothing);
    tcase_add_test(tests, a_killed_process_leaves_nothing);
    tcase_add_test(tests, an_existing_file_is_kept_without_force);
    tcase_add_test(tests, a_file_that_appears_meanwhile_is_kept_without_force);
    tcase_add_test(tests, force_replaces_a_file_at_commit_and_keeps_its_permissions);
    tcase_add_test(tests, a_new_file_has_the_permissions_of_the_umask);
    tcase_add_test(tests, force_through_a_symbolic_link_replaces_its_target);
    tcase_add_test(tests, a_device_is_written_directly_and_stays);
    tcase_add_test(tests, a_full_disk_is_an_io_error);
    tcase_add_test(tests, a_directory_and_an_empty_name_are_refused);
    tcase_add_test(tests, a_missing_directory_is_an_io_error);
    tcase_add_test(tests, a_dash_is_standard_output_and_stays_open);
    suite_add_tcase(suite, tests);
    SRunner *runner = srunner_create(suite);
    srunner_run_all(runner, CK_NORMAL);
    int failed_count = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed_count == 0 ? 0 : 1;
}
