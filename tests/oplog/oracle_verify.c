/* SPDX-License-Identifier: MIT
 *
 * oracle_verify BASE: does the oracle do what PyTorch did in a recording? */
#include "oplog/driver.h"
#include "oracle/oracle.h"

int main(int argc, char **argv)
{
    return driver_main(&oracle_model, argc, argv);
}
