/** Bounds of the spool. */
export interface SpoolLimits {
  /** Maximum number of segments of 16 MiB in the spool. Beyond it the server drops WAL, which ends the restorable window. */
  readonly segments: number
}

/** File in the spool by whose presence the server reports that it dropped WAL. */
export const DROPPED = '.dropped'

/** Maximum size of the spool by default: 1 GiB. */
const DEFAULT_LIMITS: SpoolLimits = { segments: 64 }
/** Segments that may wait in `pg_wal` because they cannot be copied, such as on a full disk, before they are dropped. */
const STUCK_SEGMENTS = 16

/**
 * Returns the settings that a server needs for point-in-time recovery. A change of `wal_level` or `archive_mode` needs a restart.
 * @param spoolDirectory directory on the volume of the data, as the server's process sees it; relative to the data directory or absolute.
 * The command creates it.
 */
export function archiveSettings(spoolDirectory: string, limits: SpoolLimits = DEFAULT_LIMITS): Readonly<Record<string, string>> {
  return {
    wal_level: 'replica',
    archive_mode: 'on',
    // The agent switches segments much more often. This bounds the loss while no agent runs.
    archive_timeout: '60s',
    archive_command: archiveCommand(spoolDirectory, limits),
  }
}

/**
 * Copies one segment to the spool: it is complete under its name, and durable, or absent. POSIX sh with `sync` of coreutils or BusyBox. The
 * database must not stop because of backups, so a segment is dropped when the spool is full, or when copies fail and WAL piles up: the
 * agent finds the gap by the names, and begins a new base backup.
 */
function archiveCommand(spoolDirectory: string, { segments }: SpoolLimits): string {
  const spool = shellWord(spoolDirectory)
  // A failed redirection of `true` does not end the shell, as one of `:` would (POSIX, "Consequences of Shell Errors").
  const drop = `true >"$s/${DROPPED}"; exit 0`
  return [
    `umask 077; s=${spool}; mkdir -p "$s"`,
    `if [ "$(ls "$s" | wc -l)" -ge ${segments} ]; then ${drop}; fi`,
    'if cp "%p" "$s/%f.tmp" && sync "$s/%f.tmp" && mv "$s/%f.tmp" "$s/%f" && sync "$s"; then exit 0; fi',
    'rm -f "$s/%f.tmp"',
    `if [ "$(ls pg_wal/archive_status | grep -c "[.]ready$")" -ge ${STUCK_SEGMENTS} ]; then ${drop}; fi`,
    'exit 1',
  ].join('; ')
}

/** Quotes a word for sh, and `%` for PostgreSQL ("Continuous Archiving", archive_command). */
function shellWord(word: string): string {
  return `'${word.replaceAll("'", String.raw`'\''`).replaceAll('%', '%%')}'`
}
