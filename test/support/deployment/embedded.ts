import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Installation, StartedInstallation } from './installation.ts'
import { startMooring } from './mooring.ts'

/** Starts one embedded Mooring for the whole suite. */
export async function startEmbeddedInstallation(): Promise<StartedInstallation> {
  const outside = await mkdtemp(join(tmpdir(), 'mooring-suite-'))
  const logFile = join(outside, 'log')
  const mooring = await startMooring({ logFile, args: ['--failed-auth-per-minute', '1000000', '--log-level', 'debug'] })
  const { ready, dataDir } = mooring
  return {
    installation: {
      kind: 'embedded',
      sharedUrl: ready.sharedUrl,
      dedicatedUrl: ready.dedicatedUrl,
      ca: await readFile(ready.ca, 'utf8'),
      region: { id: ready.region, name: 'local' },
      motor: 'postgresql-15.4.0',
      issuer: JSON.parse(await readFile(join(dataDir, 'issuer.json'), 'utf8')) as Installation['issuer'],
      metricsUrls: [ready.metricsUrl],
      logFiles: [logFile],
    },
    async [Symbol.asyncDispose]() {
      await mooring[Symbol.asyncDispose]()
      await rm(outside, { recursive: true, force: true })
    },
  }
}
