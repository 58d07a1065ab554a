import type { Family } from '../../crds/motor.ts'
import { MooringError } from '../../shared/errors.ts'

/** Code of an error about data that a server of another series made. */
export const OTHER_SERIES = 'other_series'

const NAMES: Readonly<Record<Family, string>> = {
  mysql: 'MySQL',
  mariadb: 'MariaDB',
  postgresql: 'PostgreSQL',
  mongodb: 'MongoDB',
}

/**
 * Returns the series of a version, whose servers read each other's data: `15` of PostgreSQL 15.4, `8.0` of MySQL 8.0.29. A server of a later
 * series changes the data for good or refuses them, and one of an earlier series may crash on them.
 */
export function seriesOf(family: Family, version: string): string {
  const numbers = family === 'postgresql' ? 1 : 2
  return version.split('.').slice(0, numbers).join('.')
}

interface Refusal {
  readonly family: Family
  /** Version of the server that made the data. */
  readonly made: string
  /** Series of `made`. */
  readonly series: string
  /** Version of the server that would run on the data. */
  readonly offered: string
}

/** Sentence about a server that must not run on the data. It is safe between the double quotes of a shell. */
export function refusalOf({ family, made, series, offered }: Refusal): string {
  const name = NAMES[family]
  const what = `its data were made by ${name} ${made}, and the server offered now is ${name} ${offered}, of another series`
  return `${what}: offer ${name} ${series} again; to change the series, dump each database there and load it into a new instance`
}

/** @throws MooringError `other_series` when a server of the version `offered` must not run on data that `made` made */
export function assertSameSeries({ family, made, offered }: Omit<Refusal, 'series'>): void {
  const series = seriesOf(family, made)
  if (series === seriesOf(family, offered)) return
  throw new MooringError(OTHER_SERIES, refusalOf({ family, made, series, offered }))
}
