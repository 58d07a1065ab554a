import { describe, expect, test, vi } from 'vitest'
import type { RequestFilter, RequestRecord } from '../../../journal/port.ts'
import { keepRequests, type Open, newTunnel } from './test-journal.ts'
import { requestRecord } from './records.ts'
import { LATER } from '../../support/patience.ts'

const HOUR_MS = 3_600_000
const pathsOf = (records: readonly RequestRecord[]) => records.map(({ path }) => path)

export function requestClauses(open: Open): void {
  describe('the request log', () => {
    test('returns the requests of one tunnel, newest first', async () => {
      await using opened = await open()
      const tunnel = newTunnel()
      const edge = { origin: 'edge', status: 403, reason: 'ip_denied', protocol: 'h2', durationMs: 0.25 } as const
      const records = [
        requestRecord({ tunnel, path: '/first' }),
        requestRecord({ tunnel, path: '/älter/☃', ...edge }),
        requestRecord({ tunnel, path: '/third', bytesOut: 2 ** 40, sourceIp: '2001:db8::1' }),
      ]
      await keepRequests(opened.journal, [...records, requestRecord({ tunnel: newTunnel() })])
      expect(await opened.journal.requests({ tunnel }, { limit: 10 })).toEqual(records.toReversed())
    })

    test('returns pages without duplicates or gaps, also across days and hours without requests', async () => {
      await using opened = await open()
      const tunnel = newTunnel()
      const now = Date.now()
      const ages = [0, 0, 1, 1, 2, 26, 26, 27, 49, 70]
      const records = ages.map((hours, index) => requestRecord({ tunnel, at: now - hours * HOUR_MS, path: `/${index}` }))
      await keepRequests(opened.journal, records)
      const seen: RequestRecord[] = []
      for (;;) {
        const page = await opened.journal.requests({ tunnel }, { limit: 3, before: seen.at(-1)?.id })
        if (page.length === 0) break
        seen.push(...page)
      }
      expect(seen.map(({ id }) => id)).toEqual(
        records
          .map(({ id }) => id)
          .sort()
          .reverse(),
      )
    })

    const now = Date.now()
    const log: readonly (Partial<RequestRecord> & { readonly path: string })[] = [
      { path: '/api/a', at: now - 5 * HOUR_MS, method: 'POST', status: 201 },
      { path: '/api/b', at: now - 4 * HOUR_MS, status: 502, origin: 'edge', reason: 'upstream_reset' },
      { path: '/app%2fc', at: now - 3 * HOUR_MS, status: 500, sourceIp: '2001:db8::7' },
      { path: '/API/d', at: now - 2 * HOUR_MS, status: 404 },
    ]
    const filters: readonly {
      readonly does: string
      readonly by: Omit<RequestFilter, 'tunnel'>
      readonly finds: readonly string[]
    }[] = [
      { does: 'method', by: { method: 'POST' }, finds: ['/api/a'] },
      { does: 'status', by: { status: 502 }, finds: ['/api/b'] },
      { does: 'status class', by: { statusClass: 5 }, finds: ['/app%2fc', '/api/b'] },
      { does: 'source', by: { sourceIp: '2001:db8::7' }, finds: ['/app%2fc'] },
      { does: 'the beginning of the path, to the letter', by: { pathPrefix: '/api/' }, finds: ['/api/b', '/api/a'] },
      { does: 'the beginning of the path, without wildcards', by: { pathPrefix: '/app%' }, finds: ['/app%2fc'] },
      { does: 'who answered', by: { origin: 'edge' }, finds: ['/api/b'] },
      { does: 'reason', by: { reason: 'upstream_reset' }, finds: ['/api/b'] },
      { does: 'first moment, which counts', by: { from: now - 3 * HOUR_MS }, finds: ['/API/d', '/app%2fc'] },
      { does: 'last moment, which does not', by: { to: now - 4 * HOUR_MS }, finds: ['/api/a'] },
      { does: 'several at once', by: { statusClass: 5, origin: 'backend' }, finds: ['/app%2fc'] },
      { does: 'what nothing has', by: { status: 418 }, finds: [] },
    ]
    test.each(filters)('filters by $does', async ({ by, finds }) => {
      await using opened = await open()
      const tunnel = newTunnel()
      await keepRequests(
        opened.journal,
        log.map((about) => requestRecord({ tunnel, ...about })),
      )
      expect(pathsOf(await opened.journal.requests({ tunnel, ...by }, { limit: 10 }))).toEqual(finds)
    })

    test('delivers kept requests of their tunnel to followers, until they stop', async () => {
      await using opened = await open()
      const [tunnel, other] = [newTunnel(), newTunnel()]
      const heard: string[] = []
      const stop = opened.journal.follow(tunnel, ({ path }) => heard.push(path))
      await keepRequests(opened.journal, [
        requestRecord({ tunnel, path: '/1' }),
        requestRecord({ tunnel: other, path: '/other' }),
      ])
      await vi.waitFor(() => expect(heard).toEqual(['/1']), LATER)
      await keepRequests(opened.journal, [requestRecord({ tunnel, path: '/2' })])
      await vi.waitFor(() => expect(heard).toEqual(['/1', '/2']), LATER)
      stop()
      await keepRequests(opened.journal, [requestRecord({ tunnel, path: '/3' })])
      expect(heard).toEqual(['/1', '/2'])
    })

    test('keeps any text of a visitor', async () => {
      await using opened = await open()
      const tunnel = newTunnel()
      const paths = ['/\n/broken\n1\n', `/${'x'.repeat(100_000)}`, '/"\'\\\0', '']
      await keepRequests(
        opened.journal,
        paths.map((path) => requestRecord({ tunnel, path, method: 'A\nB' })),
      )
      const kept = await opened.journal.requests({ tunnel }, { limit: 10 })
      expect(kept.map(({ status }) => status)).toEqual([200, 200, 200, 200])
      expect(Math.max(...kept.map(({ path }) => path.length))).toBe(2_048)
    })
  })
}
