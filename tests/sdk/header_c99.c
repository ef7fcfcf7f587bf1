/* SPDX-License-Identifier: Apache-2.0 */
#include "layout.h"

#if __STDC_VERSION__ != 199901L
#error "to be compiled as C99"
#endif

extern const size_t layout_in_c[];
extern const size_t layout_length_in_c;
const size_t layout_in_c[] = LAYOUT;
const size_t layout_length_in_c = sizeof layout_in_c / sizeof layout_in_c[0];
