import { expect, test } from 'vitest'
import { Tunnel } from '../crds/tunnel.ts'
import { MooringError } from '../crds/errors.ts'
import type { AuditRecord } from '../journal/port.ts'
import { createLines } from '../test/support/toy-app.ts'
import { openTemporaryStore } from '../store/embedded/open-temporary.ts'
import { Namespace } from '../crds/core.ts'
import { createAudit } from './audit.ts'

const NOW = new Date('2030-01-01T00:00:00Z')
const request = { principal: { user: 'local:alice', groups: [] }, requestId: 'r1', sourceIp: '203.0.113.1' }

async function someTunnel() {
  await using place = await openTemporaryStore()
  await place.store.create(Namespace, { metadata: { name: 'acme--prod' } })
  const spec = { regionId: 1, displayName: 'Web' }
  return await place.store.create(Tunnel, { metadata: { namespace: 'acme--prod', name: 't-1' }, spec })
}

/** An audit over a journal that does as it is told. */
function over(keep: (record: AuditRecord) => Promise<void>) {
  const { log, lines } = createLines()
  return { audit: createAudit({ journal: { audit: keep }, log, now: () => NOW, waitMs: 20 }), lines }
}

test('an entry says who did what to which resource, and when', async () => {
  const entries: AuditRecord[] = []
  const { audit } = over(async (record) => void entries.push(record))
  const tunnel = await someTunnel()
  const config = { ...tunnel.spec.config, httpsOnly: true }
  await audit.record({ ...request, action: 'update', before: tunnel, after: { ...tunnel, spec: { ...tunnel.spec, config } } })
  await audit.record({ ...request, principal: { user: 'mooring:api-token:7', groups: [] }, action: 'delete', before: tunnel })
  const resource = { kind: 'Tunnel', id: tunnel.metadata.uid, name: 'Web' }
  const common = { at: NOW.getTime(), namespace: 'acme--prod', via: 'rest', resource, sourceIp: '203.0.113.1', requestId: 'r1' }
  expect(entries).toMatchObject([
    {
      ...common,
      actor: { name: 'local:alice', kind: 'user' },
      action: 'update',
      generation: 1,
      changes: [{ path: 'spec.config.httpsOnly', from: false, to: true }],
    },
    {
      ...common,
      actor: { name: 'mooring:api-token:7', kind: 'apiToken' },
      action: 'delete',
      generation: null,
      changes: [{ path: 'spec', to: null }],
    },
  ])
  expect(new Set(entries.map(({ id }) => id)).size).toBe(2)
})

test('a journal that is away holds up no answer for long, and fails none', async () => {
  const away = over(() => new Promise(() => undefined))
  await away.audit.record({ ...request, action: 'create', after: await someTunnel() })
  expect(away.lines).toMatchObject([{ msg: 'the journal is away: an audit entry waits to be kept', requestId: 'r1' }])
  const broken = over(() => Promise.reject(new MooringError('unavailable', 'no room')))
  await broken.audit.record({ ...request, action: 'create', after: await someTunnel() })
  expect(broken.lines).toMatchObject([{ msg: 'an audit entry was not kept', requestId: 'r1' }])
})
