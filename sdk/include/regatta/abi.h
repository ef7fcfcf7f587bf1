/* SPDX-License-Identifier: Apache-2.0
 *
 * Regatta's plugin interface: everything that crosses between the engine and a shared object. C99, no dependency.
 *
 * A plugin exports one symbol, `regatta_plugin`. It returns a static description: the components it holds, each with a
 * kind, an id, a table of parameters and a table of functions. docs/writing-a-plugin.md walks through one of each kind.
 *
 * RULES, said once and true in every header of abi/:
 *
 *  - Versions. Every struct that may grow starts with `struct_size`, set to sizeof by whoever fills it. Readers copy
 *    min(theirs, ours) into a zeroed struct. A minor version only appends; a break is a new major, or a new extension id.
 *    In an array of such structs all elements have the same struct_size, and it is the stride.
 *  - Slots. A null or missing function means "not supported". What is optional beyond slots is an extension, asked for
 *    by id, e.g. "regatta.collectives/1".
 *  - Errors. Functions return an rg_status. On an error the plugin first hands a text to host->fail(). Nothing is thrown
 *    across this line, in either direction.
 *  - Ownership. Whoever passes a pointer owns what it points to. It is valid until the call returns, unless the comment
 *    says longer. Strings are UTF-8, ended by 0.
 *  - Threads. Each function names the context it is called in:
 *      [main]     set-up and tear-down; one call at a time, nothing else of that instance runs
 *      [compute]  the rank's compute thread
 *      [loop]     the rank's event loop: serialised, but not always the same thread
 *      [any]      any thread, at any time
 *  - Instances share no mutable statics. A thousand may live in one process, each with its own host.
 *  - Units: times are nanoseconds, sizes bytes, counts elements, unless a name says otherwise.
 */
#ifndef REGATTA_ABI_H
#define REGATTA_ABI_H

#include <regatta/abi/base.h>
#include <regatta/abi/model.h>
#include <regatta/abi/strategy.h>
#include <regatta/abi/transport.h>

#endif
