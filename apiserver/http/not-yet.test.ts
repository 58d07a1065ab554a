import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, test } from 'vitest'
import { answerStarting } from './not-yet.ts'

test('answerStarting answers 503 in the form of all errors', async () => {
  const server = createServer(answerStarting).listen(0, '127.0.0.1')
  await once(server, 'listening')
  try {
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1/me`
    const answer = await fetch(url, { headers: { 'X-Request-Id': 'early-1', Connection: 'close' } })
    expect(answer.status).toBe(503)
    expect(answer.headers.get('retry-after')).toBe('1')
    expect(answer.headers.get('x-request-id')).toBe('early-1')
    expect(await answer.json()).toEqual({
      msg: expect.stringContaining('starting') as string,
      error: { code: 'unavailable', details: [], requestId: 'early-1' },
    })
  } finally {
    server.close()
    await once(server, 'close')
  }
})
