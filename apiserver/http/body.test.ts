import { IncomingMessage } from 'node:http'
import { Socket } from 'node:net'
import { z } from 'zod'
import { expect, test } from 'vitest'
import { readJsonBody } from './body.ts'
import { route } from './route.ts'

const post = route({
  ...{ method: 'post', path: '/v1/toys', on: ['shared'], id: 'createToy', summary: '', replies: {} },
  body: z.object({}),
  handle: () => Promise.reject(new Error('not called')),
})

test('a disconnect during the body is a client error, not an internal one', async () => {
  const req = new IncomingMessage(new Socket())
  req.headers = { 'content-type': 'application/json', 'content-length': '10' }
  req.push('{"na')
  const reading = readJsonBody(req, post)
  req.destroy(new Error('aborted'))
  await expect(reading).rejects.toMatchObject({ code: 'invalid_json', status: 400 })
})
