/* SPDX-License-Identifier: MIT
 *
 * Finding Python and its torch: version files as releases wrote them, and made-up interpreters. */
#include "advise/python.h"

#include "unit/folder.h"
#include "unit/suite.h"

static uf_python python;

static void read_version(const char *text)
{
    memset(&python, 0, sizeof python);
    uf__python_read_version(text, &python);
}

START_TEST(version_files_of_all_builds_are_read)
{
    read_version("from typing import Optional\n__all__ = ['__version__', 'debug', 'cuda', 'hip']\n"
                 "__version__ = '2.11.0+cu130'\ndebug = False\n"
                 "cuda: Optional[str] = '13.0'\nhip: Optional[str] = None\n");
    ck_assert_int_eq(python.torch, UF_TORCH_CUDA);
    ck_assert_str_eq(python.torch_version, "2.11.0+cu130");
    ck_assert_str_eq(python.torch_runtime, "13.0");
    read_version("__version__ = '1.10.0'\ndebug = False\ncuda = '10.2'\nhip = None\n");
    ck_assert_int_eq(python.torch, UF_TORCH_CUDA);
    ck_assert_str_eq(python.torch_runtime, "10.2");
    read_version(
        "__version__ = '2.8.0+cpu'\ncuda: Optional[str] = None\nhip: Optional[str] = None");
    ck_assert_int_eq(python.torch, UF_TORCH_CPU);
    read_version("__version__ = \"2.9.1+rocm6.4\"\ncuda: Optional[str] = None\n"
                 "hip: Optional[str] = '6.4.43482'\n");
    ck_assert_int_eq(python.torch, UF_TORCH_HIP);
    ck_assert_str_eq(python.torch_runtime, "6.4.43482");
    read_version("");
    ck_assert_int_eq(python.torch, UF_TORCH_UNKNOWN);
    ck_assert_str_eq(python.torch_version, "");
}
END_TEST

START_TEST(a_driver_fits_a_torch_of_its_major_release)
{
    read_version("cuda = '12.8'\nhip = None\n");
    ck_assert_int_eq(uf__torch_fit(&python, 12080), UF_TORCH_FIT_YES);
    ck_assert_int_eq(uf__torch_fit(&python, 13000), UF_TORCH_FIT_YES);
    ck_assert_int_eq(uf__torch_fit(&python, 12020), UF_TORCH_FIT_MINOR);
    ck_assert_int_eq(uf__torch_fit(&python, 11080), UF_TORCH_FIT_NO);
    ck_assert_int_eq(uf__torch_fit(&python, 0), UF_TORCH_FIT_UNKNOWN);
    read_version("cuda = '10.2'\nhip = None\n");
    ck_assert_int_eq(uf__torch_fit(&python, 10010), UF_TORCH_FIT_NO);
}
END_TEST

START_TEST(a_torch_older_than_the_card_is_told)
{
    read_version("cuda = '12.6'\nhip = None\n");
    ck_assert(!uf__torch_knows_card(&python, 12));
    ck_assert(uf__torch_knows_card(&python, 9));
    ck_assert(uf__torch_knows_card(&python, 99));
}
END_TEST

static void make_python(const char *name, const char *script)
{
    folder_write_text(name, script);
    ck_assert_int_eq(chmod(folder_path(name), 0755), 0);
}

START_TEST(the_first_python_on_path_is_asked_and_torch_found_without_running_it)
{
    char script[512], path[256];
    folder_create();
    snprintf(script, sizeof script, "#!/bin/sh\nprintf '3.12.1\\n%s/empty\\n%s/site\\n'\n", folder,
             folder);
    make_python("second/python", "#!/bin/sh\nexit 1\n");
    make_python("first/python", script);
    folder_write_text("site/torch/version.py",
                      "raise SystemExit('it was executed')\n"
                      "__version__ = '2.9.1'\ncuda = '12.8'\nhip = None\n");
    folder_write_text("site/torch-2.8.0.dist-info/METADATA", "Name: torch\n");
    snprintf(path, sizeof path, "%s/nowhere:%s/first:%s/second", folder, folder, folder);
    uf_python_place place = {.path = path};
    uf__python_find(&place, &python);
    ck_assert_str_eq(python.program, folder_path("first/python"));
    ck_assert_str_eq(python.version, "3.12.1");
    ck_assert_str_eq(python.torch_version, "2.9.1");
    ck_assert_str_eq(python.torch_metadata_version, "2.8.0");
    ck_assert_str_eq(python.torch_folder, folder_path("site/torch"));
    folder_destroy();
}
END_TEST

START_TEST(an_activated_environment_that_path_does_not_reach_is_told)
{
    char path[128];
    folder_create();
    make_python("system/python3", "#!/bin/sh\necho 3.11.2\n");
    make_python("env/bin/python", "#!/bin/sh\necho 3.12.0\n");
    snprintf(path, sizeof path, "%s/system", folder);
    char *environment = strdup(folder_path("env"));
    uf_python_place place = {.path = path, .virtual_env = environment};
    uf__python_find(&place, &python);
    ck_assert_str_eq(python.version, "3.11.2");
    ck_assert(python.is_outside_environment);
    place.path = NULL;
    uf__python_find(&place, &python);
    ck_assert_str_eq(python.version, "3.12.0");
    ck_assert(!python.is_outside_environment);
    free(environment);
    folder_destroy();
}
END_TEST

START_TEST(a_python_that_hangs_or_fails_is_told)
{
    char path[128];
    folder_create();
    make_python("a/python3", "#!/bin/sh\nexec sleep 60\n");
    snprintf(path, sizeof path, "%s/a", folder);
    uf_python_place place = {.path = path, .timeout_ms = 200};
    uf__python_find(&place, &python);
    ck_assert_str_eq(python.failure, "no answer within 200 ms");
    make_python("a/python3", "#!/bin/sh\nexit 3\n");
    place.timeout_ms = 0;
    uf__python_find(&place, &python);
    ck_assert_str_eq(python.failure, "it ended with exit code 3");
    place.path = "";
    uf__python_find(&place, &python);
    ck_assert_str_eq(python.failure, "neither python3 nor python is on PATH");
    folder_destroy();
}
END_TEST

int main(void)
{
    const TTest *const tests[] = {
        version_files_of_all_builds_are_read,
        a_driver_fits_a_torch_of_its_major_release,
        a_torch_older_than_the_card_is_told,
        the_first_python_on_path_is_asked_and_torch_found_without_running_it,
        an_activated_environment_that_path_does_not_reach_is_told,
        a_python_that_hangs_or_fails_is_told,
        NULL};
    return suite_run("python", tests);
}
