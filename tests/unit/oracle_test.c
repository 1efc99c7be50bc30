/* SPDX-License-Identifier: MIT
 *
 * The conformance statements on the oracle. */
#include "oracle/conformance.h"
#include "oracle/oracle.h"

int main(void)
{
    return conformance_main(&oracle_model);
}
