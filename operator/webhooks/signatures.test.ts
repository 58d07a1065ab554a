import { Webhook } from 'standardwebhooks'
import { expect, test } from 'vitest'
import { createWebhookSecrets } from '../../shared/webhook-secrets.ts'
import { tunnelWebhook } from '../../test/builders/resources.ts'
import { rotationOf } from './reconciler.ts'
import { messageHeaders, signingVersions } from './signatures.ts'

const secrets = createWebhookSecrets(Buffer.alloc(32, 1))
const NOW = Date.now()
const HOUR = 3_600_000
const rotated = (status: object) => tunnelWebhook({ spec: { secretVersion: 3 }, status: { secretVersion: 3, ...status } })

test('secrets differ by installation, webhook and version, and are 32 bytes', () => {
  const others = [secrets('a', 1), secrets('a', 2), secrets('b', 1), createWebhookSecrets(Buffer.alloc(32, 2))('a', 1)]
  expect(new Set(others).size).toBe(4)
  for (const secret of others) expect(Buffer.from(secret.slice('whsec_'.length), 'base64')).toHaveLength(32)
  expect(secrets('a', 1)).toBe(secrets('a', 1))
})

test.each([
  { does: 'a new webhook', webhook: tunnelWebhook(), versions: [1] },
  {
    does: 'a rotation that the operator has not seen',
    webhook: tunnelWebhook({ spec: { secretVersion: 2 }, status: { secretVersion: 1 } }),
    versions: [2, 1],
  },
  {
    does: 'the day after a rotation',
    webhook: rotated({ previousSecretVersion: 2, previousSecretUntil: new Date(NOW + HOUR).toISOString() }),
    versions: [3, 2],
  },
  {
    does: 'later',
    webhook: rotated({ previousSecretVersion: 2, previousSecretUntil: new Date(NOW - 1).toISOString() }),
    versions: [3],
  },
])('$does: signed by $versions', ({ webhook, versions }) => {
  expect(signingVersions(webhook, NOW)).toEqual(versions)
  const headers = messageHeaders(secrets, { webhook, event: 'e-1', body: '{"a":1}', at: NOW })
  expect(headers['webhook-signature']?.split(' ')).toHaveLength(versions.length)
  for (const version of versions)
    expect(new Webhook(secrets(webhook.metadata.uid, version)).verify('{"a":1}', headers)).toEqual({ a: 1 })
  expect(() => new Webhook(secrets(webhook.metadata.uid, 9)).verify('{"a":1}', headers)).toThrow('No matching signature')
})

test('a rotation keeps the former version for a day; a second one drops the version before', () => {
  const first = rotationOf(tunnelWebhook({ spec: { secretVersion: 2 }, status: { secretVersion: 1 } }), NOW)
  const until = new Date(NOW + 24 * HOUR).toISOString()
  expect(first).toEqual({
    fields: { secretVersion: 2, previousSecretVersion: 1, previousSecretUntil: until },
    endsInMs: 24 * HOUR,
  })
  const second = tunnelWebhook({
    spec: { secretVersion: 3 },
    status: { secretVersion: 2, previousSecretVersion: 1, previousSecretUntil: until },
  })
  expect(rotationOf(second, NOW + HOUR).fields).toMatchObject({ secretVersion: 3, previousSecretVersion: 2 })
  const over = tunnelWebhook({ status: { secretVersion: 1, previousSecretVersion: 7, previousSecretUntil: until } })
  expect(rotationOf(over, NOW + 25 * HOUR).fields).toEqual({
    secretVersion: 1,
    previousSecretVersion: null,
    previousSecretUntil: null,
  })
})
