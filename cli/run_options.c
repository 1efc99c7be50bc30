/* SPDX-License-Identifier: MIT
 *
 * See run_options.h. A settings string is read here with PyTorch's grammar, so that a mistake is
 * told before a program starts. */
#include "run_options.h"

#include <string.h>

#include "alloc/conf.h"
#include "base/error.h"
#include "nearest.h"

static const struct argp_option option_list[] = {
    {"policy", 'p', "POLICY", 0,
     "unfrag (default): pages move instead of memory fragmenting; torch: PyTorch's decisions on "
     "unfrag's core; stock: PyTorch's own allocator, watched",
     0},
    {"limit", 'l', "SIZE", 0, "The most to hold from each GPU: 6GiB, or 90% of it", 0},
    {"conf", 'c', "STR", 0,
     "Settings as in PYTORCH_CUDA_ALLOC_CONF, which is otherwise read from the environment", 0},
    {"require", 'r', NULL, 0,
     "Stop if unfrag cannot be active (the default in processes that torchrun starts)", 0},
    {"optional", 'o', NULL, 0,
     "Go on with PyTorch's own allocator if it cannot be, under torchrun "
     "too",
     0},
    {"verbose", 'v', NULL, 0, "Print a line that proves that it is active", 0},
    {0},
};

static error_t parse_option(int key, char *argument, struct argp_state *state)
{
    cli_run_options *options = state->input;
    switch (key) {
    case 'p':
        if (strcmp(argument, "unfrag") != 0 && strcmp(argument, "torch") != 0 &&
            strcmp(argument, "stock") != 0) {
            argp_error(state, "--policy knows 'unfrag', 'torch' and 'stock', not '%s'", argument);
        }
        options->policy = argument;
        return 0;
    case 'l':
        options->limit = argument;
        return 0;
    case 'c':
        options->conf = argument;
        return 0;
    case 'r':
        options->is_required = true;
        return 0;
    case 'o':
        options->is_optional = true;
        return 0;
    case 'v':
        options->is_verbose = true;
        return 0;
    case ARGP_KEY_END:
        if (options->is_required && options->is_optional) {
            argp_error(state, "--require and --optional contradict each other");
        }
        return 0;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

const struct argp cli_run_argp = {.options = option_list, .parser = parse_option};

uf_status cli_run_variables(const cli_run_options *options, cli_variables *list, uf_error *error)
{
    if (options->limit != NULL) {
        uf_status status = cli_launch_limit(options->limit, error);
        if (status != UF_OK) {
            return status;
        }
    }
    bool is_stock = options->policy != NULL && strcmp(options->policy, "stock") == 0;
    if (!is_stock) {
        cli_variables_set(list, "UNFRAG_POLICY",
                          options->policy != NULL ? options->policy : "unfrag");
    }
    if (options->limit != NULL) {
        cli_variables_set(list, "UNFRAG_LIMIT", options->limit);
    }
    if (options->conf != NULL) {
        uf_conf conf;
        uf_error why = {0};
        uf__conf_init(&conf);
        uf_status status = uf__conf_parse(&conf, options->conf, UF_CONF_2_11, &why);
        if (status != UF_OK) {
            return uf__error_set(error, status, "--conf: %s", why.text);
        }
        cli_variables_set(list, is_stock ? "PYTORCH_CUDA_ALLOC_CONF" : "UNFRAG_CONF",
                          options->conf);
    }
    if (options->is_required || options->is_optional) {
        cli_variables_set(list, "UNFRAG_REQUIRE", options->is_required ? "1" : "0");
    }
    if (options->is_verbose) {
        cli_variables_set(list, "UNFRAG_VERBOSE", "1");
    }
    return UF_OK;
}
