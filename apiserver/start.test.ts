import { mkdtempDisposable, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import type { Kind } from '../crds/kind.ts'
import { Region } from '../crds/region.ts'
import { createCa, issueCertificate } from '../operator/certificates/local-ca.ts'
import { generateIssuerKey, publicKeySet } from '../operator/installation/api-secret.ts'
import { openTemporaryStore } from '../test/support/store/temporary-store.ts'
import type { ListOptions, Store } from '../store/port.ts'
import { createRoleAccess } from '../store/access.ts'
import { freePort } from '../test/support/free-port.ts'
import { createHttpsClient } from '../test/support/api/https-client.ts'
import { createIssuer } from './auth/issuer.ts'
import { parseSettings } from './settings.ts'
import { startApiServer } from './start.ts'

const ISSUER = 'https://issuer.test'

test('until the caches are complete only the open routes are served', async () => {
  await using dir = await mkdtempDisposable(join(tmpdir(), 'api-start-'))
  const ca = await createCa(new Date())
  const { certificate, key } = await issueCertificate({ ca, names: ['127.0.0.1'], now: new Date() })
  const privateKey = await generateIssuerKey()
  const files = {
    ...{ 'tls.crt': certificate, 'tls.key': key, issuer: ISSUER, 'token-secret': 'ab'.repeat(32) },
    'jwks.json': JSON.stringify(publicKeySet(privateKey)),
  }
  for (const [name, text] of Object.entries(files)) await writeFile(join(dir.path, name), text)
  const claims = { subject: 'a', role: 'platform-admin', ttlSeconds: 60 } as const
  const token = await (await createIssuer({ issuer: ISSUER, privateKey })).sign(claims)

  await using temporary = await openTemporaryStore()
  const held = Promise.withResolvers<undefined>()
  const store: Store = {
    ...temporary.store,
    async list<K extends Kind>(kind: K, options?: ListOptions) {
      if (kind.kind === Region.kind) await held.promise
      return temporary.store.list(kind, options)
    },
  }
  const [shared, dedicated, metrics] = [await freePort(), await freePort(), await freePort()]
  const argv = ['--listen', '127.0.0.1', '--files', dir.path, '--shared-port', String(shared)]
  const parsed = parseSettings([...argv, '--dedicated-port', String(dedicated), '--metrics-port', String(metrics)], {})
  if (!('ok' in parsed)) throw new Error(parsed.text)
  const running = await startApiServer({
    ...{ settings: parsed.ok, log: pino({ level: 'silent' }), store },
    access: createRoleAccess,
  })
  using client = createHttpsClient(ca.certificate)
  const get = (path: string) =>
    client.send(`https://127.0.0.1:${shared}${path}`, { method: 'GET', headers: { Authorization: `Bearer ${token}` } })
  const probe = async () => (await fetch(`http://127.0.0.1:${metrics}/readyz`)).status

  const early = await get('/v1/regions')
  expect(early).toMatchObject({ status: 503, headers: { 'retry-after': '1' } })
  expect(JSON.parse(early.text)).toMatchObject({ error: { code: 'unavailable', requestId: early.headers['x-request-id'] } })
  expect([(await get('/readyz')).status, (await get('/healthz')).status, await probe()]).toEqual([503, 200, 503])

  held.resolve(undefined)
  await expect.poll(probe).toBe(200)
  expect((await get('/v1/regions')).status).toBe(200)
  await running.stop()
})
