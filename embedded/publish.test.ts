import { access, readFile, mkdtempDisposable } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pino } from 'pino'
import { expect, test } from 'vitest'
import { createIssuer } from '../apiserver/auth/issuer.ts'
import { generateIssuerKey } from '../operator/installation/api-secret.ts'
import { openDataDir } from './data-dir.ts'
import { publish, createReadyFile, type Ready } from './publish.ts'

const urls = { sharedUrl: 'https://127.0.0.1:1', dedicatedUrl: 'https://127.0.0.1:2' }
const ready: Omit<Ready, 'token' | 'dashboardUrl'> = {
  ...{ ...urls, ca: '/ca.pem', domain: 'tunnel.localhost', metricsUrl: 'http://127.0.0.1:3' },
  ...{ sharedHttpUrl: null, dedicatedHttpUrl: null },
  ...{ sshHost: null, sshPort: null, httpPort: null, httpsPort: null, regionId: 1, region: 'r' },
}

test('the ready file is removed on disposal, and a running renewal does not write it again', async () => {
  await using parent = await mkdtempDisposable(join(tmpdir(), 'publish-'))
  const path = join(parent.path, 'ready.json')
  const issuer = await createIssuer({ issuer: urls.sharedUrl, privateKey: await generateIssuerKey() })
  const file = await createReadyFile(path)
  let writes = 0
  const renewed = Promise.withResolvers<undefined>()
  const readyFile = {
    ...file,
    async write(content: Ready) {
      writes += 1
      if (writes === 2) renewed.resolve(undefined)
      await file.write(content)
    },
  }
  const deps = {
    ...{ dir: await openDataDir(join(parent.path, 'data')), issuer, readyFile, ready, log: pino({ level: 'silent' }) },
    dashboardUrl: () => 'https://127.0.0.1:1/dashboard#code=1',
  }
  const published = await publish({ ...deps, client: { ...urls, ca: 'ca' }, isTokenKept: true, renewMs: 5 })
  await access(path)
  await renewed.promise
  await published[Symbol.asyncDispose]()
  await expect(access(path)).rejects.toMatchObject({ code: 'ENOENT' })

  await access(deps.dir.token)
  const unconfined = await publish({ ...deps, client: { ...urls, ca: 'ca' }, isTokenKept: false })
  await expect(access(deps.dir.token)).rejects.toMatchObject({ code: 'ENOENT' })
  expect(await readFile(deps.dir.env, 'utf8')).not.toContain(unconfined.token)
  await unconfined[Symbol.asyncDispose]()
})
