import express from 'express'
import { connect } from 'node:net'
import { setImmediate } from 'node:timers/promises'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'
import { type HttpApp, serveApp } from '../../test/support/api/http-app.ts'
import { createFollowLimit, LONGEST_MS, sendEvents } from './event-stream.ts'
import type { EventSource } from './route.ts'
import type { StreamedEvent } from './route.ts'
import { contextOf, requestContext } from './request-context.ts'

const HEARTBEAT_MS = 15_000
beforeEach(() => {
  // Timers of connections stay real.
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
})
afterEach(() => {
  vi.useRealTimers()
})

interface Stream extends AsyncDisposable {
  readonly app: HttpApp
  readonly accepted: (answer: () => Promise<boolean>) => void
  readonly signOut: () => void
  readonly send: (event: StreamedEvent) => void
  readonly end: () => void
  readonly starts: () => number
  readonly stops: () => number
}

/** Starts a server with one stream, whose source the test controls. */
async function streaming(isStillAuthorized: () => Promise<boolean> = () => Promise.resolve(true)): Promise<Stream> {
  let accepted = () => Promise.resolve(true)
  let isOpen = true
  let send: (event: StreamedEvent) => void = () => undefined
  let end: () => void = () => undefined
  let starts = 0
  let stops = 0
  const source: EventSource = {
    isStillAuthorized,
    start(...given) {
      starts += 1
      ;[send, end] = given
      return () => {
        stops += 1
      }
    },
  }
  const app = await serveApp(
    express()
      .use(requestContext())
      .use((req, res) => {
        contextOf(req).isStillAccepted = () => accepted()
        contextOf(req).isSessionOpen = async () => isOpen
        sendEvents(req, res, source)
      }),
  )
  return {
    app,
    accepted: (answer) => (accepted = answer),
    signOut: () => void (isOpen = false),
    send: (event) => send(event),
    end: () => end(),
    starts: () => starts,
    stops: () => stops,
    [Symbol.asyncDispose]: () => app[Symbol.asyncDispose](),
  }
}

/** Text received so far. */
async function listen({ app }: Stream) {
  const response = await fetch(app.url)
  const read = { text: '', over: false, response }
  const reading = async () => {
    for await (const part of response.body?.pipeThrough(new TextDecoderStream()) ?? []) read.text += part
  }
  void reading().finally(() => (read.over = true))
  await expect.poll(() => read.text).toBe(':\n\n')
  return read
}

test('a stream sends events and heartbeats until its source ends it', async () => {
  await using stream = await streaming()
  const read = await listen(stream)
  expect(read.response.headers.get('content-type')).toContain('text/event-stream')
  stream.send({ id: '1', event: 'request', data: { path: '/a\nb' } })
  await expect.poll(() => read.text).toContain('id: 1\nevent: request\ndata: {"path":"/a\\nb"}\n\n')
  await vi.advanceTimersByTimeAsync(HEARTBEAT_MS)
  await expect.poll(() => read.text.endsWith('}\n\n:\n\n')).toBe(true)
  stream.end()
  await expect.poll(() => read.over).toBe(true)
  expect(stream.stops()).toBe(1)
  expect(vi.getTimerCount()).toBe(0)
  // Late events have no receiver.
  stream.send({ id: '2', event: 'request', data: null })
})

test.each([
  { what: 'is accepted no more', accepted: () => Promise.resolve(false) },
  { what: 'cannot be checked', accepted: () => Promise.reject(new Error('no store')) },
])('a stream ends when the token of the caller $what', async ({ accepted }) => {
  await using stream = await streaming()
  const read = await listen(stream)
  stream.accepted(accepted)
  await vi.advanceTimersByTimeAsync(HEARTBEAT_MS)
  await expect.poll(() => read.over).toBe(true)
  expect(stream.stops()).toBe(1)
})

test('a stream ends when the session of the dashboard signs out', async () => {
  await using stream = await streaming()
  const read = await listen(stream)
  stream.signOut()
  await vi.advanceTimersByTimeAsync(HEARTBEAT_MS)
  await expect.poll(() => read.over).toBe(true)
})

test('a stream ends when the caller is not authorized any more', async () => {
  await using stream = await streaming(() => Promise.resolve(false))
  const read = await listen(stream)
  await vi.advanceTimersByTimeAsync(HEARTBEAT_MS)
  await expect.poll(() => read.over).toBe(true)
})

test('a stream ends after one hour, and not before', async () => {
  await using stream = await streaming()
  const read = await listen(stream)
  await vi.advanceTimersByTimeAsync(LONGEST_MS - HEARTBEAT_MS)
  await expect.poll(() => read.text.length).toBe((LONGEST_MS / HEARTBEAT_MS) * ':\n\n'.length)
  expect(read.over).toBe(false)
  await vi.advanceTimersByTimeAsync(HEARTBEAT_MS)
  await expect.poll(() => read.over).toBe(true)
})

test('a stream ends when the caller disconnects or does not read', async () => {
  await using stream = await streaming()
  const going = new AbortController()
  await fetch(stream.app.url, { signal: going.signal })
  going.abort()
  await expect.poll(() => stream.stops()).toBe(1)

  const silent = connect(stream.app.port, '127.0.0.1').pause()
  silent.on('error', () => undefined)
  silent.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n')
  await expect.poll(() => stream.starts()).toBe(2)
  const data = 'x'.repeat(100_000)
  for (let count = 0; count < 500 && stream.stops() < 2; count += 1) {
    stream.send({ id: String(count), event: 'request', data })
    await setImmediate()
  }
  expect(stream.stops()).toBe(2)
  silent.destroy()
})

test('HEAD is answered like GET and releases its slot', async () => {
  await using stream = await streaming()
  const response = await fetch(stream.app.url, { method: 'HEAD' })
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/event-stream; charset=utf-8'])
  expect(stream.stops()).toBe(1)
})

test('a rejected stream names the limit that is reached', () => {
  const limit = createFollowLimit({ perPrincipal: 2, inAll: 3 })
  limit.take('local:erin')
  const release = limit.take('local:erin')
  expect(() => limit.take('local:erin')).toThrow('you have 2 streams open, which is the limit; close one')
  limit.take('local:two')
  expect(() => limit.take('local:two')).toThrow('too many streams are open on this server; retry later')
  release()
  limit.take('local:two')
})
