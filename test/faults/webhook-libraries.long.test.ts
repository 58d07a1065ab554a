import { execFile } from 'node:child_process'
import { homedir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, test } from 'vitest'
import { messageHeaders } from '../../operator/webhooks/signatures.ts'
import { createWebhookSecrets } from '../../shared/webhook-secrets.ts'
import { tunnelWebhook } from '../builders/resources.ts'

/** Signatures as the published Python library of Standard Webhooks verifies them; its sibling for Node is in other tests. */

const PYTHON = join(process.env.XDG_CACHE_HOME ?? join(homedir(), '.cache'), 'mooring-tests/python/bin/python')
const VERIFY = `
import json, sys
from standardwebhooks import Webhook
secret, headers, body = json.loads(sys.argv[1])
print(json.dumps(Webhook(secret).verify(body, headers)))
`
const verify = async (secret: string, headers: object, body: string): Promise<unknown> => {
  const { stdout } = await promisify(execFile)(PYTHON, ['-c', VERIFY, JSON.stringify([secret, headers, body])])
  return JSON.parse(stdout)
}

test('the Python library verifies both signatures of a message, and rejects a changed one', async () => {
  const secrets = createWebhookSecrets(Buffer.alloc(32, 9))
  const webhook = tunnelWebhook({ spec: { secretVersion: 2 }, status: { secretVersion: 1 } })
  const body = JSON.stringify({ id: 'e-1', name: 'naïve ☃' })
  const headers = messageHeaders(secrets, { webhook, event: 'e-1', body, at: Date.now() })
  for (const version of [1, 2]) {
    expect(await verify(secrets(webhook.metadata.uid, version), headers, body)).toEqual(JSON.parse(body))
  }
  await expect(verify(secrets(webhook.metadata.uid, 1), headers, `${body} `)).rejects.toThrow('WebhookVerificationError')
  await expect(verify(secrets('another', 1), headers, body)).rejects.toThrow('WebhookVerificationError')
})
