/* SPDX-License-Identifier: MIT
 *
 * oplog_verify BASE: does the core do what PyTorch did in a recording? */
#include "oplog/core_model.h"
#include "oplog/driver.h"

int main(int argc, char **argv)
{
    return driver_main(&core_model, argc, argv);
}
