/* SPDX-License-Identifier: Apache-2.0
 *
 * Regatta's plugin interface: all types and functions that cross the boundary between the engine and a shared object.
 * C99; needs no library.
 *
 * A plugin exports one symbol, `regatta_plugin`. The function returns a static description of the plugin's components.
 * Each component has a kind, an id, a table of parameters and a table of functions. docs/writing-a-plugin.md walks
 * through one component of each kind.
 *
 * These rules hold in every header of abi/ and ext/:
 *
 *  - Versions. Every struct that may grow starts with `struct_size`. The side that owns the struct's memory sets it to
 *    its own sizeof. The side that reads the struct zeroes its own copy and copies min(struct_size, its own sizeof)
 *    bytes. A function that fills its caller's struct (`out`) writes at most struct_size bytes and leaves struct_size
 *    as it is. A minor version only appends members, behind the former size of the struct and never into its padding.
 *    A change that breaks old plugins is a new major version, or a new extension id; the engine loads only plugins of
 *    its own major version. All elements of an array of such structs have the same struct_size, which is the array's
 *    stride.
 *  - Functions in tables. The comment of each function of rg_model, rg_executor, rg_transport, rg_strategy,
 *    rg_graph_source and rg_launcher has [required] or [optional: the meaning of null]. The engine refuses a plugin at
 *    load if a required one is null. Tables of extensions that have such marks are refused, too, before
 *    the engine uses them. In tables of plugins without marks null means "not supported" unless the comment says
 *    otherwise.
 *  - Extensions. Further optional functions are in tables that are looked up by id. A table is valid as long as the
 *    instance, component or rg_host that returned it. The ids of extensions of others begin with a name of their own
 *    ("acme.tracing/1"). Each extension of Regatta is declared in a header of regatta/ext/. `since` is the first
 *    version of the interface that has it; "a transport's host" is the rg_host that the engine passes to a transport:
 *
 *      id                         header             since offered by
 *      regatta.graph/1            graph.h            1.0   a model's component: its network as a list of nodes
 *      regatta.frequencies/1      frequencies.h      1.0   a model's component: takes the frequencies of indices
 *      regatta.device/1           device.h           1.0   an executor's component: memory and arithmetic of a device
 *      regatta.devices/1          device.h           1.0   an executor's component: the devices of this machine
 *      regatta.compressor/1       compressor.h       1.0   a strategy's component: what its compression promises
 *      regatta.launcher/1         launcher.h         1.0   a transport's component: runs in a launcher's processes only
 *      regatta.regions/1          regions.h          1.0   a transport's instance: registered memory
 *      regatta.one_sided/1        one_sided.h        1.0   a transport's instance: put and get in peers' memory
 *      regatta.collectives/1      collectives.h      1.0   a transport's instance: collectives of its own
 *      regatta.cancel/1           cancel.h           1.0   a transport's instance: ends one operation
 *      regatta.counters/1         counters.h         1.0   a transport's instance: counters of its own
 *      regatta.wait/1             wait.h             1.0   a transport's instance: waiting for several at once
 *      regatta.authenticate/1     authenticate.h     1.0   a transport's host: proof that a peer belongs to the run
 *      regatta.exchange/1         exchange.h         1.0   a transport's host: bytes that a group of ranks exchanges
 *      regatta.nest/1             nest.h             1.0   a transport's host: opens other transports
 *      regatta.arena_memory/1     device.h           1.0   a transport's host: where weights and gradients are
 *      regatta.trace/1            trace.h            1.0   the host of an executor, transport or strategy: takes spans
 *      regatta.step_collectives/1 step_collectives.h 1.0   the host of a model or executor: sums over workers in a step
 *
 *  - Errors. Functions return an rg_status. A negative one is an error; from a plugin's function it ends the run,
 *    unless a comment says otherwise. A plugin's function that returns an error first passes a text to host->fail(). No
 *    exception crosses the boundary, in either direction.
 *  - Ownership. The side that passes a pointer owns the memory behind it. The pointer is valid until the call returns,
 *    unless the comment names a longer time. Strings are UTF-8 and end with a zero byte.
 *  - Threads. The comment of each function names the context in which it is called:
 *      [main]     set-up and tear-down: one call at a time, and no function of that instance except [any] is running
 *      [compute]  the rank's compute thread; calls in [loop] may run at the same time
 *      [loop]     the rank's event loop: one call at a time, but not always on the same thread
 *      [any]      any thread, at any time
 *  - Instances share no mutable static variables. One process may hold a thousand instances, each with its own host;
 *    contexts hold for each instance, so two instances may be called on two threads at once.
 *  - Units. Times are in nanoseconds, sizes in bytes, counts in elements, unless a name says otherwise.
 */
#ifndef REGATTA_ABI_H
#define REGATTA_ABI_H

#include <regatta/abi/base.h>
#include <regatta/abi/model.h>
#include <regatta/abi/operations.h>
#include <regatta/abi/strategy.h>
#include <regatta/abi/transport.h>

#endif
