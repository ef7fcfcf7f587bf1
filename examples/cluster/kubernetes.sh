#!/bin/bash
# Runs an experiment in pods of a Kubernetes cluster, waits for its end, and brings its result (docs/cluster.md):
#
#     ./kubernetes.sh registry.example.org/regatta:0.1 [FILE.toml] [OPTION of regatta kubernetes...]
#
# The job is in the namespace of kubectl's context. Takes kubectl, and a Kubernetes of 1.28 or later, which labels pods
# with their index.
set -euo pipefail

image=${1:?usage: kubernetes.sh IMAGE [FILE.toml] [OPTION...]}
file=${2:-cluster.toml}
shift $(($# > 1 ? 2 : 1))
name=regatta-$(date +%Y%m%d-%H%M%S)
all=app.kubernetes.io/instance=$name
first=$all,batch.kubernetes.io/job-completion-index=0

# The objects hold the run's secret, so they go to kubectl without a file. `create` refuses names that exist already.
regatta kubernetes "$file" --image "$image" --name "$name" "$@" | kubectl create -f -
trap 'kubectl delete job,service,configmap,secret -l "$all"' EXIT

# Waits for either end; `kubectl wait` alone would wait for a success that a failed job never has.
until [ -n "$(kubectl get job "$name" -o jsonpath='{.status.conditions[?(@.status=="True")].type}')" ]; do sleep 5; done

# Logs have messages and the result. The result is the JSON document from the line "{" to the line "}".
kubectl logs --tail=-1 --prefix -l "$all" --max-log-requests=5000 >"$name.log"
kubectl logs --tail=-1 -l "$first" | sed -n '/^{$/,/^}$/p' >"$name.json"
if [ -s "$name.json" ]; then
  regatta report "$name.json"
else
  rm "$name.json"
  echo "the job ended without a result; see $name.log" >&2
  exit 1
fi
