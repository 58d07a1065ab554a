import { readFile } from 'node:fs/promises'
import { expect, test } from 'vitest'
import { parse } from 'yaml'
import { DEFAULT_LIMITS } from './http/rate-limit.ts'
import { type ApiServerSettings, parseSettings } from './settings.ts'

function settingsOf(argv: readonly string[], env: Record<string, string> = {}): ApiServerSettings {
  const parsed = parseSettings(argv, env)
  if (!('ok' in parsed)) throw new Error(parsed.text)
  return parsed.ok
}

test('the chart has the default limits', async () => {
  const values = parse(await readFile(new URL('../charts/mooring/values.yaml', import.meta.url), 'utf8')) as object
  expect(values).toMatchObject({ apiserver: DEFAULT_LIMITS })
  expect(settingsOf([])).toMatchObject(DEFAULT_LIMITS)
})

test('without arguments every setting has its documented default', () => {
  expect(settingsOf([])).toMatchObject({
    listen: '0.0.0.0',
    sharedPort: 8443,
    dedicatedPort: 8444,
    metricsPort: 9464,
    files: '/var/run/mooring/apiserver',
    trustedProxies: [],
    webhookPrivateAddresses: false,
    quotaInstances: 50,
    quotaDatabases: 5,
    issuer: [],
  })
})

test('proxies are addresses or ranges, issuers names with URLs', () => {
  const env = { MOORING_TRUSTED_PROXIES: '10.0.0.0/8,192.0.2.1', MOORING_ISSUER: 'corp=https://login.corp.test' }
  expect(settingsOf([], env)).toMatchObject({
    trustedProxies: ['10.0.0.0/8', '192.0.2.1'],
    issuer: [{ name: 'corp', url: 'https://login.corp.test' }],
  })
})

test.each([
  { argv: ['--trusted-proxies', 'proxy.corp.test'], says: '--trusted-proxies must be IP addresses or ranges' },
  { argv: ['--shared-port', '9464'], says: '--metrics-port must be another port than --shared-port' },
  { argv: ['--read-rate', '10', '--read-burst', '5'], says: '--read-burst must be at least --read-rate' },
])('$argv is rejected with one sentence', ({ argv, says }) => {
  const parsed = parseSettings(argv, {})
  expect(parsed).toMatchObject({ exit: 2, text: expect.stringContaining(says) as string })
})
