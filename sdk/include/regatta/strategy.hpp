// SPDX-License-Identifier: Apache-2.0
//
// The C++ layer for strategies. A strategy is a class whose functions are coroutines over rg::comm.
//
//   struct mine {
//     struct parameters { std::int64_t bucket = 4 << 20; };
//     static constexpr auto fields = rg::fields(rg::field("bucket", &parameters::bucket, "bytes sent at once"));
//     static rg_plan plan(const parameters&, const rg_cluster&);       // [any] what the strategy needs and does
//     // [any] whether ranks a and b ever exchange messages; without talks(), all do
//     static bool talks(const parameters&, const rg_cluster&, std::uint32_t a, std::uint32_t b);
//     mine(rg::comm&, const parameters&);                              // [main] allocates, owns, sets buckets
//     rg::comm& comm;                                                  // coroutine frames come from its pool
//     void begin_step(std::uint64_t step);                             // optional
//     void on_gradient(std::uint64_t step, std::uint32_t bucket);      // optional
//     rg::task<> end_step(std::uint64_t step);
//     rg::task<> serve();                                              // with RG_PLAN_SERVERS
//     rg::task<> finish();                                             // optional
//     void left(std::uint32_t rank);                                   // with RG_PLAN_SURVIVES: the rank is gone
//     void checkpoint(rg::saved_state&);                               // with RG_PLAN_RESUMES, if it keeps state
//   };
//   RG_PLUGIN("mine", "1.0", rg::strategy<mine>("mine", "one line"))
//
// begin_step may be a rg::task<>. A strategy that exchanges the rows of sparse tables (RG_PLAN_ROWS) has instead
//     rg::task<> begin_step(std::uint64_t step, rg::step_rows rows);   // copies these rows to the tables' windows
//     rg::task<> pull_rows(rg::step_rows rows);                        // the same between steps, for an evaluation
//
// plan and talks depend on their arguments alone. The constructor runs in [main]; all other functions run on the rank's
// loop, one at a time, so they need no locks. abi/strategy.h defines when each is called. On devices the engine orders
// operations on gradients after the fence of on_gradient. A coroutine's activity ends when the coroutine does; several
// may be suspended at once, e.g. serve() and end_step() of a rank in both roles.
// Errors are thrown as rg::error, and end the run. `comm` outlives the strategy; `parameters` is valid in the
// constructor only.
#pragma once

#include <regatta/comm.hpp>
#include <regatta/members.hpp>

#include <array>
#include <optional>

namespace rg {

RG_MEMBER_NAME(talks)
RG_MEMBER_NAME(begin_step)
RG_MEMBER_NAME(on_gradient)
RG_MEMBER_NAME(pull_rows)
RG_MEMBER_NAME(serve)
RG_MEMBER_NAME(finish)
RG_MEMBER_NAME(checkpoint)
RG_MEMBER_NAME(left)
RG_MEMBER_NAME(on_gradients)
RG_MEMBER_NAME(on_bucket)
RG_MEMBER_NAME(finished)

namespace detail {

// An instance of strategy S, to which the `self` of the C functions points.
template <class S> struct strategy_instance {
  rg::comm comm; // declared first: destroyed after the strategy and its coroutine frames, which use it
  std::optional<S> impl;
  enum kind { begins, ends, serves, finishes, pulls, kinds };
  // At most one activity of a kind runs at a time. Its frame is kept, suspended at its end, until the next activity of
  // its kind begins: that call may come from within the frame, when it reports its end.
  std::array<task<>, kinds> activities;

  explicit strategy_instance(const rg_strategy_host* host) : comm(host) {}

  static const char* name_of(kind k) {
    constexpr std::array<const char*, kinds> names = {"begin_step", "end_step", "serve", "finish", "pull_rows"};
    return names[k];
  }
  // Runs `t` and ends the activity when `t` ends, with a span on the track of its kind. An exception is reported to the
  // engine with its text.
  static task<> run(strategy_instance& self, task<> t, kind k, std::uint64_t activity) {
    const rg_strategy_host* host = self.comm.host();
    const tracer& trace = self.comm.trace();
    const bool traced = trace.on();
    const std::uint64_t begin = traced ? self.comm.now() : 0;
    rg_status status = RG_OK;
    try {
      co_await t;
    } catch (...) {
      status = fence(host->host, [] { throw; });
    }
    if (traced)
      trace.span({.name = name_of(k), .category = "strategy", .track = static_cast<std::uint32_t>(k)}, begin,
                 self.comm.now());
    host->done(host->context, activity, status);
  }
  frame_pool& frames() { return comm.frames(); }
};

template <class S> struct strategy_functions {
  using instance = strategy_instance<S>;
  using P = parameters_t<S>;
  static_assert(
      requires(const P& p, const rg_cluster& c) {
        { S::plan(p, c) } -> std::same_as<rg_plan>;
      },
      "a strategy needs: static rg_plan plan(const parameters&, const rg_cluster&)");
  static_assert(std::is_constructible_v<S, comm&, const P&>,
                "a strategy needs a constructor: (rg::comm&, const parameters&)");
  static_assert(
      requires(S s) {
        { s.end_step(std::uint64_t{}) } -> std::same_as<task<>>;
      },
      "a strategy needs: rg::task<> end_step(std::uint64_t step)");
  static_assert(
      requires(S s) { s.comm.frames(); },
      "a strategy needs, in public: rg::comm& comm; the frames of its coroutines come from its pool");

  template <class R> static constexpr bool is_activity = std::is_void_v<R> || std::is_same_v<R, task<>>;
  static constexpr bool begins_with_rows = requires(S s) {
    requires is_activity<decltype(s.begin_step(std::uint64_t{}, step_rows{}))>;
  };
  static constexpr bool begins = begins_with_rows || requires(S s) {
    requires is_activity<decltype(s.begin_step(std::uint64_t{}))>;
  };
  static constexpr bool talks_to = requires(const P& p, const rg_cluster& c) {
    { S::talks(p, c, std::uint32_t{}, std::uint32_t{}) } -> std::convertible_to<bool>;
  };
  static constexpr bool pulls_rows = requires(S s) {
    { s.pull_rows(step_rows{}) } -> std::same_as<task<>>;
  };
  static constexpr bool hears_gradients = requires(S s) {
    { s.on_gradient(std::uint64_t{}, std::uint32_t{}) } -> std::same_as<void>;
  };
  static constexpr bool serves = requires(S s) {
    { s.serve() } -> std::same_as<task<>>;
  };
  static constexpr bool finishes = requires(S s) {
    { s.finish() } -> std::same_as<task<>>;
  };
  static constexpr bool keeps_state = requires(S s, saved_state& state) {
    { s.checkpoint(state) } -> std::same_as<void>;
  };
  static constexpr bool hears_of_deaths = requires(S s) {
    { s.left(std::uint32_t{}) } -> std::same_as<void>;
  };
  RG_OPTIONAL_MEMBER(S, talks, talks_to,
                     "static bool talks(const parameters&, const rg_cluster&, std::uint32_t a, std::uint32_t b)");
  RG_OPTIONAL_MEMBER(S, begin_step, begins,
                     "void or rg::task<> begin_step(std::uint64_t step), or with rg::step_rows as second argument");
  RG_OPTIONAL_MEMBER(S, on_gradient, hears_gradients, "void on_gradient(std::uint64_t step, std::uint32_t bucket)");
  RG_OPTIONAL_MEMBER(S, pull_rows, pulls_rows, "rg::task<> pull_rows(rg::step_rows rows)");
  RG_OPTIONAL_MEMBER(S, serve, serves, "rg::task<> serve()");
  RG_OPTIONAL_MEMBER(S, finish, finishes, "rg::task<> finish()");
  RG_OPTIONAL_MEMBER(S, checkpoint, keeps_state, "void checkpoint(rg::saved_state& state)");
  RG_OPTIONAL_MEMBER(S, left, hears_of_deaths, "void left(std::uint32_t rank)");
  RG_MISSPELT_MEMBER(S, on_gradients, "on_gradient");
  RG_MISSPELT_MEMBER(S, on_bucket, "on_gradient");
  RG_MISSPELT_MEMBER(S, finished, "finish");

  static instance& of(void* self) { return *static_cast<instance*>(self); }
  static const rg_host* host_of(void* self) { return of(self).comm.host()->host; }

  static rg_status plan(const rg_host* host, const rg_value* values, const rg_cluster* cluster, rg_plan* out) {
    return fence(host, [&] {
      rg_plan p = S::plan(read_parameters<S>(values), copy_versioned(*cluster));
      p.struct_size = sizeof p;
      fill_versioned(out, p);
    });
  }
  static std::uint32_t talks(const rg_value* values, const rg_cluster* cluster, std::uint32_t a, std::uint32_t b) {
    if constexpr (talks_to) {
      bool yes = true;
      fence(nullptr, [&] { yes = S::talks(read_parameters<S>(values), copy_versioned(*cluster), a, b); });
      return yes;
    } else {
      return 1;
    }
  }
  static rg_status create(const rg_strategy_host* host, const rg_value* values, void** self) {
    return fence(host->host, [&] {
      auto i = std::make_unique<instance>(host);
      i->impl.emplace(i->comm, read_parameters<S>(values));
      *self = i.release();
    });
  }
  static void destroy(void* self) { delete &of(self); }

  static rg_status begin_step(void* self, std::uint64_t step, const rg_rows* rows, std::uint32_t tables,
                              std::uint64_t activity) {
    auto call = [&](auto& s) {
      if constexpr (begins_with_rows)
        return s.begin_step(step, step_rows(rows, tables));
      else
        return s.begin_step(step);
    };
    if constexpr (std::is_void_v<decltype(call(std::declval<S&>()))>)
      return fence(host_of(self), [&] {
        call(*of(self).impl);
        of(self).comm.host()->done(of(self).comm.host()->context, activity, RG_OK);
      });
    else
      return begin(self, instance::begins, activity, call);
  }
  static rg_status pull_rows(void* self, const rg_rows* rows, std::uint32_t tables, std::uint64_t activity) {
    return begin(self, instance::pulls, activity, [&](auto& s) { return s.pull_rows(step_rows(rows, tables)); });
  }
  static rg_status end_step(void* self, std::uint64_t step, std::uint64_t activity) {
    return begin(self, instance::ends, activity, [&](S& s) { return s.end_step(step); });
  }
  static rg_status serve(void* self, std::uint64_t activity) {
    return begin(self, instance::serves, activity, [](auto& s) { return s.serve(); });
  }
  static rg_status finish(void* self, std::uint64_t activity) {
    return begin(self, instance::finishes, activity, [](auto& s) { return s.finish(); });
  }
  static rg_status on_gradient(void* self, std::uint64_t step, std::uint32_t bucket, rg_fence) {
    return fence(host_of(self), [&] { of(self).impl->on_gradient(step, bucket); });
  }
  static rg_status completed(void* self, const rg_completion* c, std::uint32_t n) {
    return fence(host_of(self), [&] { of(self).comm.completed(c, n); });
  }
  static rg_status left(void* self, std::uint32_t rank) {
    return fence(host_of(self), [&] { of(self).impl->left(rank); });
  }
  template <bool loads> static rg_status move_state(void* self, std::uint64_t step, const rg_state* state) {
    return fence(host_of(self), [&] {
      saved_state s(state, step, loads);
      of(self).impl->checkpoint(s);
    });
  }
  template <class F> static rg_status begin(void* self, typename instance::kind kind, std::uint64_t activity, F&& f) {
    return fence(host_of(self), [&] {
      task<>& running = of(self).activities[kind];
      running = instance::run(of(self), f(*of(self).impl), kind, activity);
      running.start();
    });
  }

  static const rg_strategy* table() {
    static const rg_strategy functions = [] {
      auto t = make_versioned<rg_strategy>();
      t.plan = plan;
      t.talks = talks;
      t.create = create;
      t.destroy = destroy;
      t.end_step = end_step;
      t.completed = completed;
      if constexpr (begins) t.begin_step = begin_step;
      if constexpr (pulls_rows) t.pull_rows = pull_rows;
      if constexpr (hears_gradients) t.on_gradient = on_gradient;
      if constexpr (serves) t.serve = serve;
      if constexpr (finishes) t.finish = finish;
      if constexpr (hears_of_deaths) t.left = left;
      if constexpr (keeps_state) {
        t.save = move_state<false>;
        t.load = move_state<true>;
      }
      return t;
    }();
    return &functions;
  }
};

} // namespace detail

// Returns the component of strategy S, for RG_PLUGIN.
template <class S> rg_component strategy(const char* id, const char* summary) {
  return detail::component<S>(RG_KIND_STRATEGY, id, summary, detail::strategy_functions<S>::table());
}

} // namespace rg
