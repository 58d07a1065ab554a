import { at } from './engine-pod.ts'

/** Returns `text` as one word of a shell command. */
export const quoted = (text: string): string => `'${text.replaceAll("'", String.raw`'\''`)}'`

/** Lines of `initialise` that read the admin's password into `$password`. */
export const readPassword = `password=
IFS= read -r password <${at.admin}/password || [ -n "$password" ]
`

/** Line that makes all files of a volume durable. The `sync` of Enterprise Linux 7 knows no file systems. */
export const flush = (mount: string): string => `sync -f ${mount} 2>/dev/null || sync`

/**
 * Lines before the start of a server. A file beside the data reserves 48 MiB: an engine ends when it cannot write its log, and cannot start
 * on a full volume, so one tenant could take all others offline until an administrator intervenes (process/files/reserve.ts).
 */
export const keepReserve = (mount: string): string => `has_room() {
  dd if=/dev/zero of=${mount}/probe bs=1048576 count="$1" 2>/dev/null
  set -- $?
  rm -f ${mount}/probe
  return "$1"
}
if ! has_room 32; then
  rm -f ${mount}/reserve
  echo 'LOG:  volume full: the reserve was released' >&2
elif [ ! -e ${mount}/reserve ] && has_room 192; then
  dd if=/dev/zero of=${mount}/reserve.new bs=1048576 count=48 2>/dev/null && mv ${mount}/reserve.new ${mount}/reserve
fi
`
