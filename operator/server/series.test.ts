import { expect, test } from 'vitest'
import { assertSameSeries } from './series.ts'

test.each([
  { family: 'postgresql', made: '15.4.0', offered: '15.10' },
  { family: 'mysql', made: '8.0.15', offered: '8.0.29' },
  { family: 'mariadb', made: '10.11.6', offered: '10.11.19' },
  { family: 'mongodb', made: '5.0.32', offered: '5.0.9' },
] as const)('$family $offered runs on data of $made', (versions) => {
  expect(() => assertSameSeries(versions)).not.toThrow()
})

test.each([
  { family: 'postgresql', made: '14.5.0', offered: '15.4' },
  { family: 'mysql', made: '8.0.29', offered: '8.4.0' },
  { family: 'mysql', made: '5.7.38', offered: '8.0.29' },
  { family: 'mariadb', made: '10.11.19', offered: '10.5.29' },
  { family: 'mongodb', made: '6.0.27', offered: '7.0.2' },
] as const)('$family $offered refuses data of $made', ({ family, made, offered }) => {
  const refused = expect(() => assertSameSeries({ family, made, offered }))
  refused.toThrow(
    expect.objectContaining({
      code: 'other_series',
      message: expect.stringMatching(/again; to change the series, dump/) as string,
    }),
  )
  refused.toThrow(`${made}, and the server offered now is`)
})
