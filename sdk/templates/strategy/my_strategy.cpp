// Synchronous training: worker 0 adds the gradients of all workers, and sends the sum back.
// share/doc/regatta/docs/writing-a-plugin.md describes strategies, and those with servers, too.
#include <regatta/data_parallel.hpp>

namespace {

struct my_strategy : rg::data_parallel<my_strategy> {
  using data_parallel::data_parallel;

  // Called for each bucket of gradients when the backward pass has finished them. Leaves the sum of all workers'
  // gradients in b.gradients; the base then updates the weights. Every co_await lets other buckets go on.
  rg::task<> exchange(rg::bucket b) {
    const std::uint32_t n = comm.workers(), me = comm.rank();
    if (me > 0) {
      co_await comm.send(0, b.gradients, b.lane);
      co_await comm.recv(0, b.gradients, b.lane);
      co_return;
    }
    for (std::uint32_t worker = 1; worker < n; ++worker) co_await comm.recv_add(worker, b.gradients, b.lane);
    for (std::uint32_t worker = 1; worker < n; ++worker) co_await comm.send(worker, b.gradients, b.lane);
  }
};

} // namespace

RG_PLUGIN("my_strategy", "0.1", rg::strategy<my_strategy>("my_strategy", "say in one line what it does"))
