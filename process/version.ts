import about from '../package.json' with { type: 'json' }

/** The version of this program: `1.2.3`, as the chart's appVersion. */
export const PROGRAM_VERSION: string = about.version

/** Whether version `a` is newer than `b`. What stands behind the three numbers does not count; what is no version is older than any. Pure. */
export function isNewer(a: string, b: string): boolean {
  const [left, right] = [numbers(a), numbers(b)]
  const place = left.findIndex((number, index) => number !== right[index])
  return place !== -1 && (left[place] ?? 0) > (right[place] ?? 0)
}

function numbers(version: string): readonly number[] {
  const found = /^v?(\d{1,9})\.(\d{1,9})\.(\d{1,9})(?![\d.])/.exec(version)
  return found ? found.slice(1).map(Number) : [-1, -1, -1]
}
