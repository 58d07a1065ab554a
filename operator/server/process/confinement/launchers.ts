import type { EngineUser } from '../spawn/engine-user.ts'

/** Ways to isolate a compromised server from all files but its own, strongest first (docs/isolation.md). */
export const CONFINEMENTS = ['users', 'namespaces', 'landlock', 'none'] as const
export type ConfinementKind = (typeof CONFINEMENTS)[number]

/** Command that runs another command confined: `file` with `args`, followed by that command. */
export interface Launcher {
  readonly file: string
  readonly args: readonly string[]
  readonly env: Readonly<Record<string, string>>
  /** Whether the launcher starts as the present user and changes to the engine's user itself. */
  readonly changesUser?: boolean
}

/**
 * Runs a database server of a user other than root in its own user, process, mount and IPC namespaces (user_namespaces(7)). The server sees
 * the system's programs and libraries, its own three directories and no other process: a compromised server can read neither the
 * administrator's token nor another server's data, though all belong to one user.
 *
 * $1: mount point of the new root, an empty directory of ours; $2: the installation; then the program and its arguments. Descriptors 3, 4
 * and 5 are data, config and log.
 */
const NAMESPACES = String.raw`set -eu
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
# Files of a server program of the machine, outside its installation (own-engine.ts).
for link in "$installation"/shown/*; do
  if [ -L "$link" ]; then show "$(readlink "$link")"; fi
done
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
      ...['--', 'sh', '-c', NAMESPACES, 'confine', root, installation],
    ],
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
  }
}

/**
 * Runs a database server of a user other than root under Landlock (landlock(7)), for systems without user namespaces, such as Ubuntu. The
 * server may read the system's programs, libraries and configuration, write its data and log, and access no other file. It traces no
 * process outside and, from Linux 6.12 on, signals none. Perl makes the system calls, as common releases of util-linux are too old for
 * them.
 *
 * Arguments: the installation, then the program and its arguments. Descriptors 3, 4 and 5 are data, config and log.
 */
const LANDLOCK = String.raw`
use strict; use warnings;
my ($installation, @command) = @ARGV;
sub fail { print STDERR "confine: $_[0]: $!\n"; exit 1 }
# Numbers of x86-64: landlock_create_ruleset, landlock_add_rule, landlock_restrict_self, prctl.
my ($create, $add, $restrict, $prctl) = (444, 445, 446, 157);
my $version = syscall($create, 0, 0, 1);
fail('landlock_create_ruleset') if $version < 1;
my ($execute, $write_file, $read_file, $read_dir) = (1, 2, 4, 8);
my $all = $version >= 5 ? 0xffff : $version >= 3 ? 0x7fff : $version == 2 ? 0x3fff : 0x1fff;
my $ruleset = $version >= 6 ? pack('QQQ', $all, 0, 3) : pack('Q', $all);
my $rules = syscall($create, $ruleset, length $ruleset, 0);
fail('landlock_create_ruleset') if $rules < 0;
sub allow {
  my ($path, $access) = @_;
  # O_PATH and O_CLOEXEC
  return unless sysopen(my $at, $path, 0x280000);
  $access &= ~$read_dir unless -d $path;
  my $rule = pack('Ql', $access, fileno $at);
  fail("landlock_add_rule $path") if syscall($add, $rules, 1, $rule, 0) < 0;
}
my $read = $execute | $read_file | $read_dir;
# The links name files of a server program of the machine, outside its installation (own-engine.ts).
my $shown = "$installation/shown";
my @shown;
if (opendir(my $links, $shown)) { @shown = grep { defined } map { readlink("$shown/$_") } readdir $links }
allow($_, $read) for qw(/usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix /gnu), $installation, @shown;
allow($_, $read_file) for qw(/etc/passwd /etc/group /etc/nsswitch.conf /etc/localtime /etc/ld.so.cache /etc/ssl/openssl.cnf);
allow($_, $read_file | $write_file) for qw(/dev/null /dev/zero);
allow($_, $read_file) for qw(/dev/random /dev/urandom);
allow('/proc', $read_file | $read_dir);
allow("/proc/self/fd/$_", $all & ~$execute) for 3, 5;
allow('/proc/self/fd/4', $read_file | $read_dir);
# PR_SET_NO_NEW_PRIVS
fail('prctl') if syscall($prctl, 38, 1, 0, 0, 0) < 0;
fail('landlock_restrict_self') if syscall($restrict, $rules, 0) < 0;
exec { $command[0] } @command or fail($command[0]);
`

/** Launcher that needs no directory to mount on: Landlock leaves the file system as it is, and restricts access to it. */
export function landlockLauncher(installation: string): Launcher {
  return { file: '/usr/bin/perl', args: ['-e', LANDLOCK, installation], env: {} }
}

/**
 * Runs a program of an engine as another user, in a mount namespace of its own in which its data directory has a path that the user can
 * traverse (mount_namespaces(7)). MySQL and MariaDB resolve the paths of tables, and the real path of a data directory leads through
 * directories that only Mooring may enter. The path is one that exists everywhere, and that the program needs nothing else of.
 *
 * $1: uid, $2: gid, $3: installation; then the program and its arguments. Descriptor 3 is the data directory.
 */
const DATA_PATH = String.raw`set -eu
uid=$1; gid=$2; installation=$3; shift 3
for point in /mnt /srv /media /tmp; do
  case $installation/ in "$point"/*) continue;; esac
  if [ -d "$point" ]; then break; fi
done
mount --bind /proc/self/fd/3 "$point"
# Opened anew: the old descriptor resolves to the path outside.
exec 3<"$point"
exec setpriv --reuid "$uid" --regid "$gid" --clear-groups --no-new-privs --inh-caps -all -- "$@"`

/** Returns the launcher for a process that is root. Without the capability SYS_ADMIN it ends with a message of `unshare`. */
export function dataPathLauncher({ uid, gid }: EngineUser, installation: string): Launcher {
  return {
    file: 'unshare',
    args: ['--mount', '--', 'sh', '-c', DATA_PATH, 'data-path', `${uid}`, `${gid}`, installation],
    env: { PATH: '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin' },
    changesUser: true,
  }
}
