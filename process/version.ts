import about from '../package.json' with { type: 'json' }

/** Version of this program, such as `1.2.3`; the same as the chart's appVersion. */
export const PROGRAM_VERSION: string = about.version

/** Whether version `a` is newer than `b`. A suffix after the three numbers is ignored; an invalid version is older than all others. Pure. */
export function isNewer(a: string, b: string): boolean {
  const [left, right] = [numbers(a), numbers(b)]
  const index = left.findIndex((number, at) => number !== right[at])
  return index !== -1 && (left[index] ?? 0) > (right[index] ?? 0)
}

function numbers(version: string): readonly number[] {
  const found = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?![\d.])/.exec(version)
  return found ? found.slice(1).map(Number) : [-1, -1, -1]
}
