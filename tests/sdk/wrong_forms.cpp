// SPDX-License-Identifier: Apache-2.0
//
// Classes with a function whose name is right and whose form is wrong, and other slips that would be silent: each
// mistake of wrong_forms.inl in a namespace of its own. With ALL_RIGHT there is none, and the file compiles.
#include <regatta/compressor.hpp>
#include <regatta/data_parallel.hpp>
#include <regatta/device.hpp>
#include <regatta/model.hpp>
#include <regatta/strategy.hpp>
#include <regatta/transport.hpp>

#ifdef ALL_RIGHT
#define WRONG 0
#include "wrong_forms.inl"
#else
namespace wrong_1 {
#define WRONG 1
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_1
namespace wrong_2 {
#define WRONG 2
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_2
namespace wrong_3 {
#define WRONG 3
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_3
namespace wrong_4 {
#define WRONG 4
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_4
namespace wrong_5 {
#define WRONG 5
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_5
namespace wrong_6 {
#define WRONG 6
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_6
namespace wrong_7 {
#define WRONG 7
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_7
namespace wrong_8 {
#define WRONG 8
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_8
namespace wrong_9 {
#define WRONG 9
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_9
namespace wrong_10 {
#define WRONG 10
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_10
namespace wrong_11 {
#define WRONG 11
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_11
namespace wrong_12 {
#define WRONG 12
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_12
namespace wrong_13 {
#define WRONG 13
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_13
namespace wrong_14 {
#define WRONG 14
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_14
namespace wrong_15 {
#define WRONG 15
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_15
namespace wrong_16 {
#define WRONG 16
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_16
namespace wrong_17 {
#define WRONG 17
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_17
namespace wrong_18 {
#define WRONG 18
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_18
namespace wrong_19 {
#define WRONG 19
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_19
namespace wrong_20 {
#define WRONG 20
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_20
namespace wrong_21 {
#define WRONG 21
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_21
namespace wrong_22 {
#define WRONG 22
#include "wrong_forms.inl"
#undef WRONG
} // namespace wrong_22
#endif
