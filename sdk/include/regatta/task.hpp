// SPDX-License-Identifier: Apache-2.0
//
// Coroutines of one logical thread: a task runs when it is awaited or spawned, and resumes when the operation that it
// awaits has ended. It needs no locks, threads or clock. The frame of a member function is allocated from the pool of
// its object, that of another coroutine from the pool of its first argument, so that a step allocates nothing. The
// object is a frame_pool_user, or has a public member `comm` that is one; else the frame comes from the heap.
#pragma once

#include <coroutine>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <optional>
#include <utility>
#include <vector>

namespace rg {

// Memory for coroutine frames, in blocks of a few size classes that are reused. One per instance; not thread-safe: it
// is used on the instance's loop only. It must outlive the frames.
class frame_pool {
public:
  frame_pool() = default;
  frame_pool(const frame_pool&) = delete;
  frame_pool& operator=(const frame_pool&) = delete;
  ~frame_pool() {
    for (block*& list : free_)
      while (list) ::operator delete(std::exchange(list, list->next));
  }

  // Returns memory from `pool`, or from the heap if `pool` is null; pass it to release(). Throws std::bad_alloc.
  static void* allocate(frame_pool* pool, std::size_t bytes) {
    const std::size_t c = (bytes + sizeof(block) + granule - 1) / granule;
    block* b = pool && c < classes && pool->free_[c] ? std::exchange(pool->free_[c], pool->free_[c]->next)
                                                     : static_cast<block*>(::operator new(c* granule));
    b->pool = pool;
    b->size_class = c;
    return b + 1;
  }
  static void release(void* p) noexcept {
    block* b = static_cast<block*>(p) - 1;
    if (!b->pool || b->size_class >= classes) {
      ::operator delete(b);
      return;
    }
    block*& list = b->pool->free_[b->size_class];
    b->next = list;
    list = b;
  }

private:
  static constexpr std::size_t granule = 64, classes = 64;
  struct alignas(std::max_align_t) block {
    union {
      frame_pool* pool;
      block* next;
    };
    std::size_t size_class;
  };
  block* free_[classes] = {};
};

// Base of classes that own a pool: a coroutine whose object or first argument is a frame_pool_user takes its frame from
// that pool.
class frame_pool_user {
public:
  frame_pool& frames() { return frames_; }

private:
  frame_pool frames_;
};

template <class T = void> class task;

namespace detail {

template <class A> frame_pool* pool_of(A& first) {
  if constexpr (requires { first.frames(); })
    return &first.frames();
  else if constexpr (requires { first.comm.frames(); })
    return &first.comm.frames();
  else
    return nullptr;
}

struct promise_base {
  std::coroutine_handle<> continuation = std::noop_coroutine();
  std::exception_ptr error;

  static void* operator new(std::size_t n) { return frame_pool::allocate(nullptr, n); }
  template <class A, class... R> static void* operator new(std::size_t n, A& first, R&&...) {
    return frame_pool::allocate(pool_of(first), n);
  }
  static void operator delete(void* p) noexcept { frame_pool::release(p); }

  std::suspend_always initial_suspend() noexcept { return {}; }
  struct to_continuation {
    bool await_ready() noexcept { return false; }
    template <class P> std::coroutine_handle<> await_suspend(std::coroutine_handle<P> h) noexcept {
      return h.promise().continuation;
    }
    void await_resume() noexcept {}
  };
  to_continuation final_suspend() noexcept { return {}; }
  void unhandled_exception() { error = std::current_exception(); }
};

template <class T> struct promise : promise_base {
  std::optional<T> value;
  task<T> get_return_object();
  template <class U> void return_value(U&& v) { value.emplace(std::forward<U>(v)); }
  T take() {
    if (error) std::rethrow_exception(error);
    return std::move(*value);
  }
};
template <> struct promise<void> : promise_base {
  task<void> get_return_object();
  void return_void() {}
  void take() {
    if (error) std::rethrow_exception(error);
  }
};

} // namespace detail

// A coroutine, which starts when it is awaited. co_await, at most once for each task, runs it to its end, and returns
// its value or throws its exception. A task owns its frame: destroying a task that has not ended destroys its frame,
// and the tasks that it awaits; operations that it submitted go on. References among a coroutine's parameters must be
// valid until the task ends. A default-constructed task has no coroutine: it must not be awaited or started.
template <class T> class [[nodiscard]] task {
public:
  using promise_type = detail::promise<T>;
  using handle = std::coroutine_handle<promise_type>;

  task() = default;
  explicit task(handle h) : handle_(h) {}
  task(task&& o) noexcept : handle_(std::exchange(o.handle_, {})) {}
  task& operator=(task&& o) noexcept {
    std::swap(handle_, o.handle_);
    return *this;
  }
  ~task() {
    if (handle_) handle_.destroy();
  }

  bool await_ready() const noexcept { return false; }
  // Runs the task until it suspends or ends; if it has ended, the awaiting coroutine goes on. A transfer to the task
  // and back would need no such call, but where the compiler makes no tail calls (-O0, -O1), a loop that awaits tasks
  // that do not suspend would overflow the stack.
  bool await_suspend(std::coroutine_handle<> awaiting) noexcept {
    handle_.resume();
    if (handle_.done()) return false;
    handle_.promise().continuation = awaiting;
    return true;
  }
  T await_resume() { return handle_.promise().take(); }

  // Runs the task until it first suspends. For tasks that are not awaited (task_group), once; an exception of the task
  // is then dropped.
  void start() { handle_.resume(); }
  // Returns whether the task has ended; true for a task without a coroutine.
  bool done() const noexcept { return !handle_ || handle_.done(); }

private:
  handle handle_;
};

namespace detail {
template <class T> task<T> promise<T>::get_return_object() {
  return task<T>(std::coroutine_handle<promise<T>>::from_promise(*this));
}
inline task<void> promise<void>::get_return_object() {
  return task<void>(std::coroutine_handle<promise<void>>::from_promise(*this));
}
} // namespace detail

// An event that resets itself. set() resumes the coroutine that awaits the event, within the call; if there is none,
// the next co_await does not wait, however often set() was called. Only one coroutine may await it at a time. g++ 12
// copies the operand of `co_await container[i]`: bind it to a reference first.
class event {
public:
  event() = default;
  event(const event&) = delete;
  event& operator=(const event&) = delete;
  void set() {
    if (waiter_)
      std::exchange(waiter_, {}).resume();
    else
      set_ = true;
  }
  bool await_ready() noexcept { return std::exchange(set_, false); }
  void await_suspend(std::coroutine_handle<> h) noexcept { waiter_ = h; }
  void await_resume() noexcept {}

private:
  std::coroutine_handle<> waiter_;
  bool set_ = false;
};

// Tasks that run concurrently. spawn() runs a task until it first suspends. `co_await group.join()` resumes when all
// have ended, and throws the first exception of a task since the last join(); more tasks may be spawned afterwards.
// Only one coroutine may await join() at a time. Destroying the group destroys the tasks that have not ended.
class task_group {
public:
  void spawn(task<> t) {
    std::size_t i = 0;
    while (i < running_.size() && !running_[i].done()) ++i;
    if (i == running_.size()) running_.emplace_back();
    ++active_;
    running_[i] = run(*this, std::move(t));
    running_[i].start();
  }

  struct joiner {
    task_group& group;
    bool await_ready() const noexcept { return group.active_ == 0; }
    void await_suspend(std::coroutine_handle<> h) noexcept { group.waiter_ = h; }
    void await_resume() {
      if (group.error_) std::rethrow_exception(std::exchange(group.error_, nullptr));
    }
  };
  joiner join() { return {*this}; }
  // Returns the number of tasks that have not ended.
  std::size_t active() const noexcept { return active_; }
  frame_pool& frames() { return frames_; }

private:
  // The frame of an ended task stays suspended until its slot is reused. A task that is still on the stack, because it
  // resumes the waiter below, is not done(): so spawn() does not reuse its slot and destroy the frame under it.
  static task<> run(task_group& group, task<> t) {
    try {
      co_await t;
    } catch (...) {
      if (!group.error_) group.error_ = std::current_exception();
    }
    if (--group.active_ == 0 && group.waiter_) std::exchange(group.waiter_, {}).resume();
  }

  frame_pool frames_; // declared before running_, so that it outlives the frames
  std::vector<task<>> running_;
  std::size_t active_ = 0;
  std::coroutine_handle<> waiter_;
  std::exception_ptr error_;
};

} // namespace rg
