const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const whole = new Intl.NumberFormat('en')

/** 1234567 → `1.2M` */
export const shortNumber = (value: number): string => (value < 10_000 ? whole.format(value) : compact.format(value))

export const longNumber = (value: number): string => whole.format(value)

const UNITS = ['B', 'KiB', 'MiB', 'GiB', 'TiB']

/** 1536 → `1.5 KiB` */
export function bytes(value: number): string {
  const power = Math.min(UNITS.length - 1, value < 1 ? 0 : Math.floor(Math.log2(value) / 10))
  const scaled = value / 1024 ** power
  return `${power === 0 || scaled >= 100 ? Math.round(scaled) : scaled.toFixed(1)} ${UNITS[power] ?? ''}`
}

/** Duration in milliseconds as text: `0.4 ms`, `230 ms`, `1.4 s`, `3 min 5 s`, `2 h 4 min`, `3 d 1 h`. */
export function duration(ms: number): string {
  if (ms < 1_000) return `${ms < 10 ? Math.round(ms * 10) / 10 : Math.round(ms)} ms`
  if (ms < 60_000) return `${(ms / 1_000).toFixed(1)} s`
  const seconds = Math.round(ms / 1_000)
  const parts = [
    [Math.floor(seconds / 86_400), 'd'],
    [Math.floor(seconds / 3_600) % 24, 'h'],
    [Math.floor(seconds / 60) % 60, 'min'],
    [seconds % 60, 's'],
  ] as const
  const first = parts.findIndex(([count]) => count > 0)
  return parts
    .slice(first, first + 2)
    .filter(([count]) => count > 0)
    .map(([count, unit]) => `${count} ${unit}`)
    .join(' ')
}

/** Time relative to now: `in 3 h 5 min`, `12 s ago`, `just now`. */
export function relative(time: string, now: number): string {
  const away = Date.parse(time) - now
  if (Math.abs(away) < 2_000) return 'just now'
  const text = duration(Math.max(1_000, Math.round(Math.abs(away) / 1_000) * 1_000)).replace('.0 s', ' s')
  return away > 0 ? `in ${text}` : `${text} ago`
}

const stamp = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'medium' })
const clock = new Intl.DateTimeFormat('en-GB', {
  hour: '2-digit',
  minute: '2-digit',
  second: '2-digit',
  fractionalSecondDigits: 3,
})

/** Date and time in the visitor's time zone. */
export const fullTime = (time: string): string => stamp.format(new Date(time))

/** Time of the day with milliseconds. */
export const clockTime = (time: string): string => clock.format(new Date(time))

/** Share of a whole in percent: `0 %`, `< 1 %`, `42 %`. */
export function percent(part: number, of: number): string {
  if (of === 0 || part === 0) return '0 %'
  const share = (part / of) * 100
  if (share < 1) return '< 1 %'
  return `${share > 99 && part < of ? '> 99' : Math.round(share)} %`
}
