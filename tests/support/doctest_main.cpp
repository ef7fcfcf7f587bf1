// SPDX-License-Identifier: Apache-2.0
//
// Both: the header may have been included before, precompiled, and then no longer derives one from the other.
#define DOCTEST_CONFIG_IMPLEMENT
#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>
