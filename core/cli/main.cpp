// SPDX-License-Identifier: Apache-2.0
//
// The program: its verbs and their options. Results go to standard output, everything else to standard error.
#include "base/console.hpp"
#include "base/failure.hpp"
#include "cli/artifact.hpp"
#include "cli/calibrate.hpp"
#include "cli/check.hpp"
#include "cli/comm.hpp"
#include "cli/compare.hpp"
#include "cli/data.hpp"
#include "cli/describe.hpp"
#include "cli/doctor.hpp"
#include "cli/kubernetes.hpp"
#include "cli/launcher_ranks.hpp"
#include "cli/list.hpp"
#include "cli/new.hpp"
#include "cli/plugin_folders.hpp"
#include "cli/preflight.hpp"
#include "cli/report.hpp"
#include "cli/run.hpp"
#include "cli/simulate.hpp"
#include "cli/standard_output.hpp"
#include "cli/trace.hpp"
#include "comm/results.hpp"
#include "config/load.hpp"
#include "control/client.hpp"
#include "control/rank_arguments.hpp"
#include "experiment/schema.hpp"
#include "join/start.hpp"
#include "launch/interruption.hpp"
#include "machine/host.hpp"
#include "registry/registry.hpp"
#include "report/context.hpp"

#include <csignal>
#include <cstdio>
#include <cstring>
#include <iostream>

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

using namespace regatta;

namespace {

// The coordinator starts ranks with this verb; users do not.
int rank_verb(const std::string& connect, std::uint32_t rank, int secret_fd, int status_fd) {
  rank_arguments i = read_rank_arguments(connect, rank, secret_fd);
  control_client control(i.host, i.port, i.rank, std::move(i.secret), status_page(status_fd));
  return run_rank_process(control);
}

// Asks for a one-time code on the terminal, or reads it from standard input if that is none.
std::string ask_for_code() {
  if (::isatty(STDIN_FILENO)) print_error("code: ");
  std::string code;
  std::getline(std::cin, code);
  return code;
}

// Opens descriptors 0 to 2 on /dev/null if they are closed: otherwise the first files and pipes would take their
// numbers.
void open_standard_descriptors() {
  for (int fd = ::open("/dev/null", O_RDWR); fd >= 0; fd = ::open("/dev/null", O_RDWR))
    if (fd > STDERR_FILENO) {
      ::close(fd);
      return;
    }
}

constexpr const char* format_help = "format of standard output: console, markdown, csv, json";
constexpr const char* different_help =
    "with a launcher: warn if its hosts run different builds of this program, instead of refusing";
constexpr const char* result_format_help = "format of standard output: console, markdown, csv, json, latex, html";

// `type` is the placeholder of the value in the help; "": none.
template <class T>
CLI::Option* add_option(CLI::App* verb, const char* name, T& value, const char* type, const char* help) {
  return verb->add_option(name, value, help)->type_name(type);
}

// The option takes one value each time that it is given.
void add_repeatable(CLI::App* verb, const char* name, std::vector<std::string>& values, const char* type,
                    const char* help) {
  add_option(verb, name, values, type, help)->allow_extra_args(false);
}

void add_plugin_path(CLI::App* verb, std::vector<std::string>& folders) {
  add_repeatable(verb, "--plugin-path", folders, "PATH",
                 "folder or file of plugins that take precedence (repeatable; also REGATTA_PLUGIN_PATH)");
}

// Of verbs that run a campaign.
void add_progress(CLI::App* verb, std::string& when) {
  add_option(verb, "--progress", when, "WHEN",
             "a live line on standard error: auto, always, never; json: one JSON object a line, for programs")
      ->check(CLI::IsMember({"auto", "always", "never", "json"}));
}

int dispatch(int argc, char** argv) {
  CLI::App app("A benchmark engine for distributed deep-learning training.", "regatta");
  app.set_version_flag("--version", "regatta " REGATTA_VERSION);
  app.require_subcommand(1);
  app.get_formatter()->column_width(36);
  app.footer("Exit codes: 0 done; 1 a run failed; 2 command line or TOML wrong; 3 a plugin is missing or unusable;\n"
             "4 results wrong; 5 a gate of compare or a claim of reproduce failed, or preflight has suspects;\n"
             "77 every case was skipped; 130 interrupted.");

  const CLI::IsMember log_levels({"error", "warning", "info", "debug"});
  run_options run;
  CLI::App* run_app = app.add_subcommand("run", "run the experiment of a TOML file");
  CLI::Option* const run_file = run_app->add_option("FILE", run.file, "the experiment")->type_name("FILE.toml");
  add_repeatable(run_app, "--set", run.changes.set, "KEY=VALUE", "override a key (repeatable)");
  add_repeatable(run_app, "--sweep", run.changes.sweep, "KEY=V1,V2,...", "sweep a key (repeatable)");
  CLI::Option* const run_again =
      add_option(run_app, "--again", run.again, "RESULT",
                 "in place of FILE: run the cases of a stored result again, as they were, and compare the two");
  run_again->excludes(run_file)->excludes("--sweep");
  add_option(run_app, "--case", run.only_case, "N", "with --again: only the case of this number, counted from 1")
      ->needs(run_again)
      ->check(CLI::Range(1, 1'000'000));
  add_option(run_app, "--out", run.out, "DIR", "folder for the results (default: results/NAME-TIME)");
  run_app->add_flag("--resume", run.resume,
                    "go on with the campaign in the folder of --out: run what is missing there");
  add_option(run_app, "--format", run.format, "FORMAT", result_format_help);
  add_progress(run_app, run.progress);
  add_option(run_app, "--log", run.log, "LEVEL",
             "show log lines and output of ranks up to this level: error, warning (default), info, debug; all of it is "
             "in DIR/logs")
      ->check(log_levels);
  add_option(run_app, "--wait-for", run.wait_for, "N", "wait until N other hosts have joined by `regatta join`")
      ->check(CLI::Range(1, 4095));
  run_app->add_flag("--allow-different-binaries", run.allow_different_binaries, different_help);
  CLI::Option* const run_dry =
      run_app->add_flag("--dry-run", run.dry_run, "print the cases with estimated time and memory, run nothing");
  CLI::Option* const run_machine = add_option(run_app, "--machine", run.machine, "FILE.toml",
                                              "with --dry-run: a machine file, with which steps are simulated");
  run_machine->needs(run_dry);
  add_option(run_app, "--network", run.network, "FILE.toml", "with --machine: replaces its [network]")
      ->needs(run_machine);
  run_app->add_flag_callback(
      "--keys",
      [] {
        print_output(schema_text());
        throw CLI::Success();
      },
      "print the keys that a file may have, with defaults and what is allowed");
  add_plugin_path(run_app, run.plugin_path);

  std::string join_address;
  CLI::App* join_app = app.add_subcommand("join", "take part in the run of another computer, which waits for this one");
  join_app->add_option("ADDRESS", join_address, "where it waits, as `regatta run --wait-for` shows it")
      ->required()
      ->type_name("HOST:PORT");
  join_app->footer("Asks for the code that belongs to it on the terminal.");

  calibrate_options calibration;
  CLI::App* calibrate_app =
      app.add_subcommand("calibrate", "measure a model and messages on this machine, for regatta simulate");
  add_option(calibrate_app, "FILE", calibration.file, "FILE.toml", "an experiment: its first case is measured")
      ->required();
  add_option(calibrate_app, "-o,--out", calibration.out, "MACHINE.toml", "the machine file that is written")
      ->required();
  add_repeatable(calibrate_app, "--set", calibration.changes.set, "KEY=VALUE", "override a key (repeatable)");
  add_option(calibrate_app, "--transport", calibration.transports, "ID,...", "transports to measure (default: shm,tcp)")
      ->delimiter(',');
  add_option(calibrate_app, "--comm", calibration.comm, "FILE.json",
             "a result of `regatta comm --op send` between two hosts, for the [network] of the machine file");
  add_option(calibrate_app, "--progress", calibration.progress, "WHEN",
             "a live line on standard error: auto, always, never")
      ->check(CLI::IsMember({"auto", "always", "never"}));
  add_plugin_path(calibrate_app, calibration.plugin_path);

  simulate_options simulated;
  CLI::App* simulate_app = app.add_subcommand("simulate", "run the cases of an experiment under virtual time");
  add_option(simulate_app, "FILE", simulated.file, "FILE.toml", "the experiment, as for `regatta run`")->required();
  add_option(simulate_app, "--machine", simulated.machine, "FILE.toml",
             "how long the model computes and what a message costs (docs/simulation.md)")
      ->required();
  add_option(simulate_app, "--network", simulated.network, "FILE.toml",
             "[network] between hosts, in place of the machine's");
  add_repeatable(simulate_app, "--set", simulated.changes.set, "KEY=VALUE", "override a key (repeatable)");
  add_repeatable(simulate_app, "--sweep", simulated.changes.sweep, "KEY=V1,V2,...", "sweep a key (repeatable)");
  add_option(simulate_app, "--out", simulated.out, "DIR",
             "folder of the result (default: "
             "results/NAME-simulated-TIME)");
  add_option(simulate_app, "--export", simulated.exported, "FORMAT",
             "goal: also write what each case's ranks compute, send and wait for to operations.goal in the folder, for "
             "LogGOPSim")
      ->check(CLI::IsMember({"goal"}));
  simulate_app->add_flag("--resume", simulated.resume,
                         "with --out: go on with the interrupted campaign in this folder; finished runs are kept");
  simulate_app
      ->add_option("--jobs", simulated.jobs,
                   "simulations at once, as far as memory suffices; results do not depend on it (default: one for each "
                   "core)")
      ->option_text("N")
      ->check(CLI::Range(1, 1024));
  add_option(simulate_app, "--format", simulated.format, "FORMAT", result_format_help)->capture_default_str();
  add_progress(simulate_app, simulated.progress);
  simulate_app->footer("Every figure is marked as simulated. Exit codes are those of `regatta run`.");
  add_plugin_path(simulate_app, simulated.plugin_path);

  report_options report;
  CLI::App* report_app = app.add_subcommand("report", "show stored results as a page, a table or data");
  report_app->add_option("RESULT", report.results, "result.json, its folder, or the output of comm --format json")
      ->required()
      ->type_name("RESULT");
  add_option(report_app, "--format", report.format, "FORMAT",
             "console, markdown, csv, json, latex or html (default: by the name of -o, else console)");
  add_option(report_app, "--report", report.report, "FILE.toml",
             "show the tables that [report] of this file asks for, instead of the result's own");
  add_option(report_app, "-o,--out", report.out, "FILE", "write to this file, such as report.html");
  add_option(report_app, "--figures", report.figures, "DIR",
             "with html and markdown: also write each figure to DIR, as SVG with its data as CSV");

  std::vector<std::string> plugin_path; // of the verbs list, describe and doctor
  std::string list_kind;
  bool json = false;
  CLI::App* list_app = app.add_subcommand("list", "list the plugins, where they are, and what could not be loaded");
  add_option(list_app, "KIND", list_kind, "", "models, executors, transports or strategies")
      ->check(CLI::IsMember({"models", "executors", "transports", "strategies"}));
  list_app->add_flag("--json", json, "as JSON");
  add_plugin_path(list_app, plugin_path);

  std::string described;
  std::vector<std::string> described_with;
  CLI::App* describe_app = app.add_subcommand("describe", "a plugin's parameters and what it can do; a graph's layers");
  add_option(describe_app, "KIND/ID", described, "", "for example model/vgg16")->required();
  add_repeatable(describe_app, "--set", described_with, "NAME=VALUE", "change a parameter (repeatable)");
  describe_app->add_flag("--json", json, "as JSON");
  add_plugin_path(describe_app, plugin_path);

  check_options check;
  CLI::App* check_app = app.add_subcommand("check", "test a plugin against the interface");
  add_option(check_app, "PLUGIN", check.target, "FILE.so|KIND/ID",
             "a file, or KIND/ID of one that `regatta list` shows")
      ->required();
  add_repeatable(check_app, "--set", check.set, "NAME=VALUE", "a parameter of the plugin (repeatable)");
  add_repeatable(check_app, "--only", check.only, "PATTERN", "tests whose names match, such as add* (repeatable)");
  add_option(check_app, "--seed", check.seed, "N", "seed of the random numbers of the tests (default: 1)");
  add_option(check_app, "--reference", check.reference, "DIR",
             "of a model: compare its gradients with DIR/NAME.npy, which numpy.save() wrote for each tensor: float32 "
             "or float64, in the tensor's shape");
  add_option(check_app, "--write-reference", check.write_reference, "DIR",
             "of a model: write inputs, weights and gradients of the batch that --reference uses as .npy files, from "
             "which another implementation computes its gradients, and test nothing");
  check_app->add_flag("--quick", check.quick, "skip tests that need gigabytes of memory");
  check_app->add_flag("--list", check.list, "list the tests, run none");
  check_app->add_flag("--in-process", check.in_process, "run the tests in this process, for a debugger");
  check_app->add_flag("--json", check.json, "as JSON");
  add_repeatable(check_app, "--report", check.report, "FILE",
                 "write a report, by the ending of its name: .html, .json, or .xml or .junit for JUnit (repeatable)");
  check_app->add_option("--one", check.one)->group("");
  check_app->add_option("--component", check.component)->group("");
  check_app->add_option("--with", check.with)->allow_extra_args(false)->group("");
  check_app->footer(
      "Each test runs in a process of its own. Exit codes: 0 all passed; 1 some failed; 2 command line wrong;\n"
      "3 the plugin is missing or cannot be loaded; 77 no test of a component could run. --list says what each\n"
      "test expects; docs/conformance.md says more (in the source, and in share/doc/regatta of an installation).");
  add_plugin_path(check_app, check.plugin_path);

  comm_options communication;
  CLI::App* comm_app = app.add_subcommand("comm", "measure transports and collectives alone, by size");
  // Adds an option whose help shows the default.
  const auto add_shown = [&](const char* name, auto& value, const char* type, const char* help) {
    return add_option(comm_app, name, value, type, help)->capture_default_str();
  };
  CLI::Option* const comm_transports =
      add_shown("--transport", communication.transports, "ID,...", "ids, separated by commas")->delimiter(',');
  add_option(
      comm_app, "--matrix", communication.matrix, "[WHICH]",
      "instead of operations: latency (8 B) and bandwidth (--max, or 1 MiB) of every link between ranks, each pair "
      "alone, then disjoint pairs at once; hosts: between one rank of each host. Default transport: tcp")
      ->expected(0, 1)
      ->default_str("ranks")
      ->check(CLI::IsMember({"ranks", "hosts"}));
  add_shown("--op", communication.ops, "OP,...",
            "allreduce, reducescatter, allgather, alltoall, broadcast, send, push_pull")
      ->delimiter(',');
  add_option(
      comm_app, "--algorithm", communication.algorithms, "NAME,...",
      "native, ring, halving_doubling, recursive_doubling, circulant, pairwise, tree, scatter_gather: those that "
      "an operation has (default: all)")
      ->delimiter(',');
  add_shown("--ranks", communication.ranks, "N,...", "processes")->delimiter(',')->check(CLI::Range(2, 1024));
  add_shown("--min", communication.least, "SIZE", "the smallest message");
  CLI::Option* const comm_most = add_shown("--max", communication.most, "SIZE", "the largest message");
  comm_app->add_option("--factor", communication.factor, "factor from one size to the next")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  add_shown("--spin", communication.spin, "TIME",
            "how long a rank that waits spins before it sleeps; 0s: it blocks at once");
  comm_app->add_option("--seconds", communication.seconds, "how long each size is measured")
      ->check(CLI::Range(0.001, 3600.0))
      ->capture_default_str();
  add_shown("--timeout", communication.timeout, "TIME",
            "longest time without any progress of a rank, then its transport fails and the next one runs: a time such "
            "as 20s; auto: 120 s; none: for debuggers");
  add_shown("--log", communication.log, "LEVEL",
            "show log lines and output of ranks up to this level: error, warning, info, debug")
      ->check(log_levels);
  add_repeatable(comm_app, "--set", communication.set, "ID.NAME=VALUE",
                 "a parameter of a transport, such as tcp.chunk=4096 (repeatable)");
  comm_app
      ->add_option("--interface", communication.interface, "network interfaces, or IP addresses, that ranks listen on")
      ->capture_default_str();
  comm_app->add_flag("--allow-different-binaries", communication.allow_different_binaries, different_help);
  comm_app->add_flag("--no-pin", communication.no_pin, "do not pin ranks to CPUs");
  add_shown("--format", communication.format, "FORMAT", format_help);
  comm_app->footer(comm::formulas());
  add_plugin_path(comm_app, communication.plugin_path);

  preflight_options flight;
  CLI::App* preflight_app =
      app.add_subcommand("preflight", "find slow or different hosts and links of a launch, before a long run");
  preflight_app->add_option("--interface", flight.interface, "as cluster.interface: a name, a subnet, or auto")
      ->capture_default_str();
  add_option(preflight_app, "--timeout", flight.timeout, "TIME", "longest time without any progress, such as 20s")
      ->capture_default_str();
  add_option(preflight_app, "--log", flight.log, "LEVEL", "show log lines of ranks up to this level")
      ->check(log_levels)
      ->capture_default_str();
  add_option(preflight_app, "--format", flight.format, "FORMAT", "format of standard output: console, markdown, json")
      ->capture_default_str();
  add_plugin_path(preflight_app, flight.plugin_path);
  preflight_app->footer("Start it as `regatta run`, with at least one process on each host. Exit codes: 0 no suspects; "
                        "5 there are some;\nothers are those of a run. docs/cluster.md says what is compared.");

  compare_options compared;
  CLI::App* compare_app = app.add_subcommand("compare", "compare stored results, with intervals and verdicts");
  add_option(
      compare_app, "RESULT", compared.results, "FILE|DIR",
      "result.json or its folder: the first is compared with each other one; of a single one, the first case with "
      "the others")
      ->required();
  add_repeatable(compare_app, "--gate", compared.gates, "FIGURE CHANGE",
                 "exit with 5 if the figure got worse by more: \"samples_per_second -3%\" (repeatable)");
  add_repeatable(compare_app, "--across", compared.across, "PART,...",
                 "also compare cases that differ in these parts of the fingerprint: model, data, optimizer, precision, "
                 "synchrony");
  add_option(compare_app, "--format", compared.format, "FORMAT", format_help)->capture_default_str();

  history_options past;
  CLI::App* history_app = app.add_subcommand("history", "show a figure over many stored results");
  add_option(history_app, "DIR", past.folder, "DIR", "a folder with results, at any depth")->required();
  add_option(history_app, "--figure", past.figure, "FIGURE", "samples_per_second, efficiency, step_seconds, ...")
      ->capture_default_str();
  add_option(history_app, "--format", past.format, "FORMAT", format_help)->capture_default_str();

  artifact_options packing;
  CLI::App* artifact_app = app.add_subcommand("artifact", "pack a result so that others can reproduce it");
  add_option(artifact_app, "RESULT", packing.result, "RESULT", "result.json or its folder")->required();
  add_option(artifact_app, "-o,--out", packing.out, "FILE.tar.gz", "the archive that is written")->required();
  add_repeatable(
      artifact_app, "--sources", packing.sources, "PATH",
      "folder or file with the sources of its plugins (repeatable; default: where CMake built a plugin from, "
      "or NAME.cpp beside NAME.so)");

  reproduce_options again;
  CLI::App* reproduce_app =
      app.add_subcommand("reproduce", "run the experiment of an artifact here, and check its claims");
  add_option(reproduce_app, "FILE", again.file, "FILE.tar.gz", "an archive of regatta artifact")->required();
  add_option(reproduce_app, "--out", again.out, "DIR",
             "a new or empty folder for it and our results (default: results/reproduce-NAME-TIME)");
  add_repeatable(reproduce_app, "--set", again.set, "KEY=VALUE", "override a key, such as data.path (repeatable)");
  add_plugin_path(reproduce_app, again.plugin_path);
  reproduce_app->add_flag("--trust-binaries", again.trust_binaries,
                          "load binaries of the artifact that come without sources");
  reproduce_app->add_flag("--dry-run", again.dry_run, "say what would be built and loaded, do nothing");
  add_progress(reproduce_app, again.progress);
  reproduce_app->footer("Builds the sources in the artifact with cmake: this runs their code, so read them before.\n"
                        "Exit codes: 0 all claims hold; 5 one fails; 77 one is undecided, there is none, or this "
                        "machine cannot build or\n"
                        "run it; others are those of the run. docs/artifacts.md says more.");

  trace_options trace;
  CLI::App* trace_app = app.add_subcommand("trace", "print the critical path of a step of a trace");
  add_option(trace_app, "FILE", trace.file, "FILE.pftrace.gz", "a trace of `regatta run`: measure.trace, docs/trace.md")
      ->required();
  add_option(trace_app, "--step", trace.step, "N", "the number of the step in the run (default: the last one)");
  add_option(trace_app, "--top", trace.top, "N", "operations in the table, before the sum of the others (default: 15)");

  kubernetes_options pods;
  CLI::App* kubernetes_app =
      app.add_subcommand("kubernetes", "print the Kubernetes objects that run an experiment in pods");
  add_option(kubernetes_app, "FILE", pods.file, "FILE.toml", "the experiment")->required();
  add_option(kubernetes_app, "--image", pods.image, "NAME", "the image, which has the program in PATH")->required();
  add_option(kubernetes_app, "--namespace", pods.namespace_, "NS", "default: that of kubectl's context");
  add_option(kubernetes_app, "--name", pods.name, "JOB", "of the job (default: regatta-NAME of the experiment)");
  add_option(kubernetes_app, "--processes", pods.processes, "N",
             "pods of one process each (default: the ranks that the largest case needs)")
      ->check(CLI::Range(1, 4096));
  add_option(kubernetes_app, "--cpu", pods.cpu, "N", "CPUs of a pod: 4, 0.5, 500m (default: no limit)");
  add_option(kubernetes_app, "--memory", pods.memory, "SIZE", "memory of a pod: 16GiB (default: no limit)");
  add_option(kubernetes_app, "--gpu", pods.gpus, "N", "GPUs of a pod (default: 1 if train.device is cuda, else 0)")
      ->check(CLI::Range(0, 64));
  add_option(kubernetes_app, "--results", pods.results_claim, "CLAIM",
             "a PersistentVolumeClaim for the folder of results, which all pods can mount (default: it ends with the "
             "pod, and the result is in the log of pod 0)");
  kubernetes_app->add_flag("--one-per-node", pods.one_per_node, "no two pods on one node");
  add_option(kubernetes_app, "--format", pods.format, "FORMAT", "yaml (default) or json")
      ->check(CLI::IsMember({"yaml", "json"}));
  add_plugin_path(kubernetes_app, pods.plugin_path);
  kubernetes_app->footer("docs/cluster.md shows how to make the image, start the job and get its results.");

  std::string new_kind, new_name;
  CLI::App* new_app = app.add_subcommand("new", "write the project of a plugin of your own, which builds and runs");
  add_option(new_app, "KIND", new_kind, "", "model, strategy, transport, compressor or executor")
      ->required()
      ->check(CLI::IsMember({"model", "strategy", "transport", "compressor", "executor"}));
  add_option(new_app, "NAME", new_name, "", "its id, and the folder that is written")->required();

  std::string data_format, data_folder;
  CLI::App* data_app = app.add_subcommand("data", "generate small data sets");
  data_app->require_subcommand(1);
  CLI::App* make_app = data_app->add_subcommand("make", "write learnable data, the same bytes every time");
  add_option(make_app, "FORMAT", data_format, "", "as in data.format")->required();
  add_option(make_app, "DIR", data_folder, "", "a folder that is missing or empty")->required();
  make_app->footer(formats_of_data());

  CLI::App* doctor_app = app.add_subcommand("doctor", "this machine: cores, limits, plugins, devices, network");
  doctor_app->add_flag("--json", json, "as JSON");
  add_plugin_path(doctor_app, plugin_path);

  std::string connect;
  std::uint32_t rank = 0;
  int secret_fd = -1, status_fd = -1;
  CLI::App* rank_app = app.add_subcommand("rank", "")->group("");
  rank_app->add_option("--connect", connect)->required();
  rank_app->add_option("--rank", rank)->required();
  rank_app->add_option("--secret-fd", secret_fd)->required();
  rank_app->add_option("--status-fd", status_fd)->required();

  if (argc == 1) { // no arguments: print help
    print_output(app.help());
    return static_cast<int>(exit_code::done);
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == 0) return app.exit(e); // --help, --version
    const auto chosen = app.get_subcommands();
    print_error(fmt::format("regatta: {}\nsee `regatta {}--help`\n", e.what(),
                            chosen.empty() ? "" : chosen[0]->get_name() + " "));
    return static_cast<int>(exit_code::usage);
  }
  if (*rank_app) return rank_verb(connect, rank, secret_fd, status_fd); // the coordinator reads its standard output
  claim_standard_output();
  if (*join_app) return join_launch(join_address, ask_for_code(), make_launcher_request_handlers());
  if (*comm_app) {
    communication.command = command_line({argv, argv + argc});
    if (!communication.matrix.empty() && comm_transports->empty()) communication.transports = {"tcp"};
    if (!communication.matrix.empty() && comm_most->empty()) communication.most = "1MiB";
    return comm_verb(communication);
  }
  if (*preflight_app) {
    flight.command = command_line({argv, argv + argc});
    return preflight_verb(flight);
  }
  if (*check_app) {
    check.command = command_line({argv, argv + argc});
    return check_verb(check);
  }
  if (*run_app) {
    if (run.file.empty() && run.again.empty()) {
      print_error("regatta: expected FILE.toml, or --again RESULT\nsee `regatta run --help`\n");
      return static_cast<int>(exit_code::usage);
    }
    run.command = command_line({argv, argv + argc});
    return run_verb(run);
  }
  if (*calibrate_app) return calibrate_verb(calibration);
  if (*simulate_app) {
    simulated.command = command_line({argv, argv + argc});
    return simulate_verb(simulated);
  }
  if (*compare_app) return compare_verb(compared);
  if (*history_app) return history_verb(past);
  if (*artifact_app) return artifact_verb(packing);
  if (*reproduce_app) {
    again.command = command_line({argv, argv + argc});
    return reproduce_verb(again);
  }
  if (*trace_app) return trace_verb(trace);
  if (*report_app) return report_verb(report);
  if (*kubernetes_app) return kubernetes_verb(pods);
  if (*new_app) return new_verb(new_kind, new_name);
  if (*data_app) return make_data_verb(data_format, data_folder);
  if (*doctor_app) return doctor_verb(plugin_folders(plugin_path), json);
  if (*list_app) return list_verb(plugin_folders(plugin_path), kind_of(list_kind), json);
  return describe_verb(plugin_folders(plugin_path), described, json, described_with);
}

} // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  // With these ignored, writes to a closed pipe or beyond the limit of file sizes return an error.
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
  if (argc < 2 || std::strcmp(argv[1], "rank") != 0) end_at_interruptions();
  int code = static_cast<int>(exit_code::run);
  try {
    check_isa_variable();
    code = dispatch(argc, argv);
  } catch (const failure& e) {
    print_error(fmt::format("{}\n", e.what())); // FILE:LINE:COLUMN: must begin the line
    code = static_cast<int>(e.code());
  } catch (const std::exception& e) {
    print_error(fmt::format("regatta: {}\n", e.what()));
  }
  return finish_output(code);
}
