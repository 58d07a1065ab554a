# Settings, each overridable from the environment. Sourced by every script here.
TC_HERE=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
: "${TC_NAME:=mooringbed}"                                      # also the parent cgroup and the veth name's stem (<= 11 characters)
: "${TC_CACHE:=${XDG_CACHE_HOME:-$HOME/.cache}/testcluster}"    # binaries, images, dockerd's data: survive "down"
: "${TC_STATE:=${XDG_STATE_HOME:-$HOME/.local/state}/$TC_NAME}" # all that lives with one cluster: removed by "down"
: "${TC_NET:=10.201.0}"             # .1 is the host's end of the wire, .2 the node
: "${TC_POD_CIDR:=10.246.0.0/24}"
: "${TC_SVC_CIDR:=10.101.0.0/16}"
: "${TC_DOCKER_NET:=10.202.0}"      # likewise for dockerd
: "${TC_DOCKER_BRIDGE:=10.203.0.1/24}"
: "${TC_NETPOL_VERDICT:=drop}"      # or reject: a denied connection fails at once instead of timing out
: "${TC_PROXY_MODE:=nftables}"
TC_HOST_IP=$TC_NET.1 TC_NODE_IP=$TC_NET.2 TC_NODE=node1
TC_DNS_IP=${TC_SVC_CIDR%.*.*}.0.10 TC_API_IP=${TC_SVC_CIDR%.*.*}.0.1
TC_DOCKER_HOST_IP=$TC_DOCKER_NET.1 TC_DOCKER_IP=$TC_DOCKER_NET.2 TC_DOCKER_STATE=$TC_STATE-docker
TC_BIN=$TC_CACHE/bin
# the host's process id of a PID 1 (of the cluster, of dockerd), as a state directory tells it, or nothing
tc_pid() { local p; { read -r p <"$1/init.pid"; } 2>/dev/null && [ -r "/proc/$p/ns/net" ] && grep -qs "$TC_STATE" "/proc/$p/environ" && echo "$p"; }
tc_init() { tc_pid "$TC_STATE"; }
tc_docker_init() { tc_pid "$TC_DOCKER_STATE"; }
# run a command in the cluster's namespaces (mounts, network, processes, host name)
tc_in() { nsenter -t "$(tc_init)" -m -n -p -u -i -- "$@"; }
# a parent cgroup of our own in each v1 hierarchy, so that it is known what to remove afterwards
tc_cgroup() {
  local h
  for h in /sys/fs/cgroup/*/; do
    [ ! -L "${h%/}" ] && mountpoint -q "$h" || continue
    mkdir -p "$h$1"
    case $h in *cpuset*) cat "$h/cpuset.cpus" >"$h$1/cpuset.cpus"; cat "$h/cpuset.mems" >"$h$1/cpuset.mems";; esac
  done
}
tc_cgroup_remove() {
  local h
  for h in /sys/fs/cgroup/*/"$1"; do
    for _ in {1..40}; do [ -d "$h" ] || break; find "$h" -depth -type d -exec rmdir {} + 2>/dev/null; [ ! -d "$h" ] || sleep 0.05; done
  done
}
# tc_own STATE: with TC_OWNER set, what runs on STATE belongs to that process. Fails when another live process owns it; what a dead one
# left behind is as good as not there.
tc_own() {
  local owner
  [ -n "${TC_OWNER:-}" ] && { read -r owner <"$1/owner"; } 2>/dev/null && [ "$owner" != "$TC_OWNER" ] || return 0
  if kill -0 "$owner" 2>/dev/null; then
    echo "$1 is in use by process $owner: wait for it, or set TC_NAME, TC_NET, TC_POD_CIDR, TC_SVC_CIDR, TC_DOCKER_NET and TC_DOCKER_BRIDGE" >&2; exit 1
  fi
  "$2"
}
# tc_reap STATE DOWN LOCK: runs DOWN once TC_OWNER is gone, whichever way it went, unless the next owner is at it already
tc_reap() {
  [ -n "${TC_OWNER:-}" ] || return 0
  echo "$TC_OWNER" >"$1/owner"
  setsid bash -c 'tail --pid="$1" -f /dev/null; exec 9>"$4"; flock 9; [ "$(cat "$2/owner" 2>/dev/null)" != "$1" ] || exec "$3"' \
    reap "$TC_OWNER" "$@" >/dev/null 2>&1 </dev/null 9>&- &
}
export TC_HERE TC_NAME TC_CACHE TC_STATE TC_NET TC_POD_CIDR TC_SVC_CIDR TC_NETPOL_VERDICT TC_PROXY_MODE TC_HOST_IP TC_NODE_IP TC_NODE \
  TC_DNS_IP TC_API_IP TC_BIN TC_DOCKER_HOST_IP TC_DOCKER_IP TC_DOCKER_BRIDGE TC_DOCKER_STATE
export -f tc_cgroup
