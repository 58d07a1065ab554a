import { execFile, spawn } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { Webhook } from 'standardwebhooks'
import { expect, onTestFinished, test } from 'vitest'
import { messageHeaders } from '../../operator/webhooks/signatures.ts'
import { createWebhookSecrets } from '../../shared/webhook-secrets.ts'
import { tunnelWebhook } from '../builders/resources.ts'
import { freePort } from '../support/free-port.ts'
import { PYTHON } from '../support/python.ts'
import { startReceiver } from '../support/webhooks/receiver.ts'

/** Signatures as the published libraries of Standard Webhooks for Python and Node verify them, and the receivers of docs/webhooks.md. */

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

const secrets = createWebhookSecrets(Buffer.alloc(32, 9))
const webhook = tunnelWebhook({})
const secret = secrets(webhook.metadata.uid, 1)

test('the Python library verifies both signatures of a message, and rejects a changed one', async () => {
  const rotated = tunnelWebhook({ spec: { secretVersion: 2 }, status: { secretVersion: 1 } })
  const body = JSON.stringify({ id: 'e-1', name: 'naïve ☃' })
  const headers = messageHeaders(secrets, { webhook: rotated, event: 'e-1', body, at: Date.now() })
  for (const version of [1, 2]) {
    expect(await verify(secrets(rotated.metadata.uid, version), headers, body)).toEqual(JSON.parse(body))
  }
  await expect(verify(secrets(rotated.metadata.uid, 1), headers, `${body} `)).rejects.toThrow('WebhookVerificationError')
  await expect(verify(secrets('another', 1), headers, body)).rejects.toThrow('WebhookVerificationError')
})

test.each([
  ['é', '{"name":"é"}'],
  ['U+2028', '{"name":"a\u2028b\u2029"}'],
  ['numbers beyond 2^53', '{"a":9007199254740993,"b":1.7976931348623157e308,"c":-0.0}'],
  ['a slash and emoji', '{"url":"https:\\/\\/example.com/","name":"👩‍🚀"}'],
])('both libraries verify a body with %s', async (_what, body) => {
  const headers = messageHeaders(secrets, { webhook, event: 'e-1', body, at: Date.now() })
  expect(new Webhook(secret).verify(body, headers)).toEqual(JSON.parse(body))
  await expect(verify(secret, headers, body)).resolves.toBeDefined()
})

/** Writes a program of docs/webhooks.md into a file and starts it. Resolves when it listens. */
async function startProgram(name: string, env: Readonly<Record<string, string>> = {}) {
  const docs = await readFile(new URL('../../docs/webhooks.md', import.meta.url), 'utf8')
  const program = docs.split('```').find((block) => block.includes(`${name}\n`) && /^(js|python)\n/.test(block))
  if (program === undefined) throw new Error(`docs/webhooks.md has no ${name}`)
  // Below node_modules, so that Node finds the library.
  const directory = await mkdtemp(join(import.meta.dirname, '../../node_modules/.webhook-'))
  onTestFinished(() => rm(directory, { recursive: true }))
  const file = join(directory, name)
  await writeFile(file, program.slice(program.indexOf('\n') + 1))
  const port = await freePort()
  const child = spawn(name.endsWith('.py') ? PYTHON : process.execPath, [file], {
    env: { ...env, PORT: String(port), WEBHOOK_SECRET: secret, PATH: process.env.PATH },
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (data: Buffer) => (output += data.toString()))
  const post = (body: string, headers: Readonly<Record<string, string>>) =>
    fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body }).then(({ status }) => status)
  await expect.poll(() => post('{}', {}).catch(() => output), { timeout: 60_000 }).toBe(401)
  return { post, output: () => output }
}

const data = { tunnel: { name: 'wéb' }, clientIp: '203.0.113.9' }
const body = JSON.stringify({ id: 'e-1', type: 'tunnel.connected', data })
const headers = () => messageHeaders(secrets, { webhook, event: 'e-1', body, at: Date.now() })

test.each(['receiver.mjs', 'receiver.py'])('%s of the docs prints an event once, and rejects a changed one', async (name) => {
  const receiver = await startProgram(name)
  expect([await receiver.post(body, headers()), await receiver.post(body, headers())]).toEqual([204, 204])
  expect(await receiver.post(`${body} `, headers())).toBe(401)
  await expect.poll(() => receiver.output().match(/tunnel\.connected wéb 203\.0\.113\.9/g)).toHaveLength(1)
})

test('relay.mjs of the docs passes an event on to Slack, and its failure back', async () => {
  await using slack = await startReceiver((response, _message, index) => response.writeHead(index === 0 ? 500 : 200).end('ok'))
  const relay = await startProgram('relay.mjs', { SLACK_URL: `http://127.0.0.1:${slack.port}/services/x` })
  expect([await relay.post(body, headers()), await relay.post(body, headers())]).toEqual([502, 204])
  expect(slack.bodies()[1]).toEqual({ text: 'wéb: tunnel.connected 203.0.113.9' })
})
