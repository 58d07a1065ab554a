import type { Launcher } from './launcher.ts'

/**
 * Runs a database server of a user other than root in its own user, process, mount and IPC namespaces (user_namespaces(7)). The server sees
 * the system's programs and libraries, its own three directories and no other process: a compromised server can read neither the
 * administrator's token nor another server's data, though all belong to one user.
 *
 * $1: mount point of the new root, an empty directory of ours; $2: the installation; then the program and its arguments. Descriptors 3, 4
 * and 5 are data, config and log.
 */
const SCRIPT = String.raw`set -eu
ulimit -c 0
root=$1; installation=$2; shift 2
mount -t tmpfs -o mode=0755,size=16m tmpfs "$root"
# Bits that the outer mount has cannot be taken away in here, and which they are differs.
seal() {
  for bits in ro ro,nosuid ro,nodev ro,nosuid,nodev; do
    if mount -o "remount,bind,$bits" "$1" 2>/dev/null; then return 0; fi
  done
}
show() {
  if [ -L "$1" ]; then
    ln -s "$(readlink "$1")" "$root$1"
  elif [ -d "$1" ]; then
    mkdir -p "$root$1"; mount --rbind "$1" "$root$1"; seal "$root$1"
  elif [ -e "$1" ]; then
    mkdir -p "$root$(dirname "$1")"; : >"$root$1"; mount --bind "$1" "$root$1"
  fi
}
for path in /usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix /gnu; do show "$path"; done
for path in /etc/passwd /etc/group /etc/nsswitch.conf /etc/localtime /etc/ld.so.cache /etc/ssl/openssl.cnf; do show "$path"; done
for path in /dev/null /dev/zero /dev/random /dev/urandom; do show "$path"; done
mkdir -p "$root/proc" "$root/tmp" "$root/dev/shm" "$root/.mooring/data" "$root/.mooring/config" "$root/.mooring/log" "$root/.mooring/outside"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/dev/shm"
mount -t tmpfs -o mode=1777,size=64m tmpfs "$root/tmp"
case $installation in /usr/*) ;; *) show "$installation";; esac
mount --bind /proc/self/fd/3 "$root/.mooring/data"
mount --bind /proc/self/fd/4 "$root/.mooring/config"; seal "$root/.mooring/config"
mount --bind /proc/self/fd/5 "$root/.mooring/log"
cd "$root"
pivot_root . .mooring/outside
cd /
# Opened anew: from the old descriptors a path leads up into the file system outside.
exec 3</.mooring/data 4</.mooring/config 5</.mooring/log
umount -n -l /.mooring/outside
mount -o remount,ro /
exec setpriv --no-new-privs --bounding-set -all --inh-caps -all --ambient-caps -all -- "$@"`

/** @param root empty directory to mount on */
export function namespaceLauncher(root: string, installation: string): Launcher {
  return {
    file: 'unshare',
    args: [
      ...['--user', '--map-current-user', '--keep-caps', '--mount', '--pid', '--fork', '--ipc'],
      ...['--', 'sh', '-c', SCRIPT, 'confine', root, installation],
    ],
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  }
}
