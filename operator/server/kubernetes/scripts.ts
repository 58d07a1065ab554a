import type { Family } from '../../../crds/motor.ts'
import { REFUSED } from '../../kubernetes/pod-state.ts'
import { refusalOf } from '../series.ts'
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

/** Line of a shell that ends `initialise` with the sentence about `$made` and `$offered`. */
const refuse = (family: Family): string =>
  `echo "${REFUSED}${refusalOf({ family, made: '$made', series: '$(series "$made")', offered: '$offered' })}" >&2; exit 1`

interface SeriesFacts {
  readonly family: Family
  readonly mount: string
  /** Data directory below the mount. */
  readonly data: string
  /** Name of the server program. */
  readonly program: string
  /** Text before the version in what the program prints for `--version`. */
  readonly before: string
}

/** Lines that set `$offered` to the version of the image's server, or to nothing when it prints none. */
const readOffered = ({
  program,
  before,
}: Pick<SeriesFacts, 'program' | 'before'>): string => `offered=$(${program} --version </dev/null 2>/dev/null) || offered=
case $offered in *${quoted(before)}*) offered=\${offered#*${quoted(before)}};; *) offered=;; esac
offered=\${offered%%[!0-9.]*}
`

/**
 * Lines of `initialise`, before it changes anything, that refuse an image of another series than the one that made the data. The version that
 * made them is in a file beside them. Data without this file are taken over by the image that runs.
 */
export const refuseOtherSeries = (facts: SeriesFacts): string => `series() {
  set -- "\${1%%.*}" "\${1#*.}"
  printf %s "$1.\${2%%.*}"
}
${readOffered(facts)}made=
if [ -d ${facts.data} ] && [ -r ${facts.mount}/made-by ]; then IFS= read -r made <${facts.mount}/made-by || :; fi
if [ -z "$made" ] && [ -n "$offered" ]; then
  # On a full volume the server has to start all the same.
  printf '%s\\n' "$offered" >${facts.mount}/made-by.new && mv ${facts.mount}/made-by.new ${facts.mount}/made-by || :
elif [ -n "$offered" ] && [ "$(series "$made")" != "$(series "$offered")" ]; then
  ${refuse(facts.family)}
fi
`

/** Lines of `initialise` that refuse an image of another series of PostgreSQL, whose data directory has the series in a file of its own. */
export const refuseOtherPostgresql = (data: string): string => `if [ -r ${data}/PG_VERSION ]; then
  series() { printf %s "\${1%%.*}"; }
  ${readOffered({ program: 'postgres', before: '(PostgreSQL) ' }).trimEnd().replaceAll('\n', '\n  ')}
  IFS= read -r made <${data}/PG_VERSION || :
  if [ -n "$offered" ] && [ "$made" != "$(series "$offered")" ]; then
    ${refuse('postgresql')}
  fi
fi
`
