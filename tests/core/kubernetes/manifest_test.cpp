// SPDX-License-Identifier: Apache-2.0
//
// The objects that the pods of a job get, and which names and sizes are accepted.
#include "json.hpp"

#include "kubernetes/manifest.hpp"

#include <doctest/doctest.h>

#include <string>

using namespace regatta;
using namespace regatta::test;
using nlohmann::json;

namespace {

kubernetes_job job_of_four() {
  kubernetes_job job;
  job.name = "regatta-vgg";
  job.image = "example.org/regatta:1";
  job.processes = 4;
  job.file_name = "vgg.toml";
  job.experiment = "[model]\nplugin = \"vgg16\"\n";
  job.secret = "c2VjcmV0IG9mIHRoZSBydW4=";
  return job;
}

json objects_of(const kubernetes_job& job) {
  return parsed(kubernetes_json(job)).at("items");
}

const json& pod_in(const json& objects) {
  return objects.at(3).at("spec").at("template").at("spec");
}

std::string variable(const json& container, const std::string& name) {
  for (const json& v : container.at("env"))
    if (v.at("name") == name) return v.at("value");
  return "missing";
}

const json& named(const json& list, const std::string& name) {
  for (const json& item : list)
    if (item.at("name") == name) return item;
  FAIL("nothing is named ", name);
  return list;
}

} // namespace

TEST_CASE("four objects with one name, and an indexed job of as many pods as processes") {
  const json objects = objects_of(job_of_four());
  REQUIRE(objects.size() == 4);
  const char* kinds[] = {"Secret", "ConfigMap", "Service", "Job"};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(objects[i].at("kind") == kinds[i]);
    CHECK(objects[i].at("metadata").at("name") == "regatta-vgg");
    CHECK(!objects[i].at("metadata").contains("namespace"));
  }
  const json& spec = objects[3].at("spec");
  CHECK(objects[3].at("apiVersion") == "batch/v1");
  CHECK(spec.at("completionMode") == "Indexed");
  CHECK(spec.at("completions") == 4);
  CHECK(spec.at("parallelism") == 4);
  CHECK(spec.at("backoffLimit") == 0);
  CHECK(pod_in(objects).at("restartPolicy") == "Never");
}

TEST_CASE("the coordinator is the name that pod 0 gets from Job and Service") {
  const json objects = objects_of(job_of_four());
  const json &service = objects[2], &job = objects[3], &pod = pod_in(objects), &container = pod.at("containers").at(0);
  // A pod of an indexed job has the host name JOB-INDEX; HOSTNAME.SUBDOMAIN resolves if a headless Service of this name
  // selects the pod.
  const std::string host = job.at("metadata").at("name").get<std::string>() + "-0",
                    service_name = service.at("metadata").at("name");
  CHECK(pod.at("subdomain") == service_name);
  CHECK(!pod.contains("hostname"));
  CHECK(service.at("spec").at("clusterIP") == "None");
  CHECK(service.at("spec").at("publishNotReadyAddresses") == true);
  const json& port = service.at("spec").at("ports").at(0).at("port");
  CHECK(variable(container, "REGATTA_COORDINATOR") == host + "." + service_name + ":" + port.dump());
  CHECK(variable(container, "REGATTA_RANKS") == "4");
  CHECK(variable(container, "REGATTA_RANK") == "missing"); // JOB_COMPLETION_INDEX is the rank
  for (const auto& [key, value] : service.at("spec").at("selector").items())
    CHECK(job.at("spec").at("template").at("metadata").at("labels").at(key) == value);
}

TEST_CASE("the secret is a file of mode 0400, and stands in the Secret only") {
  const kubernetes_job asked = job_of_four();
  const json objects = objects_of(asked), &pod = pod_in(objects), &container = pod.at("containers").at(0);
  CHECK(objects[0].at("stringData").at("secret") == asked.secret);
  for (std::size_t i = 1; i < 4; ++i) CHECK(objects[i].dump().find(asked.secret) == std::string::npos);
  CHECK(container.dump().find("secretKeyRef") == std::string::npos);

  const json& volume = named(pod.at("volumes"), "secret").at("secret");
  CHECK(volume.at("secretName") == objects[0].at("metadata").at("name"));
  CHECK(volume.at("defaultMode") == 0400);
  const json& mount = named(container.at("volumeMounts"), "secret");
  CHECK(mount.at("readOnly") == true);
  CHECK(variable(container, "REGATTA_SECRET_FILE") == mount.at("mountPath").get<std::string>() + "/secret");
  // Once in the text, too: not in a comment.
  const std::string yaml = kubernetes_yaml(asked);
  CHECK(yaml.find(asked.secret) == yaml.rfind(asked.secret));
}

TEST_CASE("the pods run the experiment's text, and its result goes to their output and a folder") {
  kubernetes_job asked = job_of_four();
  const json objects = objects_of(asked), &pod = pod_in(objects), &container = pod.at("containers").at(0);
  CHECK(objects[1].at("data").at("vgg.toml") == asked.experiment);
  CHECK(named(pod.at("volumes"), "experiment").at("configMap").at("name") == objects[1].at("metadata").at("name"));
  const std::string folder = named(container.at("volumeMounts"), "experiment").at("mountPath"),
                    results = named(container.at("volumeMounts"), "results").at("mountPath");
  CHECK(container.at("command") == json{"regatta"});
  CHECK(container.at("args") == json{"run", folder + "/vgg.toml", "--out", results + "/regatta-vgg", "--format", "json",
                                     "--progress", "never"});
  CHECK(named(pod.at("volumes"), "results").at("emptyDir") == json::object());
  CHECK(named(pod.at("volumes"), "shm").at("emptyDir").at("medium") == "Memory");
  CHECK(named(container.at("volumeMounts"), "shm").at("mountPath") == "/dev/shm");

  asked.results_claim = "kept";
  const json other = objects_of(asked);
  CHECK(pod_in(other).at("containers").at(0).at("args").back() == "never");
  CHECK(named(pod_in(other).at("volumes"), "results").at("persistentVolumeClaim").at("claimName") == "kept");
}

TEST_CASE("resources, placement and namespace as asked for") {
  kubernetes_job asked = job_of_four();
  CHECK(!pod_in(objects_of(asked)).at("containers").at(0).contains("resources"));
  CHECK(!pod_in(objects_of(asked)).contains("affinity"));
  asked.cpu = "8";
  asked.memory = "16Gi";
  asked.gpus = 2;
  asked.one_per_node = true;
  asked.namespace_ = "team-a";
  const json objects = objects_of(asked), &pod = pod_in(objects);
  const json amounts = {{"cpu", "8"}, {"memory", "16Gi"}, {"nvidia.com/gpu", "2"}};
  CHECK(pod.at("containers").at(0).at("resources") == json{{"requests", amounts}, {"limits", amounts}});
  const json& apart =
      pod.at("affinity").at("podAntiAffinity").at("requiredDuringSchedulingIgnoredDuringExecution").at(0);
  CHECK(apart.at("topologyKey") == "kubernetes.io/hostname");
  for (const auto& [key, value] : apart.at("labelSelector").at("matchLabels").items())
    CHECK(objects[3].at("spec").at("template").at("metadata").at("labels").at(key) == value);
  for (const json& object : objects) CHECK(object.at("metadata").at("namespace") == "team-a");
  CHECK(kubernetes_yaml(asked).find("kubectl wait -n team-a ") != std::string::npos);
}

TEST_CASE("names are DNS labels, also with the number of the last pod") {
  for (const char* good : {"a", "regatta-vgg16", "x9"}) CHECK(!job_name_problem(good, 4));
  for (const char* bad : {"", "Regatta", "a_b", "a.b", "-a", "a-", "9a", "a b", "\xC3\xBC", "a\n"}) {
    CAPTURE(bad);
    const auto problem = job_name_problem(bad, 4);
    REQUIRE(problem);
    CHECK(problem->find("DNS label") != std::string::npos);
    CHECK(problem->find('\n') == std::string::npos);
  }
  CHECK(!job_name_problem(std::string(61, 'a'), 10));
  const auto problem = job_name_problem(std::string(61, 'a'), 11); // the last one is NAME-10
  REQUIRE(problem);
  CHECK(problem->find("at most 60 characters") != std::string::npos);
  CHECK(job_name_problem(std::string(64, 'a'), 1));

  CHECK(!namespace_problem("404"));
  for (const char* bad : {"", "A", "a.b", "a-", "-a", "a/b"}) CHECK(namespace_problem(bad));
  CHECK(namespace_problem(std::string(64, 'a')));

  CHECK(job_name_of("VGG16 on_CIFAR.10!") == "regatta-vgg16-on-cifar-10");
  CHECK(job_name_of("") == "regatta");
  CHECK(job_name_of("\xC3\xBC--") == "regatta");
  CHECK(!job_name_problem(job_name_of(std::string(300, 'x')), 4096));
}

TEST_CASE("images and quantities") {
  for (const char* good : {"regatta", "example.org:5000/a/b_c:0.1", "a@sha256:00ff"}) CHECK(!image_problem(good));
  for (const char* bad : {"", "-a", "a b", "a\"b", "a\nb", "/a", "a;b", "$(a)"}) CHECK(image_problem(bad));
  CHECK(cpu_quantity("4") == "4");
  CHECK(cpu_quantity("0.5") == "500m");
  CHECK(cpu_quantity("1500m") == "1500m");
  CHECK(cpu_quantity("2000m") == "2");
  for (const char* bad : {"", "0", "-1", "4 cores", "1e3", "0.0005", "nan", "inf", "m", "0.5m", "9999999"})
    CHECK_MESSAGE(!cpu_quantity(bad), bad);
  CHECK(memory_quantity("16GiB") == "16Gi");
  CHECK(memory_quantity("16Gi") == "16Gi");
  CHECK(memory_quantity("512M") == "500000Ki");
  CHECK(memory_quantity("2000001B") == "2000001");
  CHECK(memory_quantity("1.5GiB") == "1536Mi");
  for (const char* bad : {"", "16", "1KiB", "-1GiB", "16Gb", "lots", "0GiB", "B"})
    CHECK_MESSAGE(!memory_quantity(bad), bad);
}
