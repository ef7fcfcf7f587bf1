#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Becomes the container of one pod of an Indexed Job, on the test host where it is called:

  hosts.py exec n2 pod.py OBJECTS.json 2

OBJECTS.json is what `regatta kubernetes --format json` prints. As a kubelet does, this gives the container the pod's
host name, the variables of its specification and of the job's controller and no others, and its volumes: secrets as
symbolic links to files with the mode that the specification asks for. The image is this machine's file system,
below a layer that keeps what is written; the folder of the program, REGATTA_BIN, is in PATH.
"""
import ctypes, json, os, pathlib, subprocess, sys

NEW_NAMESPACES = 0x00020000 | 0x04000000  # CLONE_NEWNS, CLONE_NEWUTS
VISIBLE = ("/proc", "/sys", "/dev", "/run", "/srv", "/tmp", "/etc/hosts")  # mounts of the host that a layer hides


def mount(*arguments):
    subprocess.run(["mount", *map(str, arguments)], check=True)


def find(objects, kind):
    return next(item for item in objects["items"] if item["kind"] == kind)


def write_volume(folder, files, mode):
    """As a kubelet: FOLDER/NAME is a link to ..data/NAME, and ..data a link to the folder of this version."""
    version = folder / "..2026_01_01"
    version.mkdir(parents=True)
    (folder / "..data").symlink_to(version.name)
    for name, text in files.items():
        (version / name).write_text(text)
        (version / name).chmod(mode)
        (folder / name).symlink_to(f"..data/{name}")


def mount_volumes(objects, pod, container, layer, root):
    sources = {volume["name"]: volume for volume in pod["volumes"]}
    for wanted in container["volumeMounts"]:
        volume = sources[wanted["name"]]
        at = root / wanted["mountPath"].lstrip("/")
        at.mkdir(parents=True, exist_ok=True)
        folder = layer / "volumes" / wanted["name"]
        folder.mkdir(parents=True)
        if "secret" in volume:
            write_volume(folder, find(objects, "Secret")["stringData"], volume["secret"].get("defaultMode", 0o644))
        elif "configMap" in volume:
            write_volume(folder, find(objects, "ConfigMap")["data"], volume["configMap"].get("defaultMode", 0o644))
        elif volume.get("emptyDir", {}).get("medium") == "Memory":
            mount("-t", "tmpfs", "tmpfs", folder)
        elif "emptyDir" not in volume:
            sys.exit(f"pod.py: expected a volume of a secret, a configMap or an emptyDir, got {volume}")
        mount("--bind", folder, at)
        if wanted.get("readOnly"):
            mount("-o", "remount,bind,ro", at)


def main():
    objects, index = json.loads(pathlib.Path(sys.argv[1]).read_text()), sys.argv[2]
    job = find(objects, "Job")
    pod = job["spec"]["template"]["spec"]
    container, = pod["containers"]

    if ctypes.CDLL(None, use_errno=True).unshare(NEW_NAMESPACES) != 0:
        sys.exit("pod.py: expected to run as root on a test host")
    mount("--make-rprivate", "/")
    layer = pathlib.Path("/mnt")
    mount("-t", "tmpfs", "tmpfs", layer)
    for name in ("written", "work", "root"):
        (layer / name).mkdir()
    root = layer / "root"
    mount("-t", "overlay", "overlay", "-o", f"lowerdir=/,upperdir={layer}/written,workdir={layer}/work", root)
    for path in VISIBLE:
        mount("--rbind", path, f"{root}{path}")
    mount_volumes(objects, pod, container, layer, root)

    name = f"{job['metadata']['name']}-{index}"
    subprocess.run(["hostname", name], check=True)
    environment = {"PATH": f"{os.environ['REGATTA_BIN']}:/usr/bin:/bin", "HOSTNAME": name, "HOME": "/root",
                   "KUBERNETES_SERVICE_HOST": "10.96.0.1", "JOB_COMPLETION_INDEX": index}
    environment.update({variable["name"]: variable["value"] for variable in container["env"]})
    os.chroot(root)
    os.chdir("/")
    command = container["command"] + container["args"]
    os.execvpe(command[0], command, environment)


main()
