import { describe, expect, test } from 'vitest'
import { keepRequests, type Open, newTunnel } from './test-journal.ts'
import { requestRecord } from './records.ts'

const MINUTE_MS = 60_000
const HOUR_MS = 60 * MINUTE_MS
const DAY_MS = 24 * HOUR_MS
/** Start of a minute, so that a span of whole minutes has exactly the test's requests. */
const thisMinute = (): number => Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS

export function statsClauses(open: Open): void {
  describe('stats', () => {
    test('of a tunnel without requests are zeros', async () => {
      await using opened = await open()
      const stats = await opened.journal.stats(newTunnel(), { from: Date.now() - DAY_MS, to: Date.now() })
      expect(stats).toEqual({
        ...{ requests: 0, averageResponseTimeMs: null, edgeAnswered: 0, bytesIn: 0, bytesOut: 0 },
        statusClasses: { '1xx': 0, '2xx': 0, '3xx': 0, '4xx': 0, '5xx': 0 },
        ...{ topClientIps: [], series: [] },
      })
    })

    test('sum up the requests of a span only', async () => {
      await using opened = await open()
      const tunnel = newTunnel()
      const to = thisMinute()
      const from = to - HOUR_MS
      await keepRequests(opened.journal, [
        requestRecord({ tunnel, at: from - 1, status: 500 }),
        requestRecord({ tunnel, at: from, status: 101, durationMs: 10 }),
        requestRecord({ tunnel, at: to - 2 * MINUTE_MS, status: 304, durationMs: 20 }),
        requestRecord({ tunnel, at: to - MINUTE_MS, status: 429, origin: 'edge', sourceIp: '2001:db8::1' }),
        requestRecord({ tunnel, at: to - 1, status: 503, origin: 'edge', durationMs: 30, sourceIp: '2001:db8::1' }),
        requestRecord({ tunnel, at: to, status: 500 }),
        requestRecord({ tunnel: newTunnel(), at: to - 1 }),
      ])
      expect(await opened.journal.stats(tunnel, { from, to })).toEqual({
        requests: 4,
        averageResponseTimeMs: (10 + 20) / 2,
        statusClasses: { '1xx': 1, '2xx': 0, '3xx': 1, '4xx': 1, '5xx': 1 },
        edgeAnswered: 2,
        bytesIn: 40,
        bytesOut: 400,
        topClientIps: [
          { ip: '2001:db8::1', requests: 2 },
          { ip: '203.0.113.1', requests: 2 },
        ],
        series: [
          { at: from, requests: 1, errors: 0 },
          { at: to - 2 * MINUTE_MS, requests: 1, errors: 0 },
          { at: to - MINUTE_MS, requests: 2, errors: 1 },
        ],
      })
    })

    test('average the response times of the backend alone, and have no average without its answers', async () => {
      await using opened = await open()
      const [mixed, refusedOnly] = [newTunnel(), newTunnel()]
      const to = thisMinute()
      const from = to - 48 * HOUR_MS
      const edge = { origin: 'edge', status: 504, durationMs: 100_000 } as const
      // Requests of several minutes and hours, and several batches of one minute: partial sums must yield the same average.
      for (const at of [to - 30 * HOUR_MS, to - HOUR_MS, to - 1, to - 1]) {
        await keepRequests(opened.journal, [
          requestRecord({ tunnel: mixed, at, durationMs: 4 }),
          requestRecord({ tunnel: mixed, at, durationMs: 8 }),
          requestRecord({ tunnel: mixed, at, ...edge }),
          requestRecord({ tunnel: refusedOnly, at, ...edge }),
        ])
      }
      expect(await opened.journal.stats(mixed, { from, to })).toMatchObject({
        requests: 12,
        averageResponseTimeMs: 6,
        edgeAnswered: 4,
      })
      expect(await opened.journal.stats(mixed, { from: to - HOUR_MS, to })).toMatchObject({
        requests: 9,
        averageResponseTimeMs: 6,
      })
      expect(await opened.journal.stats(refusedOnly, { from, to })).toMatchObject({ requests: 4, averageResponseTimeMs: null })
    })

    test('over more than a day have one entry for each hour', async () => {
      await using opened = await open()
      const tunnel = newTunnel()
      const hour = Math.floor(Date.now() / HOUR_MS) * HOUR_MS - 30 * HOUR_MS
      await keepRequests(opened.journal, [
        requestRecord({ tunnel, at: hour }),
        requestRecord({ tunnel, at: hour + HOUR_MS - 1, status: 500 }),
        requestRecord({ tunnel, at: hour + HOUR_MS }),
      ])
      const { series } = await opened.journal.stats(tunnel, { from: hour - DAY_MS, to: hour + 2 * HOUR_MS })
      expect(series).toEqual([
        { at: hour, requests: 2, errors: 1 },
        { at: hour + HOUR_MS, requests: 1, errors: 0 },
      ])
    })

    test('list the ten clients with most requests in the span', async () => {
      await using opened = await open()
      const tunnel = newTunnel()
      const to = thisMinute()
      const from = to - 5 * HOUR_MS
      const of = (ip: number, count: number) =>
        Array.from({ length: count }, (_, index) =>
          requestRecord({ tunnel, sourceIp: `198.51.100.${ip}`, at: from + Math.floor((index * (to - from)) / count) }),
        )
      const outside = Array.from({ length: 50 }, () => requestRecord({ tunnel, sourceIp: '198.51.100.99', at: from - 1 }))
      await keepRequests(opened.journal, [
        ...Array.from({ length: 12 }, (_, index) => of(index + 1, 2 * index + 1)).flat(),
        ...outside,
      ])
      const { topClientIps } = await opened.journal.stats(tunnel, { from, to })
      expect(topClientIps).toEqual(
        Array.from({ length: 10 }, (_, index) => ({ ip: `198.51.100.${12 - index}`, requests: 23 - 2 * index })),
      )
    })

    test('find the top clients among thousands of addresses', async () => {
      await using opened = await open()
      const tunnel = newTunnel()
      const at = thisMinute() - 1
      const crowd = Array.from({ length: 3_000 }, (_, index) =>
        requestRecord({ tunnel, at, sourceIp: index % 3 === 0 ? '192.0.2.1' : `10.0.${index >> 8}.${index & 255}` }),
      )
      await keepRequests(opened.journal, crowd)
      const { topClientIps, requests } = await opened.journal.stats(tunnel, { from: at - HOUR_MS, to: at + 1 })
      expect([topClientIps[0], requests]).toEqual([{ ip: '192.0.2.1', requests: 1_000 }, 3_000])
    })
  })
}
