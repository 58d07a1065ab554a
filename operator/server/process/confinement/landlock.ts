import type { Launcher } from './launcher.ts'

/**
 * Runs a database server of a user other than root under Landlock (landlock(7)), for systems without user namespaces, such as Ubuntu. The
 * server may read the system's programs, libraries and configuration, write its data and log, and access no other file. It traces no
 * process outside and, from Linux 6.12 on, signals none. Perl makes the system calls, as common releases of util-linux are too old for
 * them.
 *
 * Arguments: the installation, then the program and its arguments. Descriptors 3, 4 and 5 are data, config and log.
 */
const SCRIPT = String.raw`
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
allow($_, $read) for qw(/usr /bin /sbin /lib /lib32 /lib64 /libx32 /nix /gnu), $installation;
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

export function landlockLauncher(installation: string): Launcher {
  return { file: '/usr/bin/perl', args: ['-e', SCRIPT, installation], env: {} }
}
