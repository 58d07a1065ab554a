import { once } from 'node:events'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { afterEach, expect, onTestFinished, test, vi } from 'vitest'
import { call } from './client.ts'

afterEach(() => {
  vi.restoreAllMocks()
  vi.unstubAllGlobals()
})

/** Starts a server that the client takes for the origin of its page, until the test ends. */
async function startOrigin(listener: RequestListener): Promise<void> {
  const server = createServer(listener).listen(0, '127.0.0.1')
  onTestFinished(async () => {
    server.close()
    server.closeAllConnections()
    await once(server, 'close')
  })
  await once(server, 'listening')
  const base = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
  const { fetch } = globalThis
  vi.stubGlobal('fetch', (path: string, init: RequestInit) => fetch(new URL(path, base), init))
}

const silent: RequestListener = () => undefined
const halfway: RequestListener = (_request, response) => {
  response.writeHead(200, { 'Content-Length': 100 }).write('{"msg":"OK",')
}

test.each([
  { what: 'a server that never answers', listener: silent },
  { what: 'a server that stops within its answer', listener: halfway },
])('a call to $what ends as unreachable', async ({ listener }) => {
  await startOrigin(listener)
  const soon = AbortSignal.timeout(50)
  vi.spyOn(AbortSignal, 'timeout').mockReturnValue(soon)
  await expect(call('GET', '/v1/databases')).rejects.toMatchObject({ name: 'ApiFailure', status: 0, code: 'unreachable' })
})

test('a call that its caller ends rejects with the reason of the caller', async () => {
  await startOrigin(silent)
  const stop = new AbortController()
  const answer = call('GET', '/v1/databases', { signal: stop.signal })
  stop.abort(new Error('left the page'))
  await expect(answer).rejects.toThrow('left the page')
})

test('an answer that is not JSON is an error with its status', async () => {
  await startOrigin((_request, response) => response.writeHead(502).end('<h1>Bad gateway</h1>'))
  await expect(call('GET', '/v1/databases')).rejects.toMatchObject({ name: 'ApiFailure', status: 502, code: 'internal' })
})
